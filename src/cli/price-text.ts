import { createCalendar } from '../accounts/calendar.ts'
import { formatCredits, formatPrices, formatRates } from '../accounts/credit.ts'
import { tierOf } from '../catalog/base-service.ts'
import type { Model, PriceSet, Tier } from '../catalog/model.ts'
import { nextChanges, ratesAt, setAt } from '../catalog/price-list.ts'
import type { Config } from '../config/config.ts'
import { dayOrTime, momentOf } from '../operations/fields.ts'
import { formatTime } from './print.ts'

type AskedPrice = { at: number; tier: Tier | undefined; geo: string | undefined }

/** Reads the options that select prices of a model. @returns the selection, or the text of a mistake */
export function readPriceFacts(
  { at, tier, geo }: { at?: string; tier?: string; geo?: string },
  config: Config,
  nowMs = Date.now(),
): AskedPrice | { mistake: string } {
  const moment = at === undefined ? undefined : dayOrTime.safeParse(at)
  if (moment?.error) return { mistake: `--at: ${moment.error.issues[0]!.message}` }
  const served = tier === undefined ? null : tierOf(tier)
  if (served === undefined) return { mistake: `there is no tier '${tier}': name flex, priority, fast or ultrafast` }
  const ms = moment?.data ? momentOf(moment.data, createCalendar(config.reporting)) : nowMs
  return { at: ms, tier: served ?? undefined, geo: geo?.toLowerCase() }
}

/** Describes the prices that apply, and when they change next. Amounts are decimal texts. */
export function describePrice({ entryId, prices }: Model, asked: AskedPrice & { inputTokens: number }) {
  const { rates, version, row, band, tier, geo, step } = ratesAt(prices, asked)
  const set = setAt(prices, asked)
  const { fromMs } = prices.rows[row]!
  const unpriced = [
    asked.tier !== undefined && tier === null && asked.tier,
    asked.geo !== undefined && geo === null && asked.geo,
  ]
  return {
    ...{ model: entryId, at: formatTime(asked.at)! },
    rates: formatRates(rates),
    calls: formatPrices(set.prices).calls ?? {},
    ...{ row, from: Number.isFinite(fromMs) ? formatTime(fromMs) : null, band, tier, geo, step },
    factors: Object.fromEntries(
      Object.entries(set.times ?? {}).map(([name, factor]) => [name, factor === null ? null : formatCredits(factor)]),
    ) as Partial<Record<'band' | 'tier' | 'geo', string | null>>,
    version,
    next: nextChanges(prices, asked, 3).map((change) => ({ at: formatTime(change.at)!, ...describeSet(change.set) })),
    notes: unpriced.flatMap((name) => (name === false ? [] : `${name} has no price here: it is billed at the base.`)),
  }
}

function describeSet({ prices, row, band }: PriceSet) {
  return { row, band, rates: formatRates(prices) }
}

/** Lists models whose base prices change with time, with the current prices and the next two changes. */
export function listChangingPrices(models: readonly Model[], nowMs: number) {
  return models.flatMap(({ id, prices }) => {
    const next = nextChanges(prices, { at: nowMs }, 2)
    if (next.length === 0) return []
    return {
      model: id,
      now: describeSet(setAt(prices, { at: nowMs })),
      next: next.map(({ at, set }) => ({ at: formatTime(at)!, ...describeSet(set) })),
    }
  })
}

/** Returns the rows of the table that shows models with changing prices. */
export function changingRows(listed: ReturnType<typeof listChangingPrices>): string[][] {
  const short = ({ band, rates: { input, output } }: ReturnType<typeof describeSet>) =>
    `${input} / ${output}${band === null ? '' : ` (${band})`}`
  return listed.map(({ model, now, next }) => [
    model,
    short(now),
    next.map((change) => `${change.at.replace(':00.000Z', 'Z')} ${short(change)}`).join(', '),
  ])
}
