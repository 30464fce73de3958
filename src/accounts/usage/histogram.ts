/*
 * Distributions of times, as counts in exponential buckets. Each bucket is 2^(1/8) times as wide as the previous one.
 * This is scale 3 of exponential histograms in OpenTelemetry and Prometheus. Two histograms are merged by adding their
 * counts. The error of a percentile stays within `percentileError`.
 */

/**
 * The number of the last bucket. Bucket `n` counts times up to 2^(n/8) ms that are too long for bucket `n - 1`. The
 * last bucket ends after four hours.
 */
const bucketMax = 191

/**
 * The largest relative error of a percentile. The reported time is the middle of a bucket. So the error is half the
 * width of the bucket, plus rounding.
 */
export const percentileError = 0.044

/** The count of each bucket. Empty buckets at the end are left out. */
export type BucketCounts = number[]

export function bucketOf(ms: number): number {
  return ms > 1 ? Math.min(bucketMax, Math.ceil(8 * Math.log2(ms))) : 0
}

export function addCounts(to: BucketCounts, from: readonly number[], sign: 1 | -1 = 1): void {
  for (let at = to.length; at < from.length; at++) to.push(0)
  for (const [at, count] of from.entries()) to[at]! += sign * count
}

/** Computes a percentile in ms; undefined without counts. @param share the percentile as a share, such as 0.95 */
export function percentileOf(counts: readonly number[], share: number): number | undefined {
  const all = counts.reduce((sum, count) => sum + count, 0)
  if (all <= 0) return undefined
  const rank = Math.max(1, Math.ceil(share * all))
  let passed = 0
  const bucket = counts.findIndex((count) => {
    passed += count
    return passed >= rank
  })
  if (bucket <= 0) return 1
  const [above, upTo] = [2 ** ((bucket - 1) / 8), 2 ** (bucket / 8)]
  // The harmonic mean of the bucket's ends. Its relative error is the same for a time at either end.
  return Number(((2 * above * upTo) / (above + upTo)).toPrecision(4))
}

/**
 * Encodes counts as pairs of numbers: the number of empty buckets to skip, and the count of the next bucket. Numbers
 * are in LEB128, seven bits in a byte.
 */
export function encodeCounts(counts: readonly number[]): Uint8Array {
  const bytes: number[] = []
  let skipped = 0
  for (const count of counts) {
    if (count === 0) skipped++
    else {
      put(bytes, skipped)
      put(bytes, count)
      skipped = 0
    }
  }
  return Uint8Array.from(bytes)
}

/**
 * The separator between two results of `encodeCounts`, in hexadecimal. If it is read as a pair (bucket and count), the
 * count is 0. No result contains such a pair.
 */
export const countsBreakHex = '0000'

/**
 * Adds counts from one or more results of `encodeCounts`, joined by `countsBreakHex`. Invalid bytes end the reading.
 */
export function addEncoded(to: BucketCounts, bytes: Uint8Array | null): void {
  if (bytes === null) return
  let [bucket, value, factor, isCount] = [0, 0, 1, false]
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!
    value += (byte & 127) * factor
    factor *= 128
    if (byte >= 128) continue
    if (!isCount) bucket += value
    if (bucket > bucketMax) return
    if (isCount && value === 0) bucket = 0
    else if (isCount) {
      for (let empty = to.length; empty <= bucket; empty++) to.push(0)
      to[bucket]! += value
      bucket++
    }
    isCount = !isCount
    value = 0
    factor = 1
  }
}

function put(bytes: number[], value: number): void {
  let left = value
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) | 128)
  bytes.push(left)
}
