import { DatabaseSync } from 'node:sqlite'
import type { Audited, VerifyOptions } from '../../accounts/entries.ts'
import { isDamage } from '../files/store-error.ts'
import type { Dialect } from '../sql/dialect.ts'
import { checkMoment, takeMoment } from '../sql/moments.ts'
import { type LedgerAudit, type VerifyDialect, verifyLedger } from '../sql/verify.ts'
import { migrate, readTogether, transact } from './open.ts'
import type { Run } from './run.ts'
import { archiveGuards } from './schema.ts'

const verified: VerifyDialect = {
  pageMax: 5_000,
  lowestId: 0,
  ends: { columns: 'a.balance AS end_balance, a.seq AS end_seq', joins: '' },
  references: { table: 'main.entries', columns: 'e.reference AS noted, e.*', order: ['reference'] },
  archived: { table: { table: 'main.archived', columns: 'e.*', order: ['id', 'kind'] }, first: ['', ''] },
  accounts: { table: 'main.accounts', columns: 'e.id, e.balance, e.seq', order: ['id'] },
}

/** Verifies the ledger. @returns the findings as sentences */
export function verify(db: DatabaseSync, run: Run, dialect: Dialect, options: VerifyOptions): string[] {
  const findings: string[] = []
  return sayingDamage(findings, () => {
    findings.push(...run(checkMoment(dialect, 'the file')))
    return readLedger(db, run, dialect, { options, findings })
  }).findings
}

/**
 * Verifies the ledger, and makes a head, which proves all entries up to a moment. The moment is chosen under the write
 * lock. So each entry was posted either by that moment or after it.
 */
export function audit(db: DatabaseSync, run: Run, dialect: Dialect, options: VerifyOptions): Audited {
  const findings: string[] = []
  return sayingDamage(findings, () => {
    const momentMs = transact(db, () => {
      findings.push(...run(checkMoment(dialect, 'the file')))
      return run(takeMoment(dialect))
    })
    return readLedger(db, run, dialect, { options, findings, momentMs })
  })
}

/** Runs `work`. If the file is damaged, the damage and its cure are added to the findings (B23). */
function sayingDamage(findings: string[], work: () => Audited): Audited {
  try {
    return work()
  } catch (error) {
    if (!isDamage(error)) throw error
    findings.push(`the file: ${(error as Error).message}: restore a backup`)
    return { findings, head: undefined }
  }
}

/** Verifies the ledger in one snapshot, so a busy server may keep running. */
function readLedger(db: DatabaseSync, run: Run, dialect: Dialect, ledger: LedgerAudit): Audited {
  return readTogether(db, () => {
    ledger.options.progress?.('verifying: looking for damage in the file')
    for (const finding of findDamage(db)) ledger.findings.push(finding)
    for (const finding of findForeignSchema(db)) ledger.findings.push(finding)
    return run(verifyLedger(dialect, verified, ledger))
  })
}

function* findDamage(db: DatabaseSync): Iterable<string> {
  for (const { integrity_check: text } of db.prepare('PRAGMA integrity_check').all()) {
    if (text !== 'ok') yield `the file: ${text}: restore a backup`
  }
  for (const name of ['request_id', 'reference']) {
    const twice = `SELECT ${name} AS id FROM entries WHERE ${name} IS NOT NULL GROUP BY ${name} HAVING count(*) > 1`
    for (const { id } of db.prepare(twice).iterate()) yield `${name} ${id}: is booked more than once`
  }
}

/**
 * Checks that the guards of the ledger exist unchanged (ruling C15): tables with their constraints, and triggers. A
 * foreign trigger is a finding, because it may change rows. Additional indexes and views are allowed.
 */
function* findForeignSchema(db: DatabaseSync): Iterable<string> {
  const theirs = readSchema(db)
  const isArchived = db.prepare('SELECT 1 FROM archives').get() !== undefined || theirs.has(archiveGuard)
  const ours = readOurSchema(isArchived)
  for (const [name, sql] of ours) {
    const found = theirs.get(name)
    if (found === undefined) yield `the file: ${name} is missing`
    else if (found !== sql) yield `the file: ${name} is not as triwire made it`
  }
  for (const name of theirs.keys()) {
    if (name.startsWith('trigger') && !ours.has(name)) yield `the file: ${name} is not triwire's`
  }
}

/** The trigger that exists after the first month was archived. */
const archiveGuard = 'trigger archived_entries_are_not_repeated'

const ourSchemas = new Map<boolean, ReadonlyMap<string, string>>()

/** Returns the schema as triwire makes it. It is kept, because making it takes longer than verifying a small ledger. */
function readOurSchema(isArchived: boolean): ReadonlyMap<string, string> {
  const known = ourSchemas.get(isArchived)
  if (known) return known
  const db = new DatabaseSync(':memory:', { readBigInts: true })
  try {
    migrate(db, 'memory')
    if (isArchived) db.exec(archiveGuards)
    const schema = readSchema(db)
    ourSchemas.set(isArchived, schema)
    return schema
  } finally {
    db.close()
  }
}

function readSchema(db: DatabaseSync): Map<string, string> {
  const rows = db.prepare("SELECT type, name, sql FROM sqlite_master WHERE type IN ('table', 'trigger')").all()
  return new Map(rows.map(({ type, name, sql }) => [`${type} ${name}`, sql as string]))
}
