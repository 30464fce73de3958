import { DatabaseSync } from 'node:sqlite'
import { migrate } from './open.ts'

/**
 * The guards of the ledger must be there as they were made (ruling C15): tables with their constraints, and triggers. A
 * foreign trigger may change written rows. Indexes and views are allowed.
 */
export function* findForeignSchema(db: DatabaseSync): Iterable<string> {
  const ours = readOurSchema()
  const theirs = readSchema(db)
  for (const [name, sql] of ours) {
    const found = theirs.get(name)
    if (found === undefined) yield `the file: ${name} is missing`
    else if (found !== sql) yield `the file: ${name} is not as triwire made it`
  }
  for (const name of theirs.keys()) {
    if (name.startsWith('trigger') && !ours.has(name)) yield `the file: ${name} is not triwire's`
  }
}

function readOurSchema(): Map<string, string> {
  const db = new DatabaseSync(':memory:', { readBigInts: true })
  try {
    migrate(db, 'memory')
    return readSchema(db)
  } finally {
    db.close()
  }
}

function readSchema(db: DatabaseSync): Map<string, string> {
  const rows = db.prepare("SELECT type, name, sql FROM sqlite_master WHERE type IN ('table', 'trigger')").all()
  return new Map(rows.map(({ type, name, sql }) => [`${type} ${name}`, sql as string]))
}
