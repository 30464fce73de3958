import {
  exactCredits,
  exactTime,
  tellAway,
  tellCount,
  tellCredits,
  tellExact,
  tellMs,
  tellShare,
  tellTime,
} from '../pure/format.ts'
import { creditName, viewerZone } from '../session.ts'

/* Numbers in a page: short in the text, exact in the tooltip. */

/** @param value undefined while it is being loaded */
export function Credits({ value }: { value: string | bigint | null | undefined }) {
  if (value === undefined) return <span class="none">…</span>
  const exact = typeof value === 'bigint' ? exactCredits(value) : value
  return <span title={exact ? `${exact} ${creditName()}` : undefined}>{tellCredits(value)}</span>
}

/** An amount or a balance of the ledger with every digit. */
export function Exact({ value }: { value: string | null | undefined }) {
  return <span>{tellExact(value)}</span>
}

export function Count({ value }: { value: number | null | undefined }) {
  return (
    <span title={value === null || value === undefined ? undefined : value.toLocaleString('en')}>
      {tellCount(value)}
    </span>
  )
}

export function Ms({ value }: { value: number | null | undefined }) {
  return <span title={value === null || value === undefined ? undefined : `${value} ms`}>{tellMs(value)}</span>
}

export function Share({ value }: { value: number | null | undefined }) {
  return <span title={value === null || value === undefined ? undefined : `${value * 100} %`}>{tellShare(value)}</span>
}

export function Time({ iso }: { iso: string | null | undefined }) {
  if (!iso) return <span class="none">–</span>
  return (
    <time dateTime={iso} title={exactTime(iso, viewerZone)}>
      {tellTime(iso, Date.now(), viewerZone)}
    </time>
  )
}

/** Shows how far away a time is, such as `3 h ago`, with the exact time in the tooltip. */
export function Away({ iso, none = '–' }: { iso: string | null | undefined; none?: string }) {
  if (!iso) return <span class="none">{none}</span>
  return (
    <time dateTime={iso} title={exactTime(iso, viewerZone)}>
      {tellAway(iso, Date.now())}
    </time>
  )
}
