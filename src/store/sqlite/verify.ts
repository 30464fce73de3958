import type { DatabaseSync } from 'node:sqlite'
import { formatHead, HeadHash } from '../../accounts/chain.ts'
import type { Verdict, VerifyOptions } from '../../accounts/entries.ts'
import { type Reading, readEntry } from '../../accounts/entry-row.ts'
import { fixMoment } from './moment.ts'
import { readMoved } from './moved.ts'
import { isDamage, transact } from './open.ts'
import { createBillCheck } from './verify-bills.ts'
import { createChainCheck } from './verify-chain.ts'
import { findWrongMoment } from './verify-head.ts'
import { createLogCheck } from './verify-log.ts'
import { findForeignSchema } from './verify-schema.ts'

/**
 * Verifies, and makes a head of what it read. The head's moment is written down while this connection holds the write lock
 * and therefore no post is under way: what is in the ledger by then was posted by it, and all that comes is posted after it.
 */
export function audit(db: DatabaseSync, nowMs: number, options: VerifyOptions): Verdict {
  try {
    const { findings, momentMs } = transact(db, () => ({
      findings: [...findWrongMoment(db, nowMs)],
      momentMs: takeMoment(db, nowMs),
    }))
    return readLedger(db, options, findings, momentMs)
  } catch (error) {
    if (isDamage(error)) return { findings: [sayDamage(error as Error)], head: undefined }
    throw error
  }
}

/** A page that cannot be read is a finding like any other, and has a cure (B23). */
function sayDamage({ message }: Error): string {
  return `the file: ${message}: restore a backup`
}

/** Findings in words. @param nowMs Unix milliseconds. */
export function verify(db: DatabaseSync, nowMs: number, options: VerifyOptions): string[] {
  return readLedger(db, options, [...findWrongMoment(db, nowMs)]).findings
}

/** Of a store that was moved it is the last one: where the content is now its entries follow upon that. */
function takeMoment(db: DatabaseSync, nowMs: number): number {
  if (!readMoved(db)) return fixMoment(db, nowMs)
  return Number(db.prepare('SELECT moment_ms FROM head').get()?.moment_ms ?? 0)
}

/**
 * Reads the whole ledger and does every sum and every digest again, in one snapshot, so that it may run beside a busy
 * server. What each kind of forgery is found by is in docs/ledger.md.
 * @param findings what was found before; what is found here is added.
 * @param momentMs of the head that is to be made, none without it.
 */
function readLedger(db: DatabaseSync, options: VerifyOptions, findings: string[], momentMs?: number): Verdict {
  const { against } = options
  const heads = [momentMs, against?.momentMs].map((ms) => (ms === undefined ? undefined : new HeadHash(ms)))
  db.exec('BEGIN')
  try {
    findings.push(...findDamage(db), ...findForeignSchema(db))
    const chain = createChainCheck(db, findings)
    const bills = createBillCheck(db, options.priceNanos, findings)
    const log = options.log && createLogCheck(db, options.log, findings)
    for (const reading of readAll(db)) {
      const { accountId, postedMs, digest } = reading.entry
      chain.check(reading)
      bills.check(reading)
      log?.check(reading, bills.isReturned(reading.entry))
      for (const head of heads) head?.note(accountId, postedMs, digest)
    }
    chain.end()
    bills.end()
    log?.end()
  } catch (error) {
    if (!isDamage(error)) throw error
    findings.push(sayDamage(error as Error))
  } finally {
    db.exec('COMMIT')
  }
  const [head, then] = heads.map((head) => head?.end())
  if (then && then.hash !== against?.hash) {
    findings.push(`head of ${new Date(then.momentMs).toISOString()}: what it covered was changed, or is gone`)
  }
  return { findings, head: head && !findings.length ? formatHead(head) : undefined }
}

function* readAll(db: DatabaseSync): Iterable<Reading> {
  const rows = db.prepare(
    `SELECT e.*, k.account_id AS key_account_id FROM entries e LEFT JOIN keys k ON k.id = e.key_id ORDER BY e.account_id, e.seq`,
  )
  for (const row of rows.iterate()) {
    yield { entry: readEntry(row), row, keyAccountId: (row.key_account_id as string | null) ?? undefined }
  }
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
