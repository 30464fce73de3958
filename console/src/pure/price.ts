import type { Explanation } from '../shapes.ts'
import { readCredits } from './format.ts'

type PriceLine = { what: string; count: number; rate: string; nanos: bigint; isCall: boolean }

type Usage = NonNullable<Explanation['usage']>
type Price = NonNullable<Explanation['price']>

/**
 * Computes the cost of each kind of tokens by the prices of the request: credits per million tokens, or per call. A
 * long input has the prices of the last step that the whole input exceeds.
 */
export function priceLines(usage: Usage, price: Price): PriceLine[] {
  const input = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
  const rates = price.steps?.findLast(({ above }) => input > above) ?? price
  const kinds = [
    ['Input', usage.input_tokens, rates.input],
    ['From cache', usage.cache_read_tokens, rates.cache_read],
    ['Into cache', usage.cache_write_tokens - usage.cache_write_1h_tokens, rates.cache_write],
    ['Into cache for an hour', usage.cache_write_1h_tokens, rates.cache_write_1h],
    ['Output', usage.output_tokens, rates.output],
  ] as const
  const tokens = kinds
    .filter(([, count]) => count > 0)
    .map(([what, count, rate]) => ({
      ...{ what, count, rate, isCall: false },
      nanos: (BigInt(count) * readCredits(rate)) / 1_000_000n,
    }))
  const calls = Object.entries(usage.calls ?? {})
    .filter(([, count]) => count > 0)
    .map(([kind, count]) => {
      const rate = price.calls?.[kind] ?? '0'
      return {
        what: `Calls of ${kind.replaceAll('_', ' ')}`,
        count,
        rate,
        isCall: true,
        nanos: BigInt(count) * readCredits(rate),
      }
    })
  return [...tokens, ...calls]
}
