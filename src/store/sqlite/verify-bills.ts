import type { DatabaseSync } from 'node:sqlite'
import { countCalls } from '../../accounts/calls.ts'
import { type Entry, returnReference, type VerifyOptions } from '../../accounts/entries.ts'
import { type Reading, readEntry, readPrices } from '../../accounts/entry-row.ts'

/** Each amount follows from its tokens and prices, and what was returned is one debit of the same account (ruling C13). */
export function createBillCheck(db: DatabaseSync, priceNanos: VerifyOptions['priceNanos'], findings: string[]) {
  const prices = new Map(
    db
      .prepare('SELECT * FROM prices')
      .all()
      .map((row) => [row.version as string, readPrices(row)]),
  )
  const returns = readReturns(db, findings)
  const unpaired = new Set(returns.keys())
  return { check, isReturned, end }

  function check({ entry }: Reading): void {
    const { amountNanos, bill } = entry
    if (!bill) return
    const { requestId, priceVersion } = bill
    const price = prices.get(priceVersion)
    if (!price) findings.push(`request ${requestId}: its prices ${priceVersion} are not known`)
    else {
      const due = bill.usageSource === 'waived' ? 0n : priceNanos(price, bill.usage, bill.calls)
      if (amountNanos !== due)
        findings.push(
          `request ${requestId}: billed ${amountNanos}, its tokens${bill.calls ? ' and calls' : ''} cost ${due}`,
        )
    }
    const counted = bill.calls ? countCalls(bill.calls) : bill.pricedCalls
    if (bill.pricedCalls !== counted)
      findings.push(`request ${requestId}: priced calls ${bill.pricedCalls}, of all kinds ${counted}`)
    const given = returns.get(requestId)
    if (!given) return
    unpaired.delete(requestId)
    if (given.accountId !== entry.accountId || given.amountNanos !== amountNanos || given.seq < entry.seq) {
      const [billed, returned] = [entry, given].map(({ amountNanos, accountId }) => `${amountNanos} of ${accountId}`)
      findings.push(`request ${requestId}: billed ${billed}, returned ${returned}`)
    }
  }

  function isReturned({ bill }: Entry): boolean {
    return bill !== undefined && returns.has(bill.requestId)
  }

  function end(): void {
    for (const id of unpaired) findings.push(`request ${id}: is returned and was never billed`)
  }
}

/** By the request id of what they give back. They are few: an index finds them by the beginning of their reference. */
function readReturns(db: DatabaseSync, findings: string[]): Map<string, Entry> {
  const rows = db.prepare(`SELECT * FROM entries WHERE reference >= ?1 AND reference < ?1 || char(1114111)`)
  const returns = new Map<string, Entry>()
  for (const entry of rows.all(returnReference('')).map(readEntry)) {
    if (!entry.returned) continue
    const { requestId } = entry.returned
    if (returns.has(requestId)) findings.push(`request ${requestId}: is returned twice`)
    else returns.set(requestId, entry)
  }
  return returns
}
