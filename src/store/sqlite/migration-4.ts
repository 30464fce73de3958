/** From 3 to 4: a store whose content is elsewhere says so, for servers and operators to leave it alone. */
export const noteMoves = `
  CREATE TABLE moved (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    to_store TEXT NOT NULL,              -- empty: it is still being filled
    moved_ms INTEGER NOT NULL
  ) STRICT;
`
