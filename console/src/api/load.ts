import { type Signal, signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { Listed } from '../shapes.ts'
import { ask, Refusal } from './ask.ts'

/** What is shown of something that was asked for. What was there before stays while it is asked for anew, or not told. */
export type Loaded<T> = {
  data: T | undefined
  version: string | undefined
  /** When `data` came, in Unix ms. */
  atMs: number
  refusal: Refusal | undefined
  isLoading: boolean
  /** How long it took, in ms. */
  tookMs: number
}

type Slot = { state: Signal<Loaded<unknown>>; users: number; run: AbortController | undefined }

const slots = new Map<string, Slot>()
const slotsMax = 100
const nothing = { data: undefined, version: undefined, atMs: 0, refusal: undefined, isLoading: true, tookMs: 0 }

/**
 * Questions of figures that run at once: a gateway reads them one after the other, and takes four of each operator, those of a
 * page that was just left among them.
 */
const queriesMax = 1
const waiting: (() => void)[] = []
let queries = 0

/**
 * What the API tells at a path, kept while the page is open: whoever comes back sees the last of it at once.
 * @param path below /api/v1; undefined: nothing is asked yet
 */
export function useLoad<T>(path: string | undefined): Loaded<T> & { reload(): void } {
  const slot = path === undefined ? undefined : slotOf(path)
  useEffect(() => {
    if (path === undefined || !slot) return undefined
    slot.users++
    void load(path, slot)
    return () => {
      slot.users--
      if (slot.users === 0) slot.run?.abort()
    }
  }, [path, slot])
  const state = (slot ? slot.state.value : { ...nothing, isLoading: false }) as Loaded<T>
  return { ...state, reload: () => void (path !== undefined && slot && load(path, slot)) }
}

/** The same as `useLoad`, but that it keeps showing what the path before told until there is something new. */
export function useSteady<T>(path: string | undefined): Loaded<T> & { reload(): void; isOld: boolean } {
  const loaded = useLoad<T>(path)
  const last = useMemo(() => ({ value: undefined as Loaded<T> | undefined }), [])
  if (loaded.data !== undefined) last.value = loaded
  if (loaded.data !== undefined || last.value === undefined) return { ...loaded, isOld: false }
  const { data, version, atMs } = last.value
  return { ...loaded, data, version, atMs, isOld: true }
}

/** A list by its pages. */
export function useList<T>(path: string | undefined) {
  const first = useSteady<Listed<T>>(path)
  const rest = useMemo(
    () => ({
      items: signal<readonly T[]>([]),
      next: signal<string | null | undefined>(undefined),
      busy: signal(false),
    }),
    [path, first.data],
  )
  const refusal = useMemo(() => signal<Refusal | undefined>(undefined), [path])
  // A place in another list is none in this one.
  const told = first.isOld ? null : first.data?.next
  const next = rest.next.value === undefined ? told : rest.next.value
  const items = first.data ? [...first.data.items, ...rest.items.value] : undefined
  return {
    ...first,
    refusal: first.refusal ?? refusal.value,
    items,
    hasMore: Boolean(next),
    more,
    isMore: rest.busy.value,
  }

  async function more(): Promise<void> {
    if (!next || path === undefined || rest.busy.peek()) return
    rest.busy.value = true
    try {
      const glue = path.includes('?') ? '&' : '?'
      const { body } = await ask<Listed<T>>(`${path}${glue}cursor=${encodeURIComponent(next)}`)
      rest.items.value = [...rest.items.peek(), ...body.items]
      rest.next.value = body.next
      refusal.value = undefined
    } catch (error) {
      if (error instanceof Refusal) refusal.value = error
    } finally {
      rest.busy.value = false
    }
  }
}

/** Asks anew for what is shown now and begins with one of these. */
export function refresh(...prefixes: readonly string[]): void {
  for (const [path, slot] of slots) {
    if (!prefixes.some((prefix) => path.startsWith(prefix))) continue
    if (slot.users > 0) void load(path, slot)
    else slots.delete(path)
  }
}

/** Of somebody who has signed out nothing is kept. */
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
    const told = path.startsWith('/usage') ? await askFigures(path, run.signal) : await askNow(path, run.signal)
    if (told) slot.state.value = { ...told, atMs: Date.now(), refusal: undefined, isLoading: false }
  } catch (error) {
    if (error instanceof Refusal && !run.signal.aborted)
      slot.state.value = { ...slot.state.peek(), refusal: error, isLoading: false }
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
 * In its turn. Who has no use for the answer any more lets it come all the same: a gateway works on it to its end, and counts
 * it as long. @returns undefined where nobody wants it any more
 */
async function askFigures(path: string, signal: AbortSignal): Promise<Told | undefined> {
  await takeTurn()
  try {
    for (let again = 1; !signal.aborted; again++) {
      try {
        const told = await askNow(path, never)
        return signal.aborted ? undefined : told
      } catch (error) {
        // Another page of the same operator asks too.
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
