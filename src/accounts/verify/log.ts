import type { LogLine } from '../entries.ts'
import type { VerifiedBill, VerifiedEntry } from '../entry-row.ts'
import type { Debit } from '../ledger.ts'

const counters = {
  inputTokens: 'input',
  cacheReadTokens: 'cache_read',
  cacheWriteTokens: 'cache_write',
  cacheWrite1hTokens: 'cache_write_1h',
  outputTokens: 'output',
  reasoningTokens: 'reasoning',
} as const satisfies Partial<Record<keyof Debit['usage'], string>>

/**
 * Compares each debit with its log line, and each billed log line with its debit. A debit is given back if its client
 * was refused. The log line of the request must then say `internal_error` (ruling C13).
 */
export function createLogCheck(log: Iterable<LogLine>, findings: string[]) {
  const lines = indexLog(log, findings)
  return { check, listOpen: () => [...lines.keys()], checkAway, end }

  function check(reading: VerifiedEntry, isReturned: boolean): void {
    const { bill, amountNanos } = reading.entry
    if (!bill) return
    const { requestId } = bill
    const line = lines.get(requestId)
    lines.delete(requestId)
    if (!line) {
      findings.push(`request ${requestId}: in the ledger, not in the log`)
      return
    }
    const isEqual = isReturned
      ? line.outcome === 'internal_error' && (line.cause === 'ledger_unsettled' || line.amountNanos === undefined)
      : line.amountNanos === amountNanos && line.outcome === bill.outcome
    if (!isEqual) {
      const ours = isReturned ? 'returned' : bill.outcome
      const said = `${line.amountNanos ?? 0n} ${line.outcome}${line.cause ? ` ${line.cause}` : ''}`
      findings.push(`request ${requestId}: the log says ${said}, the ledger ${amountNanos} ${ours}`)
    }
    for (const [what, said, booked] of differences(reading, bill, line))
      findings.push(`request ${requestId}: the log says ${what} ${said}, the ledger ${booked ?? 'none'}`)
  }

  /** Compares the log line of an archived debit with the account and the amount in the archive's index. */
  function checkAway(requestId: string, accountId: string, amountNanos: bigint): void {
    const line = lines.get(requestId)
    lines.delete(requestId)
    if (line?.amountNanos === undefined) return
    const said = { amount: line.amountNanos, account: line.accountId ?? accountId }
    if (said.amount !== amountNanos || said.account !== accountId)
      findings.push(
        `request ${requestId}: the log says ${said.amount} of ${said.account}, the index of its archive ${amountNanos} of ${accountId}`,
      )
  }

  function* differences(reading: VerifiedEntry, bill: VerifiedBill, line: LogLine): Iterable<Difference> {
    yield* different('account', line.accountId, reading.entry.accountId)
    if (line.accountId === undefined) yield* different('account', line.accountName, reading.accountName)
    yield* different('key', line.keyId, bill.keyId)
    // In the first release, entries named neither key nor upstream, and log lines had no key id. Then there is nothing
    // to compare.
    if (bill.keyId !== undefined || line.keyId !== undefined) {
      if (line.keyId === undefined) yield* different('key', line.keyPrefix, reading.keyPrefix)
      yield* different('upstream', line.upstream, bill.upstream)
      yield* different('upstream account', line.upstreamAccount, bill.upstreamAccount)
    }
    for (const [counter, name] of Object.entries(counters) as [keyof typeof counters, string][])
      yield* different(name, line.usage?.[counter], bill.usage[counter])
  }

  function end(): void {
    for (const { requestId, amountNanos } of lines.values())
      if (amountNanos !== undefined) findings.push(`request ${requestId}: billed in the log, not in the ledger`)
  }
}

type Difference = [what: string, said: string | number, booked: string | number | undefined]

/** Yields a difference if the log line has the field and the ledger has another value. */
function* different(what: string, said: Difference[1] | undefined, booked: Difference[2]): Iterable<Difference> {
  if (said !== undefined && said !== booked) yield [what, said, booked]
}

function indexLog(log: Iterable<LogLine>, findings: string[]): Map<string, LogLine> {
  const lines = new Map<string, LogLine>()
  for (const line of log) {
    if (lines.has(line.requestId)) findings.push(`request ${line.requestId}: has two lines in the log`)
    lines.set(line.requestId, line)
  }
  return lines
}
