import type { DatabaseSync, StatementSync } from 'node:sqlite'

export type Prepare = (text: string) => StatementSync

/** Statements are made when they are first needed, once. */
export function preparing(db: DatabaseSync): Prepare {
  const statements = new Map<string, StatementSync>()
  return (text) => {
    const found = statements.get(text) ?? db.prepare(text)
    statements.set(text, found)
    return found
  }
}
