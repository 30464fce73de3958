import { type Signal, signal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { mayPass } from '../pure/may-pass.ts'
import type { Listed } from '../shapes.ts'
import { ask, Refusal } from './ask.ts'
import { retrySoon, stopRetrying } from './recover.ts'

/** The state of a loaded path. `data` is kept while it is loaded again, and if that fails. */
export type Loaded<T> = {
  data: T | undefined
  version: string | undefined
  /** When `data` was received, in Unix ms. */
  atMs: number
  refusal: Refusal | undefined
  isLoading: boolean
  /** How long the last load took, in ms. */
  tookMs: number
}

type Slot = { state: Signal<Loaded<unknown>>; users: number; run: AbortController | undefined }

const slots = new Map<string, Slot>()
const slotsMax = 100
const nothing = { data: undefined, version: undefined, atMs: 0, refusal: undefined, isLoading: true, tookMs: 0 }

/**
 * The most queries of figures at once. The gateway runs them one after the other and accepts four for each operator.
 * Queries of a page that was just left count as well.
 */
const queriesMax = 1
const waiting: (() => void)[] = []
let queries = 0

/**
 * Loads a path of the API. The last answer is kept while the console is open, so that a page shows it at once when it
 * is opened again.
 * @param path below /api/v1; undefined to load nothing yet
 */
export function useLoad<T>(path: string | undefined): Loaded<T> & { reload(): void } {
  const slot = path === undefined ? undefined : slotOf(path)
  useEffect(() => {
    if (path === undefined || !slot) return undefined
    slot.users++
    void load(path, slot)
    return () => {
      slot.users--
      if (slot.users > 0) return
      slot.run?.abort()
      stopRetrying(slot)
    }
  }, [path, slot])
  const state = (slot ? slot.state.value : { ...nothing, isLoading: false }) as Loaded<T>
  return { ...state, reload: () => void (path !== undefined && slot && load(path, slot)) }
}

/** Like `useLoad`, but when the path changes, the data of the previous path stays until the new data is there. */
export function useSteady<T>(path: string | undefined): Loaded<T> & { reload(): void; isOld: boolean } {
  const loaded = useLoad<T>(path)
  const last = useMemo(() => ({ value: undefined as Loaded<T> | undefined }), [])
  if (loaded.data !== undefined) last.value = loaded
  if (loaded.data !== undefined || last.value === undefined) return { ...loaded, isOld: false }
  const { data, version, atMs } = last.value
  return { ...loaded, data, version, atMs, isOld: true }
}

/** Loads a list page by page. */
export function useList<T>(path: string | undefined) {
  const first = useSteady<Listed<T>>(path)
  const rest = useMemo(
    () => ({
      items: signal<readonly T[]>([]),
      next: signal<string | null | undefined>(undefined),
      last: signal<Listed<T> | undefined>(undefined),
      busy: signal(false),
    }),
    [path, first.data],
  )
  useEffect(() => () => stopRetrying(rest), [rest])
  const refusal = useMemo(() => signal<Refusal | undefined>(undefined), [path])
  // A `next` that came with the previous list does not fit this one.
  const told = first.isOld ? null : first.data?.next
  const nextAfter = (loaded: string | null | undefined) => (loaded === undefined ? told : loaded)
  const items = first.data ? [...first.data.items, ...rest.items.value] : undefined
  return {
    ...first,
    refusal: first.refusal ?? refusal.value,
    items,
    hasMore: Boolean(nextAfter(rest.next.value)),
    last: first.isOld ? undefined : (rest.last.value ?? first.data),
    /** Whether further pages are shown or searched. Loading the list again would leave only the first one. */
    isLong: rest.items.value.length > 0 || Boolean(rest.next.value),
    more,
    isMore: rest.busy.value,
  }

  async function more(): Promise<void> {
    // A scroll can call this again before the page is drawn with the rows of the last call, so the value is read now.
    const next = nextAfter(rest.next.peek())
    if (!next || path === undefined || rest.busy.peek()) return
    rest.busy.value = true
    try {
      const glue = path.includes('?') ? '&' : '?'
      const { body } = await ask<Listed<T>>(`${path}${glue}cursor=${encodeURIComponent(next)}`)
      rest.items.value = [...rest.items.peek(), ...body.items]
      rest.next.value = body.next
      rest.last.value = body
      refusal.value = undefined
    } catch (error) {
      if (!(error instanceof Refusal)) return
      refusal.value = error
      if (mayPass(error.status)) retrySoon(rest, () => void more())
    } finally {
      rest.busy.value = false
    }
  }
}

/** Loads shown data again if its path begins with one of the prefixes. Data that is not shown is forgotten. */
export function refresh(...prefixes: readonly string[]): void {
  for (const [path, slot] of slots) {
    if (!prefixes.some((prefix) => path.startsWith(prefix))) continue
    if (slot.users > 0) void load(path, slot)
    else slots.delete(path)
  }
}

/** Deletes all loaded data when the person signs out. */
export function forget(): void {
  for (const { run } of slots.values()) run?.abort()
  slots.clear()
}

function slotOf(path: string): Slot {
  const known = slots.get(path)
  if (known) return known
  for (const [old, { users }] of slots) {
    if (slots.size < slotsMax) break
    if (users === 0) slots.delete(old)
  }
  const made: Slot = { state: signal<Loaded<unknown>>({ ...nothing }), users: 0, run: undefined }
  slots.set(path, made)
  return made
}

async function load(path: string, slot: Slot): Promise<void> {
  slot.run?.abort()
  const run = new AbortController()
  slot.run = run
  slot.state.value = { ...slot.state.peek(), isLoading: true }
  try {
    const told = /^(\/me)?\/usage/.test(path) ? await askFigures(path, run.signal) : await askNow(path, run.signal)
    if (told) slot.state.value = { ...told, atMs: Date.now(), refusal: undefined, isLoading: false }
  } catch (error) {
    if (!(error instanceof Refusal) || run.signal.aborted) return
    slot.state.value = { ...slot.state.peek(), refusal: error, isLoading: false }
    if (mayPass(error.status) && slot.users > 0) retrySoon(slot, () => void load(path, slot))
  } finally {
    if (slot.run === run) slot.run = undefined
  }
}

type Told = { data: unknown; version: string | undefined; tookMs: number }

async function askNow(path: string, signal: AbortSignal): Promise<Told | undefined> {
  const startedMs = performance.now()
  const { body, version } = await ask<unknown>(path, { signal })
  return { data: body, version, tookMs: performance.now() - startedMs }
}

/**
 * Loads figures when it is this query's turn. If the caller no longer needs the answer, the query still runs to its
 * end, because the gateway counts it until then.
 * @returns undefined if the caller no longer needs the answer
 */
async function askFigures(path: string, signal: AbortSignal): Promise<Told | undefined> {
  await takeTurn()
  try {
    for (let again = 1; !signal.aborted; again++) {
      try {
        const told = await askNow(path, never)
        return signal.aborted ? undefined : told
      } catch (error) {
        // The operator's other tabs query too, so the limit of queries may be reached.
        if (!(error instanceof Refusal) || error.status !== 429 || again > 5) throw error
        await new Promise((resolve) => window.setTimeout(resolve, 300 * again))
      }
    }
    return undefined
  } finally {
    giveTurn()
  }
}

const never = new AbortController().signal

function takeTurn(): Promise<void> {
  if (queries < queriesMax) {
    queries++
    return Promise.resolve()
  }
  return new Promise((resolve) => waiting.push(resolve))
}

function giveTurn(): void {
  const next = waiting.shift()
  if (next) next()
  else queries--
}

/** The time after which data without events is loaded again, in ms. */
const againMs = 15_000

/** Loads data again at an interval while the page is visible. */
export function useAgain(reload: () => void, ms = againMs): void {
  const last = useRef(reload)
  last.current = reload
  useEffect(() => {
    const timer = window.setInterval(() => !document.hidden && last.current(), ms)
    return () => window.clearInterval(timer)
  }, [ms])
}
