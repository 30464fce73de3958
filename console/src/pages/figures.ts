import { useEffect, useMemo } from 'preact/hooks'
import { withQuery } from '../api/ask.ts'
import { liveState, useLive } from '../api/live.ts'
import { refresh } from '../api/load.ts'
import { place } from '../location.ts'
import { type Range, type RangeName, readRange } from '../pure/range.ts'
import { isOwner, reportingZone } from '../session.ts'
import type { Dimension, Measure, Tick } from '../shapes.ts'

export const dimensions: readonly (readonly [Dimension, string])[] = [
  ['model', 'model'],
  ['account', 'account'],
  ['key', 'key'],
  ['upstream', 'upstream'],
  ['wires', 'wires'],
  ['outcome', 'outcome'],
]

export const overviewMeasures: readonly Measure[] = [
  'credits',
  'requests',
  'errors',
  'input_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'output_tokens',
  'cache_share',
  'first_byte_ms',
]

/** Reads the range from the page's address. */
export function useRange(usual: RangeName = '7d'): Range {
  return readRange(place.value.query, Date.now(), reportingZone(), usual)
}

type Asked = {
  range: Pick<Range, 'from' | 'to'> & { bucket: Range['bucket'] | 'all' }
  by?: Dimension | undefined
  measures: readonly Measure[]
  top?: number
  /** Filters by dimension, with commas between several values. */
  only?: Partial<Record<Dimension, string | undefined>>
}

/** Makes the path of a query of figures. */
export function usagePath({ range, by, measures, top, only = {} }: Asked): string {
  const { from, to, bucket } = range
  const asked = { from, to, bucket, by, measures: measures.join(','), top: by ? top : undefined }
  return withQuery(isOwner() ? '/me/usage' : '/usage', { ...asked, ...only })
}

/**
 * Loads figures and books again within two seconds after an event, if the range ends now. After a slow load, the next
 * one begins only when ten times its duration has passed.
 */
export function useFresh(isOn: boolean, tookMs: number, ...prefixes: readonly string[]): void {
  const state = useMemo(() => ({ lastMs: Number.NEGATIVE_INFINITY, isDue: false, tookMs: 0, timer: 0 }), [])
  state.tookMs = tookMs
  const listen = useMemo(() => {
    // Ticks come every second. If one comes too early, a timer loads the figures when the wait is over.
    const act = () => {
      window.clearTimeout(state.timer)
      if (!state.isDue || document.hidden) return
      const now = performance.now()
      const waitMs = state.lastMs + Math.max(1_200, 10 * state.tookMs) - now
      if (waitMs > 0) {
        state.timer = window.setTimeout(act, waitMs)
        return
      }
      state.isDue = false
      state.lastMs = now
      refresh(...prefixes)
    }
    return (tick: Pick<Tick, 'requests'>) => {
      state.isDue ||= tick.requests > 0
      act()
    }
  }, prefixes)
  // Credits, limits and upstreams change without a request (CON-7b). Figures of usage do not.
  const listenToChanges = useMemo(
    () => (prefixes.every((path) => path.startsWith('/usage')) ? undefined : () => listen({ requests: 1 })),
    [listen],
  )
  useEffect(() => () => window.clearTimeout(state.timer), [listen, isOn])
  useLive('tick', isOn ? listen : undefined)
  useLive('account.changed', isOn ? listenToChanges : undefined)
  useLive('upstream.state', isOn ? listenToChanges : undefined)
  useLive('reset', isOn ? () => refresh(...prefixes) : undefined)
  useEffect(() => {
    if (!isOn) return undefined
    // A fallback while there is no stream of events.
    const timer = window.setInterval(() => {
      if (liveState.peek() !== 'live' && !document.hidden) refresh(...prefixes)
    }, 15_000)
    return () => window.clearInterval(timer)
  }, [isOn, ...prefixes])
}
