import { useEffect, useMemo } from 'preact/hooks'
import { withQuery } from '../api/ask.ts'
import { liveState, useLive } from '../api/live.ts'
import { refresh } from '../api/load.ts'
import { place } from '../location.ts'
import { type Range, type RangeName, readRange } from '../pure/range.ts'
import { reportingZone } from '../session.ts'
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

/** The range that the page's address means. */
export function useRange(usual: RangeName = '7d'): Range {
  return readRange(place.value.query, Date.now(), reportingZone(), usual)
}

type Asked = {
  range: Pick<Range, 'from' | 'to'> & { bucket: Range['bucket'] | 'all' }
  by?: Dimension | undefined
  measures: readonly Measure[]
  top?: number
  /** What is counted only: by dimensions, values apart by commas. */
  only?: Partial<Record<Dimension, string | undefined>>
}

/** The path that asks for figures. */
export function usagePath({ range, by, measures, top, only = {} }: Asked): string {
  const { from, to, bucket } = range
  const asked = { from, to, bucket, by, measures: measures.join(','), top: by ? top : undefined }
  return withQuery('/usage', { ...asked, ...only })
}

/** A page whose figures end now shows what happens within two seconds, and asks no more than a tenth of the time. */
export function useFresh(isOn: boolean, tookMs: number, ...prefixes: readonly string[]): void {
  const state = useMemo(() => ({ lastMs: Number.NEGATIVE_INFINITY, isDue: false, tookMs: 0, timer: 0 }), [])
  state.tookMs = tookMs
  const listen = useMemo(() => {
    // Ticks come each second: who is too early for one does not wait for the next.
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
    return (tick: Tick) => {
      state.isDue ||= tick.requests > 0
      act()
    }
  }, prefixes)
  useEffect(() => () => window.clearTimeout(state.timer), [listen])
  useLive('tick', isOn ? listen : undefined)
  useLive('reset', isOn ? () => refresh(...prefixes) : undefined)
  useEffect(() => {
    if (!isOn) return undefined
    // Where nothing is told as it happens, or the stream is gone for a while.
    const timer = window.setInterval(() => {
      if (liveState.peek() !== 'live' && !document.hidden) refresh(...prefixes)
    }, 15_000)
    return () => window.clearInterval(timer)
  }, [isOn, ...prefixes])
}
