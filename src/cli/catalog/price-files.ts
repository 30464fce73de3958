import { asObject } from '../../bytes/json.ts'
import type { PriceTexts, RateTexts, StepTexts } from '../../catalog/presets.ts'
import { readText } from '../print.ts'
import { readFastMode, readServices } from './file-services.ts'

/** The figures of one model in a published price file, with the units and names of the configuration. */
export type ListedModel = {
  /** The ids of the model and of its provider, as the file spells them. */
  id: string
  provider: string
  maxOutputTokens: number | undefined
  contextWindow: number | undefined
  /** The prices of the model. Undefined if the file lacks the price of input or output, or has 0 there. */
  prices: PriceTexts | undefined
  reasons: boolean
  /** Whether the model accepts sampling settings. */
  samples: boolean
  /** Descriptions of figures that the price file lacks. */
  gaps: readonly string[]
  /** Names of those prices in the file that our configuration cannot express. */
  leftOut: readonly string[]
}

/** Reads a price file. @throws Error with a message for people */
export function readListed(file: string): ListedModel[] {
  const cure = "name LiteLLM's or models.dev's price file"
  const text = readText(file, cure)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new Error(`${file} is not JSON: ${cure}`)
  }
  const listed = readPriceFile(value)
  if (listed) return listed
  throw new Error(
    `${file} is neither LiteLLM's price file (model_prices_and_context_window.json) nor models.dev's (api.json)`,
  )
}

/**
 * Reads the models of a price file. A model is left out if its id or provider is not one line of visible characters.
 * @param value the parsed JSON
 * @param isTold whether a value is a price. Published files use 0 for unknown prices
 * @returns undefined for a file that is neither LiteLLM's nor models.dev's
 */
export function readPriceFile(value: unknown, isTold = isPrice): ListedModel[] | undefined {
  const entries = Object.entries(asObject(value) ?? {})
  if (entries.some(([, entry]) => asObject(asObject(entry)?.['models'])))
    return entries.flatMap(readModelsDev).filter(isNamedVisibly)
  if (entries.some(([, entry]) => asObject(entry)?.['litellm_provider'] !== undefined))
    return entries.flatMap((entry) => readLitellm(entry, isTold)).filter(isNamedVisibly)
  return undefined
}

/** Whether a model's names are visible text. Other names could inject lines into a file or a terminal. */
function isNamedVisibly({ id, provider }: ListedModel): boolean {
  return [id, provider].every((name) => /^[^\p{C}\p{Zl}\p{Zp}]{1,256}$/u.test(name))
}

/** Reads the models of a provider in the JSON file of models.dev. Prices are in dollars per million tokens. */
function readModelsDev([provider, entry]: [string, unknown]): ListedModel[] {
  return Object.entries(asObject(asObject(entry)?.['models']) ?? {}).map(([id, value]) => {
    const model = asObject(value) ?? {}
    const limit = asObject(model['limit']) ?? {}
    const cost = asObject(model['cost']) ?? {}
    const tiers = Array.isArray(cost['tiers']) ? cost['tiers'].map((tier) => asObject(tier) ?? {}) : []
    const isStep = (tier: Record<string, unknown>) => (asObject(tier['tier'])?.['type'] ?? 'context') === 'context'
    const stepped = tiers.filter(isStep).map((tier) => ({
      above: asObject(tier['tier'])?.['size'],
      rates: readRates(tier, modelsDevKeys, 0),
    }))
    const taken = [...Object.values(modelsDevKeys), 'context_over_200k', ...(tiers.every(isStep) ? ['tiers'] : [])]
    const { fast, ...modes } = asObject(asObject(model['experimental'])?.['modes']) ?? {}
    const isModeful = JSON.stringify({ ...asObject(model['experimental']), modes }).includes('"cost"')
    const fastCost = asObject(asObject(fast)?.['cost'])
    const long = asObject(cost['context_over_200k'])
    if (stepped.length === 0 && long) stepped.push({ above: 200_000, rates: readRates(long, modelsDevKeys, 0) })
    const base = priced(readRates(cost, modelsDevKeys, 0), stepped, {})
    const priority = base.prices && fastCost && readFastMode(base.prices, readRates(fastCost, modelsDevKeys, 0))
    return {
      id,
      provider,
      maxOutputTokens: countOf(limit['output']),
      contextWindow: countOf(limit['context']),
      ...base,
      ...(base.prices && priority && { prices: { ...base.prices, tiers: { priority } } }),
      reasons: model['reasoning'] === true,
      samples: model['temperature'] !== false,
      leftOut: [
        ...pricesIn(cost, taken, /./).map((name) => `cost.${name}`),
        ...pricesIn(model, ['cost']),
        ...(isModeful || (fastCost && !priority) ? ['experimental'] : []),
      ],
    }
  })
}

const modelsDevKeys: Record<keyof RateTexts, string> = {
  input: 'input',
  output: 'output',
  cache_read: 'cache_read',
  cache_write: 'cache_write',
  cache_write_1h: 'cache_write_1h',
  cache_write_12h: 'cache_write_12h',
}

/** Reads an entry `<provider>/<id>` or `<id>`, with dollars per token. Only models that generate text are read. */
function readLitellm([key, value]: [string, unknown], isTold: typeof isPrice): ListedModel[] {
  const entry = asObject(value) ?? {}
  const provider = entry['litellm_provider']
  if (typeof provider !== 'string' || !/^(chat|responses|completion)$/.test(String(entry['mode']))) return []
  const sizes = Object.keys(entry).flatMap((name) => /_above_(\d+)k_tokens$/.exec(name)?.[1] ?? [])
  const stepped = [...new Set(sizes.map(Number))]
    .sort((a, b) => a - b)
    .map((size) => ({
      above: size * 1_000,
      rates: readRates(
        entry,
        mapKeys((name) => `${litellmKeys[name]}_above_${size}k_tokens`),
        perMillion,
        isTold,
      ),
    }))
    .filter(({ rates }) => Object.keys(rates).length > 0)
  const calls = readLitellmCalls(entry)
  const base = priced(readRates(entry, litellmKeys, perMillion, isTold), stepped, calls)
  const nameOf = (kind: keyof RateTexts, suffix: string, above?: number) =>
    `${litellmKeys[kind]}${above === undefined ? '' : `_above_${above / 1_000}k_tokens`}${suffix}`
  const read = (suffix: string, above?: number) =>
    suffix === 'off_peak'
      ? readRates(asObject(entry['off_peak_pricing']) ?? {}, litellmKeys, perMillion)
      : readRates(
          entry,
          mapKeys((kind) => nameOf(kind, suffix, above)),
          perMillion,
        )
  const named = (suffix: string) =>
    [undefined, ...sizes.map((size) => Number(size) * 1_000)].flatMap((above) =>
      kinds.map((kind) => nameOf(kind, suffix, above)),
    )
  const services = base.prices && readServices(entry, base.prices, read, named)
  const taken = Object.values(litellmKeys).flatMap((name) => [
    name,
    ...sizes.map((size) => `${name}_above_${size}k_tokens`),
  ])
  if (calls['web_search']) taken.push('search_context_cost_per_query')
  if (calls['file_search']) taken.push('file_search_cost_per_1k_calls')
  return [
    {
      id: key.startsWith(`${provider}/`) ? key.slice(provider.length + 1) : key,
      provider,
      maxOutputTokens: countOf(entry['max_output_tokens']),
      contextWindow: countOf(entry['max_input_tokens']),
      prices: base.prices && { ...base.prices, ...services?.prices },
      gaps: [...base.gaps, ...(services?.gaps ?? [])],
      reasons: entry['supports_reasoning'] === true,
      samples: entry['supports_sampling_params'] !== false,
      leftOut: pricesIn(entry, [...taken, ...(services?.taken ?? [])]),
    },
  ]
}

const litellmKeys: Record<keyof RateTexts, string> = {
  input: 'input_cost_per_token',
  output: 'output_cost_per_token',
  cache_read: 'cache_read_input_token_cost',
  cache_write: 'cache_creation_input_token_cost',
  cache_write_1h: 'cache_creation_input_token_cost_above_1hr',
  cache_write_12h: 'cache_creation_input_token_cost_above_12hr',
}

const perMillion = 6

/**
 * Matches the names of members that have prices or factors, in both file formats (LiteLLM, models.dev) as of 2026-11.
 */
const priceNames = /cost|pric|multiplier|uplift|off_peak|discount|specific_entry/i

/** Returns the names of prices that were not read. A price of 0 and an empty list do not count. */
function pricesIn(from: Record<string, unknown>, taken: readonly string[], names = priceNames): string[] {
  const isSomething = (value: unknown) =>
    isPrice(value) || (typeof value === 'object' && value !== null && Object.keys(value).length > 0)
  return Object.keys(from).filter(
    (name) => names.test(name) && !taken.includes(name) && isSomething(from[name]) && /^\w{1,80}$/.test(name),
  )
}

/** Reads prices of tool calls. A web search has a price only if it is the same for results of all sizes. */
function readLitellmCalls(entry: Record<string, unknown>): Record<string, string> {
  const searches = new Set(Object.values(asObject(entry['search_context_cost_per_query']) ?? {}))
  const [search] = searches.size === 1 ? searches : []
  const files = entry['file_search_cost_per_1k_calls']
  return {
    ...(isPrice(search) && { web_search: toDecimal(search, 0) }),
    ...(isPrice(files) && { file_search: toDecimal(files, -3) }),
  }
}

type Stepped = { above: unknown; rates: Partial<RateTexts> }

/**
 * Makes the prices of a model. If a step (prices above a number of tokens) lacks a price, the base price is taken.
 * `gaps` describes the prices that steps lacked.
 */
function priced(
  rates: Partial<RateTexts>,
  stepped: readonly Stepped[],
  calls: Record<string, string>,
): Pick<ListedModel, 'prices' | 'gaps'> {
  const { input, output } = rates
  if (input === undefined || output === undefined) return { prices: undefined, gaps: ['a price'] }
  const known = stepped.flatMap(({ above, rates: own }) => {
    const from = countOf(above)
    return from === undefined ? [] : [{ above: from, ...own }]
  })
  const base: RateTexts = { ...rates, input, output }
  const { steps, gaps } = fillSteps({ ...base, ...(known.length > 0 && { steps: known }) })
  const hasCalls = Object.keys(calls).length > 0
  return { prices: { ...base, ...(steps && { steps }), ...(hasCalls && { calls }) }, gaps }
}

type OpenStep = Partial<RateTexts> & { above: number }

/**
 * Fills the gaps of steps (the prices above a number of tokens) with base prices.
 * @returns `gaps`: descriptions of the prices that steps lacked
 */
export function fillSteps({ steps, ...base }: RateTexts & { steps?: readonly OpenStep[] }) {
  const known = kinds.filter((kind) => base[kind] !== undefined)
  const below = Object.fromEntries(known.map((kind) => [kind, base[kind]])) as RateTexts
  const gaps = (steps ?? []).flatMap((step) =>
    known
      .filter((kind) => step[kind] === undefined)
      .map((kind) => `${kind} above ${step.above} (the price below is taken)`),
  )
  return { steps: steps?.map(({ above, ...own }): StepTexts => ({ above, ...below, ...own })), gaps }
}

const kinds = Object.keys(litellmKeys) as (keyof RateTexts)[]

function mapKeys(name: (kind: keyof RateTexts) => string): Record<keyof RateTexts, string> {
  return Object.fromEntries(kinds.map((kind) => [kind, name(kind)])) as Record<keyof RateTexts, string>
}

/** Reads the rates of a model. */
function readRates(
  from: Record<string, unknown>,
  keys: Record<keyof RateTexts, string>,
  shift: number,
  isTold = isPrice,
): Partial<RateTexts> {
  const rates: Partial<RateTexts> = {}
  for (const kind of kinds) {
    const value = from[keys[kind]]
    if (isTold(value)) rates[kind] = toDecimal(value, shift)
  }
  return rates
}

function isPrice(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0
}

/** Returns a number of tokens, or undefined if it is not a positive integer. */
function countOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : undefined
}

/**
 * Moves the decimal point of a number without binary rounding: 1.25e-7 moved by 6 is 0.125. Digits beyond the 9 places
 * of a price are rounded up.
 */
export function toDecimal(value: number, shift: number): string {
  const [digits = '', exponent = '0'] = String(value).split('e')
  const [whole = '', fraction = ''] = digits.split('.')
  const places = fraction.length - Number(exponent) - shift
  const all = BigInt(whole + fraction)
  const unit = 10n ** BigInt(Math.max(0, places - 9))
  const scaled = places <= 9 ? all * 10n ** BigInt(9 - places) : (all + unit - 1n) / unit
  const text = scaled.toString().padStart(10, '0')
  return `${text.slice(0, -9)}.${text.slice(-9)}`.replace(/\.?0+$/, '')
}
