import { createCalendar, isSameZone, quarterMs } from '../calendar.ts'
import { addCounts, addEncoded } from './histogram.ts'
import {
  type FoldProgress,
  type Series,
  type SumName,
  soundOutcomes,
  type TimeName,
  type UsageAnswer,
  type UsageGrouping,
  type UsageQuestion,
  type UsageState,
} from './question.ts'
import { paidDimensions, type SummedEntries, wordsOf } from './rollup.ts'

/** The tables of figures: by hour (`h`), by day for each account and key (`d`), and by day in total (`t`). */
export type Grain = 'h' | 'd' | 't'

/**
 * The queries that a store makes for one answer. All of them read the same snapshot. `S` is the type of the steps that
 * the store runs for a query.
 */
type UsageReader<S> = {
  state(): Generator<S, UsageState, unknown>
  /** Sums the entries that stored figures lack. Each row has `quarter` and all columns that distinguish figures. */
  tail(quarters: { from: number; to: number }): Generator<S, UsageTail, unknown>
  rows(reading: RowReading): Generator<S, FoundRow[], unknown>
  /** Returns the same rows as `rows`, but computes them from the ledger entries instead of the stored figures. */
  entries(reading: RowReading): Generator<S, FoundRow[], unknown>
  /** Returns, for each key that was made by a rotation, the first key of its line (a key with its successors). */
  lines(keys: readonly string[]): Generator<S, ReadonlyMap<string, string>, unknown>
  /** Returns the person for each id of a person or an identity. People who were erased are left out. */
  persons(ids: readonly string[]): Generator<S, ReadonlyMap<string, { id: string }>, unknown>
  /** Returns the id of each key's person. Keys that belong to nobody are left out. */
  holders(keys: readonly string[]): Generator<S, ReadonlyMap<string, string>, unknown>
}

/**
 * The entries that the figures lack.
 * @property folding set if there are too many entries to read. `rows` is then empty
 */
export type UsageTail = { rows: readonly SummedEntries[]; folding?: FoldProgress | undefined }

/** A query for rows of figures. There is one row for each bucket and group, with the listed sums and times. */
export type RowReading = {
  table: 'usage' | 'traffic'
  grain: Grain
  bounds: readonly number[]
  by: readonly UsageGrouping[]
  only: UsageQuestion['only']
  /** If set, only rows of these groups are read. A group has one value for each grouping in `by`. */
  within?: readonly (readonly string[])[] | undefined
  sums: readonly SumName[]
  times: readonly TimeName[]
}

/** A row that a query has found. @property bucket the number of its bucket, from 0 */
export type FoundRow = {
  bucket: number
  of: readonly string[]
  /**
   * The values of `of` as the store has them. A key stands for itself, not for the first key of its line. An identity
   * stands for itself, not for its person.
   */
  own?: readonly string[]
  sums: readonly bigint[]
  times: readonly (Uint8Array | null)[]
}

/**
 * For these sums, servers also count traffic, because the ledger lacks some of it. For example, it has no requests that
 * cost nothing.
 */
const ofTraffic: readonly SumName[] = ['requests', 'errors', 'moved']

/**
 * Makes the queries, and computes the answer. Adds up the stored rows, and the entries that no stored row contains yet.
 * The named groups and `other` add up to the total.
 */
export function* readUsage<S>(reader: UsageReader<S>, question: UsageQuestion): Generator<S, UsageAnswer, unknown> {
  const { by, only, sums, times, sort, isWhole = false } = question
  const state = yield* reader.state()
  const unfolded = yield* reader.tail({
    from: Math.max(question.bounds[0]!, state.keptFrom),
    to: question.bounds.at(-1)!,
  })
  const isKept = !unfolded.folding && question.bounds[0]! >= state.keptFrom
  const isOfEntries = !areHours(question.bounds, state) || (isWhole && !isKept)
  const { rows, folding } = isOfEntries ? { rows: [] } : unfolded
  const own = rows.map((row) => ownOf(row, by))
  const join = yield* readJoin(reader, by, own)
  const tail = rows.map((row, at) => ({ row, of: join(own[at]!), own: own[at]! }))
  const keptFrom = isOfEntries ? 0 : state.keptFrom
  const bounds = question.bounds.map((bound) => Math.max(bound, keptFrom))
  const [from, to] = [bounds[0]!, bounds.at(-1)!]
  const isNarrow = [...by, ...Object.keys(only)].some((name) => narrow.includes(name))
  const isDays = question.daysOf !== undefined && isSameZone(question.daysOf.timeZone, state.timeZone)
  const grain: Grain = isDays ? (isNarrow ? 'd' : 't') : 'h'
  const asked = { bounds, only, sums, times, grain, isOfEntries, isWhole }
  // There can be many keys and accounts. So the first query ranks them by their totals, without buckets and times. A
  // second query then reads buckets and times only for the groups that the answer names.
  const isPlain = bounds.length === 2 && times.length === 0
  if (!isNarrow || by.length === 0 || isPlain) {
    const all = new Groups(question)
    all.addTail(tail)
    yield* readInto(reader, all, { ...asked, by })
    return { ...all.answer(), keptFrom, folding }
  }
  const ranked = new Groups({
    ...question,
    bounds: [from, to],
    sums: [...new Set([sort, ...sums.filter(isOfTraffic)])],
    times: [],
  })
  ranked.addTail(tail)
  yield* readInto(reader, ranked, { ...asked, by, bounds: [from, to], sums: ranked.sums, times: [] })
  const first = ranked.first()
  const wanted = new Groups(question)
  wanted.addTail(tail, new Set(first.map(({ of }) => keyOf(of))))
  const within = new Map(first.flatMap(({ parts }) => parts.map(ownWords)).map((own) => [keyOf(own), own]))
  yield* readInto(reader, wanted, { ...asked, by, within: [...within.values()] })
  const whole = new Groups({ ...question, by: [] })
  whole.addTail(rows.map((row) => ({ row, of: [], own: [] })))
  const hasAll = Object.keys(only).every((name) => !narrow.includes(name))
  yield* readInto(reader, whole, { ...asked, by: [], grain: isDays && hasAll ? 't' : grain })
  return { ...wanted.answerOf(whole, ranked.size), keptFrom, folding }
}

/** Whether each bound is the start of an hour in the zone. No figures are stored for shorter times. */
function areHours(bounds: readonly number[], zone: UsageState): boolean {
  const calendar = createCalendar(zone)
  return bounds.every((quarter) => calendar.periodOf(quarter * quarterMs, 'hour').startMs === quarter * quarterMs)
}

/** Dimensions that the table of daily totals lacks. */
const narrow = ['account', 'key', 'person', 'labels']

/** Reads figures of usage into `groups`. Also reads figures of traffic, if the question asks for any. */
function* readInto<S>(
  reader: UsageReader<S>,
  groups: Groups,
  { isOfEntries, isWhole, ...asked }: Omit<RowReading, 'table'> & Record<'isOfEntries' | 'isWhole', boolean>,
): Generator<S, void, unknown> {
  const { sums, times, only } = asked
  const isUnnamed = (name: UsageGrouping) => only[name]?.includes('') ?? true
  const read = isOfEntries ? reader.entries : reader.rows
  const counted = isWhole ? [] : sums.filter(isOfTraffic)
  if (sums.length > 0 && isUnnamed('code'))
    groups.add(yield* joinLines(reader, asked, read({ table: 'usage', ...asked, times: [] })), sums, [])
  if (counted.length + times.length === 0 || !paidDimensions.every(isUnnamed)) return
  // A request without a ledger entry names no person. So such a request is read by its key, and counts
  // for the person who has the key.
  const by = asked.by.map((name) => (name === 'person' ? 'key' : name))
  const rows = reader.rows({ table: 'traffic', ...asked, by, sums: counted })
  groups.add(yield* joinLines(reader, asked, rows, true), counted, times)
}

/**
 * Joins the groups of a key and its successors into one group, and the groups of a person's identities into another.
 * Entries of erased people count as entries without a person.
 * @param isByHolder whether the rows have a key instead of a person. They then count for the person who has the key
 */
function* joinLines<S>(
  reader: UsageReader<S>,
  { by }: Pick<RowReading, 'by'>,
  reading: Generator<S, FoundRow[], unknown>,
  isByHolder = false,
): Generator<S, FoundRow[], unknown> {
  const rows = yield* reading
  if (!by.includes('key') && !by.includes('person')) return rows
  const all = rows.map(({ of }) => of)
  const join = yield* readJoin(reader, by, all, isByHolder)
  return rows.map((row) => ({ ...row, of: join(row.of), own: row.of }))
}

/**
 * Returns a function that converts the values by which rows are grouped. A key becomes the first key of its line (a key
 * with its successors). A person's id in an entry may be that of a linked identity. It becomes the id of the person.
 * @param isByHolder whether the rows have the id of a key in place of a person's. It becomes the id of the key's person
 */
function* readJoin<S>(
  reader: UsageReader<S>,
  by: readonly UsageGrouping[],
  groups: readonly (readonly string[])[],
  isByHolder = false,
): Generator<S, (own: readonly string[]) => readonly string[], unknown> {
  const [key, person] = [by.indexOf('key'), by.indexOf('person')]
  const wordsAt = (place: number) => [...new Set(groups.map((of) => of[place]!))]
  const lines = key < 0 ? undefined : yield* reader.lines(wordsAt(key))
  const holders = person >= 0 && isByHolder ? yield* reader.holders(wordsAt(person)) : undefined
  const people = person < 0 ? undefined : yield* reader.persons(holders ? [...holders.values()] : wordsAt(person))
  const personOf = (word: string) => people!.get(holders ? (holders.get(word) ?? '') : word)?.id ?? ''
  return (own) =>
    own.map((word, at) => (at === key ? (lines!.get(word) ?? word) : at === person ? personOf(word) : word))
}

function ownOf(row: SummedEntries, by: readonly UsageGrouping[]): readonly string[] {
  const words: Record<UsageGrouping, string> = { ...wordsOf(row), code: '' }
  return by.map((name) => words[name])
}

type TailRow = { row: SummedEntries; of: readonly string[]; own: readonly string[] }

function ownWords({ row }: Group['parts'][number]): readonly string[] {
  return row.own ?? row.of
}

export function isOfTraffic(name: SumName): boolean {
  return ofTraffic.includes(name)
}

/** A group with its rows. The rows are added up by bucket only if the answer names the group. */
type Group = { of: readonly string[]; amount: bigint; parts: { row: FoundRow; places: FigureColumns }[] }

/** For each figure of a row, its position among the figures of the question. */
type FigureColumns = { sums: readonly number[]; times: readonly number[] }

/** Adds up figures by group and bucket (a time span of the question). */
class Groups {
  readonly sums: readonly SumName[]
  readonly #question: UsageQuestion
  readonly #groups = new Map<string, Group>()
  readonly #sort: number
  readonly #total: Series

  constructor(question: UsageQuestion) {
    this.#question = question
    this.sums = question.sums
    this.#sort = this.sums.indexOf(question.sort)
    this.#total = this.#empty()
  }

  get size(): number {
    return this.#groups.size
  }

  add(rows: readonly FoundRow[], sums: readonly SumName[], times: readonly TimeName[]): void {
    const places: FigureColumns = {
      sums: sums.map((name) => this.sums.indexOf(name)),
      times: times.map((name) => this.#question.times.indexOf(name)),
    }
    const sorted = places.sums.indexOf(this.#sort)
    for (const row of rows) {
      addRow(this.#total, row, places)
      if (this.#question.by.length === 0) continue
      const group = this.#groupOf(row.of)
      group.parts.push({ row, places })
      if (sorted >= 0) group.amount += row.sums[sorted]!
    }
  }

  /** Adds entries that no stored sum contains yet. @param within the keys of the wanted groups; undefined for all */
  addTail(rows: readonly TailRow[], within?: ReadonlySet<string>): void {
    const { only, bounds } = this.#question
    if (this.sums.length === 0) return
    const found: FoundRow[] = []
    for (const { row, of, own } of rows) {
      const words: Record<UsageGrouping, string> = { ...wordsOf(row), code: '' }
      const isMeant = Object.entries(only).every(([name, wanted]) => wanted.includes(words[name as UsageGrouping]))
      const bucket = bucketAt(bounds, Number(row['quarter']))
      if (!isMeant || bucket === undefined || (within && !within.has(keyOf(of)))) continue
      found.push({ bucket, of, own, sums: this.sums.map((name) => tailSum(row, name, words.outcome)), times: [] })
    }
    this.add(found, this.sums, [])
  }

  /** Returns the groups that the answer names, the highest amount first. Equal amounts are sorted by group values. */
  first(): Group[] {
    return this.#sorted().slice(0, this.#question.top)
  }

  answer(): Omit<UsageAnswer, 'keptFrom' | 'folding'> {
    return this.#tell(this.first(), this.#total, this.size)
  }

  /**
   * Makes an answer that names all groups of this object, which are a part of the groups of the question.
   * @param whole all groups of the question, for the total
   * @param size the number of all groups of the question
   */
  answerOf(whole: Groups, size: number): Omit<UsageAnswer, 'keptFrom' | 'folding'> {
    return this.#tell(this.#sorted(), whole.#total, size)
  }

  /** Makes the figures of the named groups and of all other groups. Together they are the total. */
  #tell(told: readonly Group[], total: Series, size: number): Omit<UsageAnswer, 'keptFrom' | 'folding'> {
    const groups = told.map(({ of, parts }) => {
      const series = this.#empty()
      for (const { row, places } of parts) addRow(series, row, places)
      return { of: [...of], ...series }
    })
    if (size === told.length) return { groups, other: undefined, total }
    const other = this.#empty()
    join(other, total)
    for (const group of groups) join(other, group, -1)
    return { groups, other: { ...other, count: size - told.length }, total }
  }

  #sorted(): Group[] {
    const all = Array.from(this.#groups, ([key, group]) => ({ key, group }))
    all.sort((a, b) => {
      if (a.group.amount !== b.group.amount) return a.group.amount > b.group.amount ? -1 : 1
      return a.key < b.key ? -1 : 1
    })
    return all.map(({ group }) => group)
  }

  #groupOf(of: readonly string[]): Group {
    const key = keyOf(of)
    const found = this.#groups.get(key)
    if (found) return found
    const made: Group = { of, amount: 0n, parts: [] }
    this.#groups.set(key, made)
    return made
  }

  #empty(): Series {
    const { bounds, times } = this.#question
    return {
      sums: this.sums.map(() => new Array<bigint>(bounds.length - 1).fill(0n)),
      times: times.map(() => Array.from({ length: bounds.length - 1 }, () => [])),
    }
  }
}

function addRow(to: Series, { bucket, sums, times }: FoundRow, places: FigureColumns): void {
  for (let at = 0; at < sums.length; at++) to.sums[places.sums[at]!]![bucket]! += sums[at]!
  for (let at = 0; at < times.length; at++) addEncoded(to.times[places.times[at]!]![bucket]!, times[at]!)
}

/** Joins values into a key for lookups only, with line breaks between them. Values contain no line breaks. */
function keyOf(of: readonly string[]): string {
  return of.join('\n')
}

function join(to: Series, from: Series, sign: 1 | -1 = 1): void {
  for (const [at, sums] of from.sums.entries())
    for (const [bucket, sum] of sums.entries()) to.sums[at]![bucket]! += BigInt(sign) * sum
  for (const [at, times] of from.times.entries())
    for (const [bucket, counts] of times.entries()) addCounts(to.times[at]![bucket]!, counts, sign)
}

/** Returns a sum of a row of unfolded entries. `errors` is the number of requests if they failed, otherwise 0. */
function tailSum(row: SummedEntries, name: SumName, outcome: string): bigint {
  if (name === 'errors') return soundOutcomes.includes(outcome) ? 0n : BigInt(row['requests'] as bigint)
  return BigInt((row[name] as bigint | string | null) ?? 0n)
}

/** Returns the bucket that contains a quarter hour; undefined if no bucket does. */
export function bucketAt(bounds: readonly number[], quarter: number): number | undefined {
  let [low, high] = [0, bounds.length - 1]
  if (quarter < bounds[low]! || quarter >= bounds[high]!) return undefined
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if (quarter >= bounds[middle]!) low = middle
    else high = middle
  }
  return low
}
