import type { SumRow } from '../../accounts/usage/rollup.ts'
import { wordKey } from '../sql/usage.ts'
import type { Transaction } from './database.ts'

/** Words that are remembered at once; each takes some 100 bytes. */
const wordsMax = 200_000

export type WordNumbers = ReturnType<typeof createWords>

/**
 * Words by their numbers, which are never others. Who is inside a transaction has them read on its connection: with another
 * one of the same pool all could wait for one that none of them gives back.
 * @param lane commits new words, and has a connection free whatever transactions are under way
 */
export function createWords(lane: Transaction) {
  const ids = new Map<string, number>()
  const words = new Map<number, string>()
  return { findIds, placesOf, readWords }

  /** Those that there are. */
  async function findIds(
    { query }: Transaction,
    asked: readonly (readonly [kind: string, word: string])[],
  ): Promise<Map<string, number>> {
    const unknown = asked.filter(([kind, word]) => word !== '' && !ids.has(wordKey(kind, word)))
    if (unknown.length > 0) {
      const rows = await query(
        `SELECT w.id, w.kind, w.word FROM unnest($1::text[], $2::text[]) AS asked (kind, word)
         JOIN triwire.usage_words w USING (kind, word)`,
        [unknown.map(([kind]) => kind), unknown.map(([, word]) => word)],
      )
      if (ids.size > wordsMax) ids.clear()
      for (const { id, kind, word } of rows) ids.set(wordKey(kind as string, word as string), id as number)
    }
    return new Map(
      asked.flatMap(([kind, word]) => {
        const id = ids.get(wordKey(kind, word))
        return id === undefined ? [] : [[wordKey(kind, word), id] as const]
      }),
    )
  }

  /** All of them, in a commit of their own: whoever adds rows waits for nobody's words. */
  async function ensure(
    transaction: Transaction,
    asked: readonly (readonly [kind: string, word: string])[],
  ): Promise<Map<string, number>> {
    const there = await findIds(transaction, asked)
    const missing = asked.filter(([kind, word]) => word !== '' && !there.has(wordKey(kind, word)))
    if (missing.length === 0) return there
    await lane.query(
      `INSERT INTO triwire.usage_words (kind, word) SELECT DISTINCT kind, word FROM unnest($1::text[], $2::text[]) AS new (kind, word)
       ORDER BY kind, word ON CONFLICT DO NOTHING`,
      [missing.map(([kind]) => kind), missing.map(([, word]) => word)],
    )
    return findIds(transaction, asked)
  }

  /** With words as their numbers. */
  async function placesOf(
    transaction: Transaction,
    rows: readonly Pick<SumRow, 'place'>[],
    columns: readonly string[],
  ): Promise<Record<string, number>[]> {
    const isWord = (value: unknown): value is string => typeof value === 'string'
    const named = rows.flatMap(({ place }) =>
      columns.flatMap((column) => (isWord(place[column]) ? [[column, place[column]] as const] : [])),
    )
    const ids = await ensure(transaction, [...new Map(named.map((one) => [wordKey(...one), one])).values()])
    const numberOf = (column: string, value: string | number) =>
      isWord(value) ? (ids.get(wordKey(column, value)) ?? 0) : value
    return rows.map(({ place }) =>
      Object.fromEntries(columns.map((column) => [column, numberOf(column, place[column]!)])),
    )
  }

  async function readWords({ query }: Transaction, asked: Iterable<number>): Promise<ReadonlyMap<number, string>> {
    const unknown = [...new Set(asked)].filter((id) => id !== 0 && !words.has(id))
    if (words.size > wordsMax) words.clear()
    words.set(0, '')
    if (unknown.length > 0)
      for (const { id, word } of await query('SELECT id, word FROM triwire.usage_words WHERE id = ANY ($1::int[])', [
        unknown,
      ]))
        words.set(id as number, word as string)
    return words
  }
}
