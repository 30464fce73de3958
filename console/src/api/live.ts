import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { apiBase } from '../base.ts'
import { isDemo } from '../demo.ts'
import type { Account, RequestRow, Tick, UpstreamState } from '../shapes.ts'
import { failingModels, unreachedServers } from './ask.ts'
import { tryAgain } from './recover.ts'

/* Live events from the gateway. All parts of the page share one stream, which is open while one of them listens. */

type LiveEvents = {
  'request.finished': RequestRow
  'upstream.state': UpstreamState
  'account.changed': Pick<Account, 'id' | 'name' | 'state' | 'balance' | 'held'>
  tick: Tick
  /** The data on the page may be old and must be loaded again. */
  reset: unknown
  dropped: { count: number }
}

type Listener<Name extends keyof LiveEvents> = (data: LiveEvents[Name]) => void

/** The state of the stream: `off` while no part of the page listens, `lost` while the stream is opened again. */
export const liveState = signal<'off' | 'opening' | 'live' | 'lost'>('off')

const names = ['request.finished', 'upstream.state', 'account.changed', 'tick', 'reset', 'dropped'] as const
const listeners = new Map<keyof LiveEvents, Set<Listener<never>>>()
let source: EventSource | undefined
let closing: number | undefined

/** Listens for events while the component is mounted. @param listen undefined if the component does not listen now */
export function useLive<Name extends keyof LiveEvents>(name: Name, listen: Listener<Name> | undefined): void {
  useEffect(() => {
    // The demo has no events.
    if (!listen || isDemo.peek()) return undefined
    const heard = listeners.get(name) ?? new Set()
    listeners.set(name, heard.add(listen as Listener<never>))
    open()
    return () => {
      heard.delete(listen as Listener<never>)
      closeSoon()
    }
  }, [name, listen])
}

function open(): void {
  window.clearTimeout(closing)
  if (source) return
  liveState.value = 'opening'
  const opened = new EventSource(`${apiBase}/events`)
  source = opened
  opened.onopen = () => {
    liveState.value = 'live'
    tryAgain()
  }
  opened.onerror = () => {
    liveState.value = 'lost'
    // The browser itself reconnects a broken stream. A refused stream is opened again here, after ten seconds.
    if (opened.readyState !== EventSource.CLOSED) return
    opened.close()
    if (source === opened) source = undefined
    window.clearTimeout(closing)
    closing = window.setTimeout(() => isWanted() && open(), 10_000)
  }
  for (const name of names) opened.addEventListener(name, (event) => tell(name, event as MessageEvent<string>))
}

function tell(name: keyof LiveEvents, { data }: MessageEvent<string>): void {
  // The stream is still open for a while after its last listener has gone, which may have been at a sign-out.
  if (!isWanted()) return
  const read = data === '' ? {} : (JSON.parse(data) as never)
  if (name === 'tick') {
    const { unreached, failing = [] } = read as Tick
    unreachedServers.value = unreached?.join(', ')
    if (failing.join() !== failingModels.peek().join()) failingModels.value = failing
  }
  for (const listen of listeners.get(name) ?? []) listen(read as never)
}

/** Waits before closing the stream, so that it stays open from page to page. */
function closeSoon(): void {
  window.clearTimeout(closing)
  closing = window.setTimeout(() => {
    if (isWanted()) return
    source?.close()
    source = undefined
    liveState.value = 'off'
  }, 2_000)
}

function isWanted(): boolean {
  return [...listeners.values()].some(({ size }) => size > 0)
}
