import { formatCredits, nanosPerCredit, parseCredits } from '../../accounts/credit.ts'
import { asObject } from '../../bytes/json.ts'
import { type Tier, tiers } from '../../catalog/model.ts'
import type { BandTexts, PriceTexts, RateTexts, WrittenTexts } from '../../catalog/presets.ts'

/** Reads the rates whose names have this suffix. `above` is the number of tokens after which a price step begins. */
type ReadNamed = (suffix: string, above?: number) => Partial<RateTexts>

/** Prices by tier, geography and hour. `taken` names the members that were read. `gaps` says what the file lacks. */
type FileServices = { prices: Pick<PriceTexts, 'tiers' | 'geos' | 'bands'>; taken: string[]; gaps: string[] }

/**
 * Reads LiteLLM's prices of tiers (`_flex`), of speeds and geographies (`provider_specific_entry`), and of hours
 * (`off_peak_pricing`). If one factor is exact for all rates, the result is this factor. Otherwise the result lists the
 * prices.
 * @param named returns the names of the entry's members that have a suffix
 */
export function readServices(
  entry: Record<string, unknown>,
  base: PriceTexts,
  read: ReadNamed,
  named: (suffix: string) => string[],
): FileServices {
  const gaps: string[] = []
  const taken: string[] = []
  const byTier: Partial<Record<Tier, string | WrittenTexts>> = {}
  for (const tier of tiers) {
    const priced = priceOf(base, read(`_${tier}`), (above) => read(`_${tier}`, above))
    if (priced === undefined) continue
    byTier[tier] = priced.texts
    taken.push(...named(`_${tier}`))
    if (!priced.isWhole) gaps.push(`all prices of ${tier} (its factor is taken)`)
  }
  const { fast, us, ...others } = asObject(entry['provider_specific_entry']) ?? {}
  const isRead = Object.keys(others).length === 0
  if (isRead && isFactor(fast)) byTier.priority ??= String(fast)
  const geos = isRead && isFactor(us) ? { us: String(us) } : undefined
  if (isRead) taken.push('provider_specific_entry')
  const bands = readOffPeak(asObject(entry['off_peak_pricing']), base, read)
  if (bands) {
    taken.push('off_peak_pricing')
    gaps.push('holidays, and the zone of its hours, which are in UTC (compare them with the provider’s page)')
  }
  const prices = {
    ...(bands && { bands }),
    ...(Object.keys(byTier).length > 0 && { tiers: byTier }),
    ...(geos && { geos }),
  }
  return { prices, taken, gaps }
}

/** Returns prices of a model's fast mode, which models.dev lists as an experiment. @param cost the listed prices */
export function readFastMode(base: PriceTexts, cost: Partial<RateTexts>): string | WrittenTexts | undefined {
  return priceOf(base, cost, () => ({}))?.texts
}

function isFactor(value: unknown): value is number {
  return typeof value === 'number' && value > 0 && /^\d+(\.\d{1,9})?$/.test(String(value))
}

/**
 * Returns the prices of a service (such as a tier) as one factor on the base prices. If no factor is exact for all
 * prices, returns a list of prices.
 */
function priceOf(
  base: PriceTexts,
  own: Partial<RateTexts>,
  ownAbove: (above: number) => Partial<RateTexts>,
): { texts: string | WrittenTexts; isWhole: boolean } | undefined {
  if (own.input === undefined || own.output === undefined) return undefined
  const steps = (base.steps ?? []).map(({ above, ...rates }) => ({ above, rates, own: ownAbove(above) }))
  const rows = [{ rates: ratesOf(base), own }, ...steps]
  const isWhole = rows.every((row) => kindsOf(row.rates).every((kind) => row.own[kind] !== undefined))
  const factor = ratio(own.input, base.input)
  const isOne = rows.every((row) =>
    kindsOf(row.own).every(
      (kind) => row.rates[kind] !== undefined && ratio(row.own[kind]!, row.rates[kind]) === factor,
    ),
  )
  if (factor !== undefined && isOne) return { texts: formatCredits(factor), isWhole }
  if (!isWhole) return undefined
  const written = steps.map((step) => ({ above: step.above, ...(step.own as RateTexts) }))
  return { texts: { ...(own as RateTexts), ...(written.length > 0 && { steps: written }) }, isWhole }
}

function ratesOf({
  steps: _,
  calls: __,
  bands: ___,
  tiers: ____,
  geos: _____,
  from: ______,
  ...rates
}: PriceTexts): RateTexts {
  return rates
}

function kindsOf(rates: Partial<RateTexts>): (keyof RateTexts)[] {
  return (Object.keys(rates) as (keyof RateTexts)[]).filter((kind) => rates[kind] !== undefined)
}

/** Returns the factor between two prices in units of 10⁻⁹. Undefined if the factor is not exact. */
function ratio(own: string, base: string): bigint | undefined {
  const [times, by] = [parseCredits(own) * nanosPerCredit, parseCredits(base)]
  return by > 0n && times % by === 0n ? times / by : undefined
}

const weekdays = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']

/** Returns the hours with lower prices as windows in UTC. Undefined if the entry has another form. */
function readOffPeak(
  entry: Record<string, unknown> | undefined,
  base: PriceTexts,
  read: ReadNamed,
): BandTexts[] | undefined {
  const windows = entry?.['windows']
  if (!entry || !Array.isArray(windows) || windows.length === 0) return undefined
  const priced = priceOf({ ...base, steps: [] }, read('off_peak'), () => ({}))
  if (priced === undefined || (base.steps && typeof priced.texts !== 'string')) return undefined
  const bands: BandTexts[] = []
  for (const [index, window] of windows.entries()) {
    const { hours_utc: hours, weekdays: days, ...others } = asObject(window) ?? {}
    const spans = [hours].flat()
    const isKnown =
      Object.keys(others).length === 0 &&
      spans.every((span) => typeof span === 'string' && /^\d\d:\d\d-\d\d:\d\d$/.test(span)) &&
      (days === undefined || (Array.isArray(days) && days.every((day) => weekdays[Number(day) - 1] !== undefined)))
    if (!isKnown) return undefined
    const shown = (spans as string[]).map((span) => span.replace('-00:00', '-24:00'))
    bands.push({
      name: index === 0 ? 'off_peak' : `off_peak_${index + 1}`,
      zone: 'UTC',
      ...(days !== undefined && { days: (days as number[]).map((day) => weekdays[day - 1]!) }),
      ...(!shown.includes('00:00-24:00') && { hours: shown }),
      ...(typeof priced.texts === 'string' ? { times: priced.texts } : priced.texts),
    })
  }
  return bands
}
