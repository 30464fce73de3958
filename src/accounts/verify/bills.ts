import { countCalls } from '../calls.ts'
import type { Entry, VerifyOptions } from '../entries.ts'
import type { VerifiedBill, VerifiedEntry } from '../entry-row.ts'
import type { Debit } from '../ledger.ts'

/** The facts for checking bills: all price versions of the ledger, and all of its entries that give a debit back. */
export type BillFacts = {
  prices: ReadonlyMap<string, Debit['prices']>
  /** The texts of price lists, by digest. */
  lists: ReadonlyMap<string, string>
  returns: Iterable<Entry>
}

type ListOptions = Pick<VerifyOptions, 'priceNanos' | 'readList'>

type ReadList = NonNullable<VerifyOptions['readList']>

/**
 * Checks that each amount follows from its tokens and prices. Also checks that each returned amount matches one debit
 * of the same account (ruling C13).
 */
export function createBillCheck(facts: BillFacts, options: ListOptions, findings: string[]) {
  const { prices, lists } = facts
  const { priceNanos } = options
  const readLists = new Map<string, ReturnType<ReadList>>()
  const returns = indexReturns(facts.returns, findings)
  const unpaired = new Set(returns.keys())
  return { check, isReturned, listUnpaired: () => [...unpaired], pair, end }

  function check({ entry }: VerifiedEntry): void {
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
    checkCost(entry, bill)
    checkList(entry, bill)
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

  /** Checks the provider's price of a request. The provider charges all tokens, even if the client pays for fewer. */
  function checkCost({ details }: VerifiedEntry['entry'], { requestId, usage, calls }: VerifiedBill): void {
    const { costVersion, costNanos } = details ?? {}
    if (costVersion === undefined && costNanos === undefined) return
    const price = costVersion === undefined ? undefined : prices.get(costVersion)
    if (!price) findings.push(`request ${requestId}: the prices of its cost, ${costVersion}, are not known`)
    else if (priceNanos(price, usage, calls) !== costNanos)
      findings.push(`request ${requestId}: has cost ${costNanos}, by its tokens ${priceNanos(price, usage, calls)}`)
  }

  /** Checks that the price list of an entry states the entry's prices for its time, band, tier and geography (C11). */
  function checkList(
    { createdMs, details = {} }: VerifiedEntry['entry'],
    { requestId, priceVersion }: VerifiedBill,
  ): void {
    const { list, band = null, tier = null, geo = null } = details
    if (list === undefined) {
      if (band ?? tier ?? geo) findings.push(`request ${requestId}: names a band, tier or geography of no price list`)
      return
    }
    const name = [band, tier, geo].filter((word) => word !== null).join(', ') || 'the base'
    try {
      const versions = listOf(list)({ createdMs, band, tier, geo })
      if (versions.has(priceVersion)) return
      const right = versions.size === 0 ? 'does not hold then' : `has the prices ${[...versions].join(', ')} then`
      findings.push(`request ${requestId}: billed by prices ${priceVersion}, and ${name} of its price list ${right}`)
    } catch (error) {
      findings.push(`request ${requestId}: its price list ${list} cannot be read: ${(error as Error).message}`)
    }
  }

  function listOf(digest: string): ReturnType<ReadList> {
    const known = readLists.get(digest)
    if (known) return known
    const text = lists.get(digest)
    if (text === undefined) throw new Error('the ledger does not keep its text')
    if (!options.readList) throw new Error('it is not known here')
    const read = options.readList(digest, text)
    readLists.set(digest, read)
    return read
  }

  function isReturned({ bill }: Entry): boolean {
    return bill !== undefined && returns.has(bill.requestId)
  }

  /** Matches a return (the entry that gives a debit back) with its debit, if the debit is in the file of an archive. */
  function pair(requestId: string, accountId: string, amountNanos: bigint): void {
    const given = returns.get(requestId)
    if (given?.accountId === accountId && given.amountNanos === amountNanos) unpaired.delete(requestId)
  }

  function end(): void {
    for (const id of unpaired) findings.push(`request ${id}: is returned and was never billed`)
  }
}

/** Indexes returns by the request id of the debit that they give back. */
function indexReturns(entries: Iterable<Entry>, findings: string[]): Map<string, Entry> {
  const returns = new Map<string, Entry>()
  for (const entry of entries) {
    if (!entry.returned) continue
    const { requestId } = entry.returned
    if (returns.has(requestId)) findings.push(`request ${requestId}: is returned twice`)
    else returns.set(requestId, entry)
  }
  return returns
}
