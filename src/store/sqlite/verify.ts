import type { DatabaseSync } from 'node:sqlite'
import { type Audited, type Entry, returnReference, type VerifyOptions } from '../../accounts/entries.ts'
import { readEntry, readPrices } from '../../accounts/entry-row.ts'
import type { Debit } from '../../accounts/ledger.ts'
import type { AccountEnd } from '../../accounts/verify/chain.ts'
import { findUncounted } from '../../accounts/verify/spends.ts'
import { createVerification } from '../../accounts/verify/verification.ts'
import { isDamage } from '../files/cures.ts'
import { readNowMs } from '../sql/clock.ts'
import type { Dialect } from '../sql/dialect.ts'
import { joinNames, readingColumns, readReading } from '../sql/entries.ts'
import { checkMoment, takeMoment } from '../sql/head.ts'
import { readSpendRows, selectBudgeted, selectSpends } from '../sql/spends.ts'
import { findUsageDifferences } from '../sql/usage-check.ts'
import { readTogether, transact } from './open.ts'
import type { Run } from './run.ts'
import { findForeignSchema } from './verify-schema.ts'

/** @property momentMs of the head that is to be made */
type LedgerReading = {
  db: DatabaseSync
  run: Run
  dialect: Dialect
  options: VerifyOptions
  nowMs: number
  momentMs?: number
}

/**
 * Verifies, and makes a head of what it read. The head's moment is written down while this connection holds the write lock, so
 * no post is under way. Entries that are in the ledger by then were posted by that moment. All others are posted after it.
 */
export function audit(db: DatabaseSync, run: Run, dialect: Dialect, options: VerifyOptions): Audited {
  try {
    const nowMs = run(readNowMs(dialect))
    const { findings, momentMs } = transact(db, () => ({
      findings: run(checkMoment(dialect, 'the file')),
      momentMs: run(takeMoment(dialect)),
    }))
    return readLedger({ db, run, dialect, options, nowMs, momentMs }, findings)
  } catch (error) {
    if (isDamage(error)) return { findings: [sayDamage(error as Error)], head: undefined }
    throw error
  }
}

/** A page that cannot be read is a finding like any other, and has a cure (B23). */
function sayDamage({ message }: Error): string {
  return `the file: ${message}: restore a backup`
}

/** Findings in words. */
export function verify(db: DatabaseSync, run: Run, dialect: Dialect, options: VerifyOptions): string[] {
  const nowMs = run(readNowMs(dialect))
  const findings = run(checkMoment(dialect, 'the file'))
  return readLedger({ db, run, dialect, options, nowMs }, findings).findings
}

/** In one snapshot, so that it may run beside a busy server. */
function readLedger(reading: LedgerReading, findings: string[]): Audited {
  try {
    return readTogether(reading.db, () => readAll(reading, findings))
  } catch (error) {
    if (!isDamage(error)) throw error
    findings.push(sayDamage(error as Error))
    return { findings, head: undefined }
  }
}

function readAll({ db, run, dialect, options, nowMs, momentMs }: LedgerReading, findings: string[]): Audited {
  // One by one: there may be more of them than a call takes arguments.
  const note = (found: Iterable<string>) => {
    for (const finding of found) findings.push(finding)
  }
  options.progress?.('verifying: looking for damage in the file')
  note(findDamage(db))
  note(findForeignSchema(db))
  const spends = readSpendRows(db.prepare(selectSpends('main')).all())
  const budgeted = db.prepare(selectBudgeted('main')).all()
  const counted = new Set(spends.map(({ scope }) => scope))
  note(
    findUncounted(
      budgeted.map(({ scope }) => scope as string),
      counted,
    ),
  )
  const { n } = db.prepare('SELECT count(*) AS n FROM entries').get()!
  const facts = { prices: readAllPrices(db), returns: readReturns(db), spends, entries: Number(n) }
  const verification = createVerification(options, facts, findings, momentMs)
  const select = `SELECT ${readingColumns} FROM entries e ${joinNames(dialect)} ORDER BY e.account_id, e.seq`
  for (const row of db.prepare(select).iterate()) verification.check(readReading(row))
  note(run(findUsageDifferences(dialect, options.progress)))
  return verification.end(
    readEnds(db),
    spends.map((spend) => ({ ...spend, tailNanos: 0n })),
    nowMs,
  )
}

function readAllPrices(db: DatabaseSync): Map<string, Debit['prices']> {
  const rows = db.prepare('SELECT * FROM prices').all()
  return new Map(rows.map((row) => [row.version as string, readPrices(row)]))
}

/** They are few: an index finds them by the beginning of their reference. */
function readReturns(db: DatabaseSync): Entry[] {
  const rows = db.prepare(`SELECT * FROM entries WHERE reference >= ?1 AND reference < ?1 || char(1114111)`)
  return rows.all(returnReference('')).map(readEntry)
}

function* readEnds(db: DatabaseSync): Iterable<AccountEnd> {
  for (const { id, balance, seq } of db.prepare('SELECT id, balance, seq FROM accounts').iterate())
    yield { id: id as string, balanceNanos: balance as bigint, seq: Number(seq) }
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
