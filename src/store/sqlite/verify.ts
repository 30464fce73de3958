import type { DatabaseSync } from 'node:sqlite'
import type { Entry, LogLine, VerifyOptions } from '../../accounts/entries.ts'
import type { Debit } from '../../accounts/ledger.ts'
import { readEntry } from './entries.ts'

/**
 * Reads the whole ledger and does every sum again, in one snapshot, so that it may run beside a busy server: entries are
 * numbered without holes, each balance follows from the one before, the last is the account's, and each amount follows
 * from its tokens and prices.
 * @returns the findings in words
 */
export function verify(db: DatabaseSync, { priceNanos, log }: VerifyOptions): string[] {
  const findings: string[] = []
  db.exec('BEGIN')
  try {
    for (const { integrity_check: text } of db.prepare('PRAGMA integrity_check').all()) {
      if (text !== 'ok') findings.push(`the file: ${text}`)
    }
    for (const name of ['request_id', 'reference']) {
      const twice = `SELECT ${name} AS id FROM entries WHERE ${name} IS NOT NULL GROUP BY ${name} HAVING count(*) > 1`
      for (const { id } of db.prepare(twice).iterate()) findings.push(`${name} ${id}: is booked more than once`)
    }
    const prices = readPrices(db)
    const logged = log && indexLog(log, findings)
    const ends = new Map<string, { seq: number; balanceNanos: bigint }>()
    for (const row of db.prepare('SELECT * FROM entries ORDER BY account_id, seq').iterate()) {
      const entry = readEntry(row)
      checkChain(entry)
      if (entry.bill) checkBill(entry, entry.bill)
    }
    for (const account of db.prepare('SELECT id, balance, seq FROM accounts').iterate()) {
      const end = ends.get(account.id as string) ?? { seq: 0, balanceNanos: 0n }
      if (account.balance !== end.balanceNanos) {
        findings.push(`account ${account.id}: balance ${account.balance}, its entries sum to ${end.balanceNanos}`)
      }
      if (Number(account.seq) !== end.seq) {
        findings.push(`account ${account.id}: should have ${account.seq} entries, the last is number ${end.seq}`)
      }
      ends.delete(account.id as string)
    }
    for (const id of ends.keys()) findings.push(`account ${id}: has entries and does not exist`)
    for (const id of logged?.keys() ?? []) findings.push(`request ${id}: billed in the log, not in the ledger`)
    return findings

    function checkChain(entry: Entry): void {
      const { accountId, seq, kind, amountNanos, balanceAfterNanos } = entry
      const last = ends.get(accountId) ?? { seq: 0, balanceNanos: 0n }
      const place = `account ${accountId}, entry ${seq}`
      if (seq !== last.seq + 1) findings.push(`${place}: follows entry ${last.seq}`)
      const balanceNanos = last.balanceNanos + (kind === 'credit' ? amountNanos : -amountNanos)
      if (balanceAfterNanos !== balanceNanos) {
        findings.push(`${place}: balance after it is ${balanceAfterNanos}, should be ${balanceNanos}`)
      }
      // From the sum and not from what is written, so that one forged balance is one finding and the end is still checked.
      ends.set(accountId, { seq, balanceNanos })
    }

    function checkBill({ amountNanos }: Entry, bill: NonNullable<Entry['bill']>): void {
      const { requestId } = bill
      const price = prices.get(bill.priceVersion)
      if (!price) findings.push(`request ${requestId}: its prices ${bill.priceVersion} are not known`)
      else {
        const due = bill.usageSource === 'waived' ? 0n : priceNanos(price, bill.usage)
        if (amountNanos !== due) findings.push(`request ${requestId}: billed ${amountNanos}, its tokens cost ${due}`)
      }
      if (!logged) return
      const line = logged.get(requestId)
      logged.delete(requestId)
      if (!line) findings.push(`request ${requestId}: in the ledger, not in the log`)
      else if (line.amountNanos !== amountNanos || line.outcome !== bill.outcome) {
        const said = `${line.amountNanos} ${line.outcome}`
        findings.push(`request ${requestId}: the log says ${said}, the ledger ${amountNanos} ${bill.outcome}`)
      }
    }
  } finally {
    db.exec('COMMIT')
  }
}

function readPrices(db: DatabaseSync): Map<string, Debit['prices']> {
  const rows = db.prepare('SELECT * FROM prices').all() as Record<string, unknown>[]
  return new Map(
    rows.map((row) => [
      row.version as string,
      {
        inputNanos: row.input as bigint,
        cacheReadNanos: row.cache_read as bigint,
        cacheWriteNanos: row.cache_write as bigint,
        cacheWrite1hNanos: row.cache_write_1h as bigint,
        outputNanos: row.output as bigint,
      },
    ]),
  )
}

function indexLog(log: Iterable<LogLine>, findings: string[]): Map<string, LogLine> {
  const lines = new Map<string, LogLine>()
  for (const line of log) {
    if (lines.has(line.requestId)) findings.push(`request ${line.requestId}: has two lines in the log`)
    lines.set(line.requestId, line)
  }
  return lines
}
