import type { Prices, Rates } from '../catalog/model.ts'

export const nanosPerCredit = 1_000_000_000n
/** The largest signed integer of 64 bits. In nano-credits, this is about 9.2 billion credits. */
export const nanosMax = 2n ** 63n - 1n

/**
 * Limits the sum of many debits to 64 bits. Without the limit, a sum that is larger than an account can hold would make
 * the next debit fail.
 */
export function clampNanos(nanos: bigint): bigint {
  if (nanos > nanosMax) return nanosMax
  return nanos < -nanosMax ? -nanosMax : nanos
}

/**
 * Parses credits as people write them, and returns nano-credits (ruling C1): `12.5` is 12,500,000,000.
 * @throws RangeError with a message for the person who wrote it
 */
export function parseCredits(text: string): bigint {
  const match = /^([+-]?)(\d+)(?:\.(\d{1,9}))?$/.exec(text)
  if (!match)
    throw new RangeError(`"${text}" is not an amount of credits: write it like 12 or 12.5, with at most 9 decimals`)
  const [, sign, whole, fraction = ''] = match
  const nanos = BigInt(whole!) * nanosPerCredit + BigInt(fraction.padEnd(9, '0'))
  if (nanos > nanosMax) throw new RangeError(`"${text}" is too large: the most is ${formatCredits(nanosMax)} credits`)
  return sign === '-' ? -nanos : nanos
}

/** Formats nano-credits as a decimal text in credits, without trailing zeros. The exact inverse of `parseCredits`. */
export function formatCredits(nanos: bigint): string {
  const sign = nanos < 0n ? '-' : ''
  const amount = nanos < 0n ? -nanos : nanos
  const fraction = (amount % nanosPerCredit).toString().padStart(9, '0').replace(/0+$/, '')
  return sign + amount / nanosPerCredit + (fraction && `.${fraction}`)
}

/**
 * Formats prices as in the configuration, as decimal texts: credits per million tokens, and credits per call. `steps`
 * and `calls` are left out if the prices have no steps or no calls.
 */
export function formatPrices({ steps, calls, ...rates }: Prices): FormattedPrices {
  return {
    ...formatRates(rates),
    ...(steps && { steps: steps.map(({ above, ...own }) => ({ above, ...formatRates(own) })) }),
    ...(calls && {
      calls: Object.fromEntries(Object.entries(calls).map(([kind, nanos]) => [kind, formatCredits(nanos)])),
    }),
  }
}

type FormattedPrices = FormattedRates & {
  steps?: (FormattedRates & { above: number })[]
  calls?: Record<string, string>
}

type FormattedRates = ReturnType<typeof formatRates>

/** Formats rates as in the configuration. */
export function formatRates(rates: Rates) {
  return {
    input: formatCredits(rates.inputNanos),
    cache_read: formatCredits(rates.cacheReadNanos),
    cache_write: formatCredits(rates.cacheWriteNanos),
    cache_write_1h: formatCredits(rates.cacheWrite1hNanos),
    output: formatCredits(rates.outputNanos),
  }
}
