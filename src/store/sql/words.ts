import type { SumRow } from '../../accounts/usage/rollup.ts'
import { type Dialect, insertAll, type Put } from './dialect.ts'
import { ask, rowsOf, type StoreStep } from './step.ts'

/** Words that are remembered at once; each takes some 100 bytes. */
const wordsMax = 200_000

/** Words in one statement. */
const listMax = 500

type UsageWord = readonly [kind: string, word: string]

export type Words = ReturnType<typeof createWords>

export function wordKey(kind: string, word: string): string {
  return `${kind}\n${word}`
}

/** Words by their numbers in the store, which never change. The number of the empty word is 0. */
export function createWords(dialect: Dialect) {
  const { schema } = dialect
  const ids = new Map<string, number>()
  const words = new Map<number, string>()
  return { findIds, placesOf, readWords, forget }

  /** A transaction that was rolled back has numbered nothing, and other words get its numbers. */
  function forget(): void {
    ids.clear()
    words.clear()
  }

  /** The numbers of those words that have one, by `wordKey`. */
  function* findIds(asked: readonly UsageWord[]): StoreStep<Map<string, number>> {
    const unknown = asked.filter(([kind, word]) => word !== '' && !ids.has(wordKey(kind, word)))
    if (ids.size > wordsMax) ids.clear()
    for (const list of slices(unknown)) {
      const select = (put: Put) => {
        const pairs = list.map(([kind, word]) => `(${put(kind)}, ${put(word)})`)
        return `SELECT id, kind, word FROM ${schema}.usage_words WHERE (kind, word) IN (VALUES ${pairs.join(', ')})`
      }
      for (const { id, kind, word } of yield* ask(dialect, select))
        ids.set(wordKey(kind as string, word as string), Number(id))
    }
    return new Map(
      asked.flatMap(([kind, word]) => {
        const id = ids.get(wordKey(kind, word))
        return id === undefined ? [] : [[wordKey(kind, word), id] as const]
      }),
    )
  }

  /** The same for words that may be new. PostgreSQL commits them at once, so that nobody waits for the words of another server. */
  function* ensure(asked: readonly UsageWord[]): StoreStep<Map<string, number>> {
    const there = yield* findIds(asked)
    const missing = asked.filter(([kind, word]) => word !== '' && !there.has(wordKey(kind, word)))
    if (missing.length === 0) return there
    const sorted = missing.toSorted((a, b) => (wordKey(...a) < wordKey(...b) ? -1 : 1))
    for (const one of insertAll(dialect, 'usage_words', ['kind', 'word'], sorted, 'ON CONFLICT DO NOTHING'))
      yield* rowsOf({ ...one, isApart: true })
    return yield* findIds(asked)
  }

  /** @returns the values of these columns of each row, with words as their numbers. */
  function* placesOf(rows: readonly Pick<SumRow, 'place'>[], columns: readonly string[]): StoreStep<number[][]> {
    const named = rows.flatMap(({ place }) =>
      columns.flatMap((column) => (isWord(place[column]) ? [[column, place[column]] as const] : [])),
    )
    const there = yield* ensure([...new Map(named.map((one) => [wordKey(...one), one])).values()])
    const numberOf = (column: string, value: string | number) =>
      isWord(value) ? (there.get(wordKey(column, value)) ?? 0) : Number(value)
    return rows.map(({ place }) => columns.map((column) => numberOf(column, place[column]!)))
  }

  function* readWords(asked: Iterable<number>): StoreStep<ReadonlyMap<number, string>> {
    if (words.size > wordsMax) words.clear()
    words.set(0, '')
    for (const list of slices([...new Set(asked)].filter((id) => !words.has(id)))) {
      const text = `SELECT id, word FROM ${schema}.usage_words WHERE id IN (${list.join(', ')})`
      for (const { id, word } of yield* ask(dialect, () => text)) words.set(Number(id), word as string)
    }
    return words
  }
}

export function* slices<T>(list: readonly T[]): Iterable<readonly T[]> {
  for (let at = 0; at < list.length; at += listMax) yield list.slice(at, at + listMax)
}

/** The empty word has no number to look up. */
function isWord(value: string | number | undefined): value is string {
  return typeof value === 'string' && value !== ''
}
