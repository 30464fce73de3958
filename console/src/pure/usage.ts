import type { Figures, Measure, ModelRow, Percentiles, RequestRow, Series } from '../shapes.ts'
import { readCredits } from './format.ts'
import type { Values } from './stack.ts'

/* Prepares the figures of an answer of /usage for plots. Only figures that are parts of one whole are summed. */

type Percentile = 'p50' | 'p95' | 'p99'

/** Returns the values of one measure as numbers; a gap is null. */
export function valuesOf(figures: Figures, measure: Measure, percentile: Percentile = 'p95'): Values {
  const found = figures[measure]
  if (found === undefined) return []
  if (!Array.isArray(found)) return (found as Percentiles)[percentile]
  return (found as readonly (string | number | null)[]).map((value) =>
    value === null ? null : typeof value === 'string' ? Number(value) : value,
  )
}

/** Sums the credits of all buckets exactly, in nano-credits. */
export function sumOfCredits({ credits = [] }: Figures): bigint {
  return credits.reduce((sum, value) => sum + readCredits(value), 0n)
}

type Counted = Exclude<Measure, 'credits' | 'cache_share' | 'first_byte_ms' | 'total_ms'>

export function sumOf(figures: Figures, measure: Counted): number {
  return (figures[measure] ?? []).reduce((sum: number, value) => sum + (value ?? 0), 0)
}

type InputCounts = Pick<RequestRow, 'input_tokens' | 'cache_read_tokens' | 'cache_write_tokens'>

/** Returns all input tokens of a request; null if they are not known. */
export function inputOf({ input_tokens, cache_read_tokens, cache_write_tokens }: InputCounts): number | null {
  return input_tokens === null ? null : input_tokens + (cache_read_tokens ?? 0) + (cache_write_tokens ?? 0)
}

/** Computes the share of the input that was read from caches; undefined if there was no input. */
export function cacheShareOf(figures: Figures): number | undefined {
  const read = sumOf(figures, 'cache_read_tokens')
  const all = read + sumOf(figures, 'input_tokens') + sumOf(figures, 'cache_write_tokens')
  return all === 0 ? undefined : read / all
}

/** Kinds of tokens that do not overlap. Reasoning is not one of them: it is a part of the output. */
export const tokenKinds = [
  ['input_tokens', 'Input'],
  ['cache_read_tokens', 'From cache'],
  ['cache_write_tokens', 'Into cache'],
  ['output_tokens', 'Output'],
] as const satisfies readonly (readonly [Counted, string])[]

/** Identifies a series, in the same way in every answer. */
export function idOf({ of }: Series): string {
  const values = Object.values(of)
  return values.length === 0 ? 'all' : values.map((id) => id ?? '').join(' · ')
}

/** Returns the name of a series for people. */
export function labelOf(series: Series): string {
  const { of, named } = series
  const parts = Object.entries(of).map(([dimension, id]) => {
    const name = dimension === 'account' || dimension === 'key' ? named?.[dimension] : undefined
    return name ?? id ?? `no ${dimension}`
  })
  return parts.join(' · ') || 'all'
}

/** Computes which share of a sum, or of the longest bar, an amount is: from 0 to 1. */
export function shareOf(part: bigint, most: bigint): number {
  return most <= 0n ? 0 : Number(part) / Number(most)
}

/**
 * Returns the id under which reports have the figures that the page of a model shows. Requests to a chain count for the
 * model that answered, so the page of a chain shows those of its first model.
 */
export function countedAs({ id, chain }: Pick<ModelRow, 'id' | 'chain'>): string {
  return chain?.[0] ?? id
}

/** Whether a model is failing. A chain is failing if all its models are. @param failing the ids of failing models */
export function isFailing({ id, chain }: Pick<ModelRow, 'id' | 'chain'>, failing: readonly string[]): boolean {
  return (chain ?? [id]).every((one) => failing.includes(one))
}

/** For each column of a table, where its words have what the gateway finds a row by. */
const inBrackets: Readonly<Record<string, RegExp>> = { key: /\(([^()]+)\)$/, person: /\((per_\w+)\)$/ }

/**
 * Returns the word by which the gateway finds the key or the person of a row. A key's row shows its label and, in
 * brackets, its first characters. A person's row shows the id in brackets if others have the same name.
 */
export function askedAs(by: string, word: string): string {
  return inBrackets[by]?.exec(word)?.[1] ?? word
}
