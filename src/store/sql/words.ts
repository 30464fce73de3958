import type { SumRow } from '../../accounts/usage/rollup.ts'
import { type Dialect, insertAll, type Put } from './dialect.ts'
import { ask, rowsOf, type StoreStep } from './step.ts'

/** The most words to remember. Each takes about 100 bytes. */
const wordsMax = 200_000

/** The most words (such as names of models) that one statement looks up. */
const listMax = 500

type UsageWord = readonly [kind: string, word: string]

export type Words = ReturnType<typeof createWords>

export function wordKey(kind: string, word: string): string {
  return `${kind}\n${word}`
}

/** Creates the lookup of words, such as model names, and of their numbers in the store. The empty word has number 0. */
export function createWords(dialect: Dialect) {
  const { schema } = dialect
  let ids = new Map<string, number>()
  let words = new Map<number, string>()
  return { findIds, placesOf, readWords, forget }

  /**
   * Forgets all words. A rollback removes new words from the store, which may give their numbers to other words. So may
   * a promoted standby that lacks the last words.
   */
  function forget(): void {
    ids = new Map()
    words = new Map()
  }

  /** Finds the numbers of words. @returns the numbers of all remembered words, by `wordKey` */
  function* findIds(asked: readonly UsageWord[]): StoreStep<ReadonlyMap<string, number>> {
    if (ids.size > wordsMax) ids = new Map()
    // While this query runs, another query may replace `ids`.
    const known = ids
    const unknown = asked.filter(([kind, word]) => word !== '' && !known.has(wordKey(kind, word)))
    for (const list of slices(unknown)) {
      const select = (put: Put) => {
        const pairs = list.map(([kind, word]) => `(${put(kind)}, ${put(word)})`)
        return `SELECT id, kind, word FROM ${schema}.usage_words WHERE (kind, word) IN (VALUES ${pairs.join(', ')})`
      }
      for (const { id, kind, word } of yield* ask(dialect, select))
        known.set(wordKey(kind as string, word as string), Number(id))
    }
    return known
  }

  /**
   * Finds the numbers of words, and adds missing words. PostgreSQL commits new words separately, so that other servers
   * do not wait for the transaction.
   */
  function* ensure(asked: readonly UsageWord[]): StoreStep<ReadonlyMap<string, number>> {
    const there = yield* findIds(asked)
    const missing = asked.filter(([kind, word]) => word !== '' && !there.has(wordKey(kind, word)))
    if (missing.length === 0) return there
    const sorted = missing.toSorted((a, b) => (wordKey(...a) < wordKey(...b) ? -1 : 1))
    for (const one of insertAll(dialect, 'usage_words', ['kind', 'word'], sorted, 'ON CONFLICT DO NOTHING'))
      yield* rowsOf({ ...one, isApart: true })
    return yield* findIds(asked)
  }

  /** Returns for each row the values of these columns, with numbers instead of words. */
  function* placesOf(rows: readonly Pick<SumRow, 'place'>[], columns: readonly string[]): StoreStep<number[][]> {
    const values = columns.map((column) => [...new Set(rows.map(({ place }) => place[column]!))])
    const there = yield* ensure(
      columns.flatMap((column, at) => values[at]!.filter(isWord).map((word): UsageWord => [column, word])),
    )
    const numberOf = (column: string, value: string | number) =>
      isWord(value) ? (there.get(wordKey(column, value)) ?? 0) : Number(value)
    const numbers = columns.map((column, at) => new Map(values[at]!.map((value) => [value, numberOf(column, value)])))
    return rows.map(({ place }) => columns.map((column, at) => numbers[at]!.get(place[column]!)!))
  }

  function* readWords(asked: Iterable<number>): StoreStep<ReadonlyMap<number, string>> {
    if (words.size > wordsMax) words = new Map()
    const known = words
    known.set(0, '')
    for (const list of slices([...new Set(asked)].filter((id) => !known.has(id)))) {
      const text = `SELECT id, word FROM ${schema}.usage_words WHERE id IN (${list.join(', ')})`
      for (const { id, word } of yield* ask(dialect, () => text)) known.set(Number(id), word as string)
    }
    return known
  }
}

export function* slices<T>(list: readonly T[]): Iterable<readonly T[]> {
  for (let at = 0; at < list.length; at += listMax) yield list.slice(at, at + listMax)
}

/** Whether a value is a word whose number must be looked up. The empty word needs no lookup. */
function isWord(value: string | number): value is string {
  return typeof value === 'string' && value !== ''
}
