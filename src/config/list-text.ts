import { hash } from 'node:crypto'
import { zoneOffset } from '../accounts/calendar.ts'
import type { Band, PriceList, PriceRow, PriceSet } from '../catalog/model.ts'
import { longestRequestMs, setAt, setKey } from '../catalog/price-list.ts'

/*
 * The text of a price list, kept in the ledger so that `ledger verify` can repeat each choice of prices (ruling C11).
 * It is JSON with all rows, bands and sets of prices. Amounts are texts of decimal digits, with all factors applied.
 */

type KeptBand = Omit<Band, 'offsetAt' | 'daysOff'> & { daysOff: readonly number[] }
type KeptRow = { fromMs: number | null; bands: readonly KeptBand[]; sets: readonly (readonly KeptSet[])[] }
/** `version` identifies a set of prices. `prices` is kept only for people to read. */
type KeptSet = Pick<PriceSet, 'tier' | 'geo' | 'version' | 'prices'>

/** Returns the text and digest of a price list. Returns undefined if no row has more than one set of prices. */
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

/** Returns a digest of 22 characters in base64url. */
function digestList(text: string): string {
  return hash('sha256', text, 'base64url').slice(0, 22)
}

/** The facts that decided the prices of a ledger entry, as the entry contains them. */
type ChosenFacts = { createdMs: number; band: string | null; tier: string | null; geo: string | null }

/**
 * Reads a price list from the ledger for `ledger verify`.
 * @returns a function that returns the price versions that an entry can have. The set is empty if the list lacks the
 *   entry's band, tier or geography. With `counts: start`, the set can have versions of several rows.
 * @throws RangeError if the text does not match the digest
 */
export function readKeptList(digest: string, text: string): (facts: ChosenFacts) => ReadonlySet<string> {
  if (digestList(text) !== digest) throw new RangeError('its text was changed')
  const { counts, rows } = JSON.parse(text) as { counts: PriceList['counts']; rows: KeptRow[] }
  const list: Pick<PriceList, 'rows' | 'only'> = { rows: rows.map(readRow), only: undefined }
  return ({ createdMs: at, band, tier, geo }) => {
    const isMeant = (set: PriceSet) => set.band === band && set.tier === tier && set.geo === geo
    if (counts === 'start') {
      // As in `rowInForce`, the first row also applies before its date.
      const current = list.rows.filter(
        ({ fromMs }, index) =>
          (index === 0 || fromMs <= at) && (list.rows[index + 1]?.fromMs ?? at) > at - longestRequestMs,
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
