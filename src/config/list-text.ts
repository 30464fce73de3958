import { hash } from 'node:crypto'
import { zoneOffset } from '../accounts/calendar.ts'
import type { Band, PriceList, PriceRow, PriceSet } from '../catalog/model.ts'
import { longestRequestMs, setAt, setKey } from '../catalog/price-list.ts'

/*
 * The ledger keeps the text of a price list, so that the choice among its prices can be made again at any time (ruling C11). The
 * text is JSON with all rows, bands and sets, whose factors are applied. Amounts are texts of decimal digits.
 */

type KeptBand = Omit<Band, 'offsetAt' | 'daysOff'> & { daysOff: readonly number[] }
type KeptRow = { fromMs: number | null; bands: readonly KeptBand[]; sets: readonly (readonly KeptSet[])[] }
/** The prices are for people: a version stands for them. */
type KeptSet = Pick<PriceSet, 'tier' | 'geo' | 'version' | 'prices'>

/** The text and its digest; undefined for a list without bands, tiers and geographies, which its prices say all of. */
export function keepList(rows: readonly PriceRow[], counts: PriceList['counts']): PriceList['kept'] {
  if (rows.every(({ bands, sets }) => bands.length === 0 && sets[0]!.size === 1)) return undefined
  const written = rows.map(
    ({ fromMs, bands, sets }): KeptRow => ({
      fromMs: Number.isFinite(fromMs) ? fromMs : null,
      bands: bands.map(({ name, zone, weekdays, windows, daysOff }) => ({
        ...{ name, zone, weekdays, windows },
        daysOff: [...daysOff].sort((a, b) => a - b),
      })),
      sets: sets.map((ofBand) =>
        Array.from(ofBand.values(), ({ tier, geo, version, prices }) => ({ tier, geo, version, prices })),
      ),
    }),
  )
  const text = JSON.stringify({ counts, rows: written }, (_, value) => (typeof value === 'bigint' ? `${value}` : value))
  return { text, digest: digestList(text) }
}

/** 22 characters of base 64 that stand for a text. */
function digestList(text: string): string {
  return hash('sha256', text, 'base64url').slice(0, 22)
}

/** The facts of an entry that chose its prices. */
type ChosenFacts = { createdMs: number; band: string | null; tier: string | null; geo: string | null }

/**
 * Reads a kept list for `ledger verify`.
 * @returns a function that returns the versions of the prices that an entry may have been billed by. There is none if the list
 *   has not this band, tier and geography at that moment. With `counts: start` each moment counts at which a request may have begun that ended then.
 * @throws RangeError if the text is not the one of the digest
 */
export function readKeptList(digest: string, text: string): (facts: ChosenFacts) => ReadonlySet<string> {
  if (digestList(text) !== digest) throw new RangeError('its text was changed')
  const { counts, rows } = JSON.parse(text) as { counts: PriceList['counts']; rows: KeptRow[] }
  const list: Pick<PriceList, 'rows' | 'only'> = { rows: rows.map(readRow), only: undefined }
  return ({ createdMs: at, band, tier, geo }) => {
    const isMeant = (set: PriceSet) => set.band === band && set.tier === tier && set.geo === geo
    if (counts === 'start') {
      const current = list.rows.filter(
        ({ fromMs }, index) => fromMs <= at && (list.rows[index + 1]?.fromMs ?? at) > at - longestRequestMs,
      )
      const sets = current.flatMap(({ sets }) => sets.flatMap((ofBand) => [...ofBand.values()]))
      return new Set(sets.filter(isMeant).map(({ version }) => version))
    }
    const set = setAt(list, { at, tier, geo })
    return new Set(isMeant(set) ? [set.version] : [])
  }
}

function readRow({ fromMs, bands, sets }: KeptRow, index: number): PriceRow {
  return {
    fromMs: fromMs ?? Number.NEGATIVE_INFINITY,
    bands: bands.map(({ daysOff, ...band }) => ({
      ...band,
      offsetAt: zoneOffset(band.zone),
      daysOff: new Set(daysOff),
    })),
    sets: sets.map((ofBand, at) => {
      const band = bands[at - 1]?.name ?? null
      return new Map(ofBand.map((set) => [setKey(set.tier, set.geo), { ...set, row: index, band }]))
    }),
  }
}
