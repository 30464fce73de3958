import type { Cell } from './cell.ts'
import type { Place } from './place.ts'

/** Returns the figures of a table cell from the ledger: requests, cost and share of cached input. */
export function bill({ gateway }: Place): Pick<Cell, 'requests' | 'cost' | 'hitRate'> {
  const entries = [...gateway.store.listEntries({ limit: 10_000 })].filter((entry) => entry.bill)
  let [costNanos, read, all] = [0n, 0, 0]
  for (const { amountNanos, bill } of entries) {
    costNanos += amountNanos
    const { inputTokens, cacheReadTokens, cacheWriteTokens } = bill!.usage
    read += cacheReadTokens
    all += inputTokens + cacheReadTokens + cacheWriteTokens
  }
  const hitRate = all === 0 ? 0 : Math.round((read / all) * 100) / 100
  return { requests: entries.length, cost: (Number(costNanos) / 1e9).toFixed(4), hitRate }
}
