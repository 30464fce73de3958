import { createHash } from 'node:crypto'
import { isSameZone, zoneOffset } from '../accounts/calendar.ts'
import { nanosPerCredit } from '../accounts/credit.ts'
import { asObject } from '../bytes/json.ts'
import type { Band, PriceList, PriceRow, PriceSet, Prices, Rates, Tier } from '../catalog/model.ts'
import { edgesOf, isWithin, setKey } from '../catalog/price-list.ts'
import { keepList } from './list-text.ts'
import {
  type BandEntry,
  type Calendars,
  calendars as calendarsSchema,
  daysOf,
  type PlanEntries,
  type PriceRowEntry,
  type PricesEntry,
  prices as pricesSchema,
  type WrittenRates,
  weekdaysOf,
  windowsOf,
} from './price-schema.ts'

/** Returns the rows of prices, each with its path. The file may have a list of rows by date, or only one row. */
export function rowsOf<Row>(prices: Row | readonly Row[]): { row: Row; path: PropertyKey[] }[] {
  if (!Array.isArray(prices)) return [{ row: prices as Row, path: ['prices'] }]
  return prices.map((row: Row, index) => ({ row, path: ['prices', index] }))
}

/** Makes the price list of a valid entry: a set of prices for each row, band, tier and geography. */
export function readPriceList(entry: PricesEntry, calendars: Calendars = {}): PriceList {
  return createPriceList(
    rowsOf<PriceRowEntry>(entry).map(({ row }, index) => readRow(row, index, calendars, () => {})),
    [entry].flat()[0]!.counts,
  )
}

/**
 * Makes a price list from complete rows.
 * @param counts whether the start of the request or the end of the answer decides which row applies
 */
export function createPriceList(rows: readonly PriceRow[], counts: PriceList['counts'] = 'end'): PriceList {
  const sets = rows.flatMap((row) => row.sets.flatMap((ofBand) => [...ofBand.values()]))
  const all = sets.flatMap(({ prices }) => [prices, ...(prices.steps ?? [])])
  return {
    rows,
    only: sets.length === 1 ? sets[0] : undefined,
    counts,
    hasCalls: sets.some(({ prices }) => prices.calls !== undefined),
    hasCheaperReads: all.some((rates) => rates.cacheReadNanos < rates.inputNanos),
    hasDearerWrites: all.some(
      ({ inputNanos, cacheWriteNanos, cacheWrite1hNanos }) =>
        cacheWriteNanos > inputNanos || cacheWrite1hNanos > inputNanos,
    ),
    kept: keepList(rows, counts),
    holds: new Map(),
  }
}

/** Makes a model's price lists for all plans. A plan has a factor for all prices, or prices of its own (ruling C11). */
export function readPlans(
  { id, prices }: { id: string; prices: PricesEntry },
  { plans = {}, calendars = {} }: { plans?: PlanEntries; calendars?: Calendars },
  report: (plan: string, path: PropertyKey[], message: string) => void = () => {},
): ReadonlyMap<string, PriceList> {
  const lists = Object.entries(plans).map(([name, { times, models = {} }]) => {
    const own = Object.hasOwn(models, id) ? models[id] : undefined
    if (own !== undefined && typeof own !== 'bigint') return [name, readPriceList(own, calendars)] as const
    const path = own === undefined ? ['times'] : ['models', id]
    const list = readPriceList(prices, calendars)
    const factor = own ?? times
    if (factor === undefined) return [name, list] as const
    const say: ReportMistake = (_, message) => report(name, path, message)
    return [
      name,
      createPriceList(
        list.rows.map((row) => planRow(row, factor, say)),
        list.counts,
      ),
    ] as const
  })
  return new Map(lists)
}

function planRow(row: PriceRow, times: bigint, report: ReportMistake): PriceRow {
  const planSet = (set: PriceSet): PriceSet => {
    const { calls } = set.prices
    const prices = { ...applyAll(set.prices, [{ path: [], change: times }], report), ...(calls && { calls }) }
    return { ...set, prices, version: hashPrices(prices) }
  }
  return { ...row, sets: row.sets.map((ofBand) => new Map(Array.from(ofBand, ([key, set]) => [key, planSet(set)]))) }
}

/**
 * Finds mistakes in plans (prices for some accounts). A mistake is a price that is not exact, or an unknown model.
 * @param file a file without other mistakes
 */
export function* planMistakes(file: {
  plans: PlanEntries
  calendars: Calendars
  models: readonly { id: string; prices: PricesEntry }[]
}): PriceMistakes {
  const { models } = file
  const found: { path: PropertyKey[]; message: string }[] = []
  for (const model of models)
    readPlans(model, file, (plan, path, message) => {
      found.push({ path: ['plans', plan, ...path], message: `with model ${model.id} ${message}` })
    })
  for (const [name, { models: own = {} }] of Object.entries(file.plans)) {
    for (const [id, prices] of Object.entries(own)) {
      const path = ['plans', name, 'models', id]
      if (!models.some((model) => model.id === id))
        found.push({ path, message: 'must be the id of a model of the catalog' })
      if (typeof prices === 'bigint') continue
      const known = Object.keys(file.calendars)
      listMistakes(
        prices,
        file.calendars,
        known,
        Date.now(),
        ([, ...rest], message) => void found.push({ path: [...path, ...rest], message }),
      )
    }
  }
  yield* found
}

type ReportMistake = (path: PropertyKey[], message: string) => void
type PriceMistakes = Iterable<{ path: PropertyKey[]; message: string }>

/**
 * Finds mistakes that involve several keys of prices: rows that are not in the order of their dates, overlapping bands,
 * inexact factors, unknown calendars.
 * @param raw the raw file; prices that the schema refuses are skipped
 */
export function* priceMistakes(raw: unknown, nowMs = Date.now()): PriceMistakes {
  const { catalog, calendars: written } = raw as { catalog?: { models?: unknown }; calendars?: unknown }
  if (!Array.isArray(catalog?.models)) return
  const calendars: Calendars = {}
  for (const [name, value] of Object.entries(asObject(written) ?? {})) {
    const { data } = calendarsSchema.safeParse({ [name]: value })
    if (data) Object.assign(calendars, data)
  }
  const known = Object.keys(asObject(written) ?? {})
  for (const [index, model] of catalog.models.entries()) {
    for (const { at, value } of listsOf(model)) {
      const { data: prices } = pricesSchema.safeParse(value)
      if (prices === undefined) continue
      const found: { path: PropertyKey[]; message: string }[] = []
      listMistakes(prices, calendars, known, nowMs, ([, ...path], message) => void found.push({ path, message }))
      for (const { path, message } of found) yield { path: ['catalog', 'models', index, ...at, ...path], message }
    }
  }
}

/** Returns the raw price lists of a model: its prices, and the costs of its providers. */
function listsOf(model: unknown): { at: PropertyKey[]; value: unknown }[] {
  const { prices, cost, upstream } = asObject(model) ?? {}
  const routes = Array.isArray(upstream) ? upstream : []
  const ofRoutes = routes.map((route, index) => ({ at: ['upstream', index, 'cost'], value: asObject(route)?.['cost'] }))
  return [{ at: ['prices'], value: prices }, { at: ['cost'], value: cost }, ...ofRoutes]
}

function listMistakes(
  prices: PricesEntry,
  calendars: Calendars,
  known: readonly string[],
  nowMs: number,
  report: ReportMistake,
): void {
  const rows = rowsOf<PriceRowEntry>(prices)
  for (const [index, { row, path }] of rows.entries()) {
    const { from, counts = 'end' } = row
    const before = rows[index - 1]?.row
    if (from === undefined && before)
      report([...path, 'from'], 'is missing: each row after the first has the moment from which it holds')
    if (from !== undefined && before?.from !== undefined && from <= before.from)
      report([...path, 'from'], 'must be later than the `from` of the row before it')
    if (from !== undefined && !before && from > nowMs)
      report([...path, 'from'], 'has not come yet, and no row holds until then: write the prices of today before it')
    if (before && counts !== (before.counts ?? 'end'))
      report([...path, 'counts'], `must be the same in all rows: the row before it has ${before.counts ?? 'end'}`)
    checkRow(row, path, calendars, known, report)
  }
}

function checkRow(
  row: PriceRowEntry,
  path: PropertyKey[],
  calendars: Calendars,
  known: readonly string[],
  report: ReportMistake,
) {
  const { bands = [] } = row
  let isSound = true
  const complain: ReportMistake = (at, message) => {
    isSound = false
    report([...path, ...at], message)
  }
  for (const [index, band] of bands.entries()) {
    const at = ['bands', index]
    const twin = bands.findIndex(({ name }) => name === band.name)
    if (twin < index) complain([...at, 'name'], `is also the name of bands[${twin}]; give each its own`)
    checkCalendar(band, at, calendars, known, complain)
  }
  checkWritten(row, complain)
  if (!isSound) return
  const read = bands.map((band) => readBand(band, calendars))
  for (const [index, band] of read.entries()) {
    const other = read.findIndex((one, i) => i < index && overlaps(one, band, bands[i]!, bands[index]!, calendars))
    if (other >= 0)
      complain(
        ['bands', index],
        `overlaps bands[${other}] (${bands[other]!.name}): at each minute one band at most may hold; change the days or hours of one`,
      )
  }
  if (isSound) readRow(row, 0, calendars, complain)
}

const kinds = ['cache_read', 'cache_write', 'cache_write_1h', 'cache_write_12h'] as const

/** Reports prices that are missing in a step, or in a band, tier or geography that lists prices instead of a factor. */
function checkWritten(row: PriceRowEntry, report: ReportMistake): void {
  const { bands = [], tiers = {}, geos = {} } = row
  checkSteps(row, [], report)
  const check = (written: WrittenRates, at: PropertyKey[]) => {
    for (const kind of [...kinds, 'steps'] as const)
      if (row[kind] !== undefined && written[kind] === undefined)
        report([...at, kind], 'is missing: prices that are written out stand for all that the row has')
    checkSteps(written, at, report)
  }
  for (const [index, { times, input, output, ...own }] of bands.entries())
    if (times === undefined && input !== undefined && output !== undefined)
      check({ ...own, input, output }, ['bands', index])
  for (const [key, map] of Object.entries({ tiers, geos }))
    for (const [name, written] of Object.entries(map)) if (typeof written !== 'bigint') check(written, [key, name])
}

/** Reports steps that are not in rising order, or that lack a kind of price which `base` has. */
function checkSteps({ steps = [], ...base }: WrittenRates, path: PropertyKey[], report: ReportMistake): void {
  for (const [place, step] of steps.entries()) {
    const at = [...path, 'steps', place]
    if (place > 0 && step.above <= steps[place - 1]!.above)
      report([...at, 'above'], 'must be more than the `above` of the step before it')
    for (const kind of kinds)
      if (base[kind] !== undefined && step[kind] === undefined)
        report([...at, kind], 'is missing: what has a price has one in every step')
  }
}

function checkCalendar(
  band: BandEntry,
  at: PropertyKey[],
  calendars: Calendars,
  known: readonly string[],
  report: ReportMistake,
) {
  const { not_on: name, zone } = band
  if (name === undefined) return
  const calendar = Object.hasOwn(calendars, name) ? calendars[name] : undefined
  if (!known.includes(name)) {
    const others = known.length > 0 ? `: ${known.join(', ')}` : '; there is none yet'
    report([...at, 'not_on'], `must name an entry of calendars${others}`)
  } else if (calendar && zone !== undefined && !isSameZone(zone, calendar.zone))
    report([...at, 'zone'], `must be the zone of its calendar ${name}, ${calendar.zone}: whose days are meant?`)
}

/** A span of two years, in which every time zone makes each of its clock changes. */
const [searchedFromMs, searchedDays] = [Date.UTC(2026, 0, 1), 731]

/**
 * Whether two bands (hours with other prices) overlap. If their zone is the same, one week is compared, and otherwise
 * two years.
 */
function overlaps(one: Band, other: Band, a: BandEntry, b: BandEntry, calendars: Calendars): boolean {
  const isOneZone = isSameZone(zoneOf(a, calendars), zoneOf(b, calendars))
  // Days off are ignored, because a calendar lists them only up to some day. After that day, bands apply on all days,
  // and could overlap.
  const [first, second] = [one, other].map(
    (band): Band => ({ ...band, daysOff: new Set(), ...(isOneZone && { offsetAt: () => 0 }) }),
  ) as [Band, Band]
  const days = isOneZone ? 8 : searchedDays
  const edges = [first, second].flatMap((band) => edgesOf(band, searchedFromMs, days))
  return edges.some((ms) => [ms, ms - 1].some((at) => isWithin(first, at) && isWithin(second, at)))
}

function zoneOf({ zone, not_on: name }: BandEntry, calendars: Calendars): string {
  return zone ?? (name === undefined ? undefined : calendars[name]?.zone) ?? 'UTC'
}

function readBand(entry: BandEntry, calendars: Calendars): Band {
  const calendar = entry.not_on === undefined ? undefined : calendars[entry.not_on]
  return {
    name: entry.name,
    zone: zoneOf(entry, calendars),
    offsetAt: zoneOffset(zoneOf(entry, calendars)),
    weekdays: weekdaysOf(entry),
    windows: windowsOf(entry),
    daysOff: calendar ? daysOf(calendar) : new Set(),
  }
}

/** A change of earlier prices. `change` is a factor in units of 10⁻⁹, or prices that replace all earlier ones. */
type Modifier = { path: PropertyKey[]; change: bigint | WrittenRates }

/**
 * Computes the prices of a row for each band, tier and geography. Reports a factor that makes a price with too many
 * decimals, or too large a price.
 */
function readRow(row: PriceRowEntry, index: number, calendars: Calendars, report: ReportMistake): PriceRow {
  const { bands = [], tiers = {}, geos = {}, calls = {}, steps, from = Number.NEGATIVE_INFINITY } = row
  const base = readRates({ ...row, steps })
  const some = Object.keys(calls).length > 0 && calls
  const choices = <Name extends string>(map: Partial<Record<Name, bigint | WrittenRates>>, key: string) => [
    { name: null, modifiers: [] as Modifier[] },
    ...(Object.entries(map) as [Name, bigint | WrittenRates][]).map(([name, change]) => ({
      name,
      modifiers: [{ path: [key, name], change }],
    })),
  ]
  const ofBands = [
    { name: null, modifiers: [] },
    ...bands.map((band, i) => ({ name: band.name, modifiers: [bandModifier(band, i)] })),
  ]
  const sets = ofBands.map(({ name: band, modifiers: first }) => {
    const found = new Map<string, PriceSet>()
    for (const { name: tier, modifiers: second } of choices<Tier>(tiers, 'tiers'))
      for (const { name: geo, modifiers: third } of choices<string>(geos, 'geos')) {
        const rates = applyAll(base, [...first, ...second, ...third], report)
        const prices: Prices = some ? { ...rates, calls: some } : rates
        const times = factorsOf({ band: first, tier: second, geo: third })
        found.set(setKey(tier, geo), { prices, version: hashPrices(prices), row: index, band, tier, geo, times })
      }
    return found
  })
  return { fromMs: from, bands: bands.map((band) => readBand(band, calendars)), sets }
}

function factorsOf(changes: Readonly<Record<'band' | 'tier' | 'geo', readonly Modifier[]>>): PriceSet['times'] {
  return Object.fromEntries(
    Object.entries(changes).flatMap(([name, [modifier]]) =>
      modifier ? [[name, typeof modifier.change === 'bigint' ? modifier.change : null]] : [],
    ),
  )
}

function bandModifier({ times, ...band }: BandEntry, index: number): Modifier {
  const path = ['bands', index]
  if (times !== undefined) return { path: [...path, 'times'], change: times }
  // The schema requires `input` and `output` here, so the defaults are never used.
  return { path, change: { ...band, input: band.input ?? 0n, output: band.output ?? 0n } }
}

/** The largest price that a factor may produce, in nano-credits per million tokens. */
const rateMaxNanos = 10n ** 18n

/**
 * Applies changes in order. A factor multiplies the prices. A set of prices replaces the result of all earlier changes.
 */
function applyAll(base: Prices, modifiers: readonly Modifier[], report: ReportMistake): Prices {
  let rates = base
  let factors: bigint[] = []
  for (const { change } of modifiers) {
    if (typeof change === 'bigint') factors.push(change)
    else {
      rates = readRates(change)
      factors = []
    }
  }
  if (factors.length === 0) return rates
  const times = factors.reduce((product, factor) => product * factor, 1n)
  const unit = nanosPerCredit ** BigInt(factors.length)
  let isExact = true
  const scale = (nanos: bigint) => {
    const scaled = nanos * times
    if (scaled % unit !== 0n || scaled / unit > rateMaxNanos) isExact = false
    return scaled / unit
  }
  const scaleAll = (one: Rates): Rates => ({
    inputNanos: scale(one.inputNanos),
    cacheReadNanos: scale(one.cacheReadNanos),
    cacheWriteNanos: scale(one.cacheWriteNanos),
    cacheWrite1hNanos: scale(one.cacheWrite1hNanos),
    outputNanos: scale(one.outputNanos),
  })
  const { steps } = rates
  const scaled: Prices = {
    ...scaleAll(rates),
    ...(steps && { steps: steps.map(({ above, ...own }) => ({ above, ...scaleAll(own) })) }),
  }
  if (!isExact)
    report(
      modifiers.at(-1)!.path,
      'makes a price that has more than 9 places or is too large, by itself or with another factor: write the prices out',
    )
  return scaled
}

/** Converts prices, with the defaults of ruling C1. `steps` is set only if the prices have steps (ruling C11). */
function readRates({ steps = [], ...rates }: WrittenRates): Prices {
  return {
    ...readOwnRates(rates),
    ...(steps.length > 0 && { steps: steps.map(({ above, ...own }) => ({ above, ...readOwnRates(own) })) }),
  }
}

function readOwnRates(rates: Omit<WrittenRates, 'steps'>): Rates {
  const cacheWriteNanos = rates.cache_write ?? rates.input
  const longWrites = [rates.cache_write_1h, rates.cache_write_12h].filter((nanos) => nanos !== undefined)
  return {
    inputNanos: rates.input,
    cacheReadNanos: rates.cache_read ?? rates.input,
    cacheWriteNanos,
    // One counter holds the tokens written for 1 h and for 12 h, so the higher price applies. No known provider has
    // both.
    cacheWrite1hNanos: longWrites.reduce(
      (most, nanos) => (nanos > most ? nanos : most),
      longWrites[0] ?? cacheWriteNanos,
    ),
    outputNanos: rates.output,
  }
}

/** Returns a digest of prices as twelve hex digits. Without steps and calls it is the same as in older releases. */
export function hashPrices(prices: Prices): string {
  const words = amountsOf(prices).map(String)
  for (const step of prices.steps ?? []) words.push(`above ${step.above}`, ...amountsOf(step).map(String))
  for (const kind of Object.keys(prices.calls ?? {}).sort()) words.push(`${kind} ${prices.calls![kind]}`)
  return createHash('sha256').update(words.join(' ')).digest('hex').slice(0, 12)
}

function amountsOf(rates: Rates): bigint[] {
  return [rates.inputNanos, rates.cacheReadNanos, rates.cacheWriteNanos, rates.cacheWrite1hNanos, rates.outputNanos]
}
