import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { Refusal, send } from '../api/ask.ts'
import { type AnswerParts, addEvent, noParts, partsOf } from '../pure/answer.ts'
import { type ClientWire, eventReader } from '../pure/wires.ts'

export type Played = {
  /** `broken`: the connection was lost before the end of the answer. */
  state: 'running' | 'over' | 'stopped' | 'broken'
  status: number | undefined
  requestId: string | undefined
  parts: AnswerParts
  /** The events of a stream, each with the time at which it came, in ms. */
  events: readonly { name: string; data: string; ms: number }[]
  /** The body of an answer without a stream. */
  body: string
  firstMs: number | undefined
  totalMs: number | undefined
  /** The gateway's refusal to run the request. */
  refusal: Refusal | undefined
}

const begun: Played = {
  state: 'running',
  status: undefined,
  requestId: undefined,
  parts: noParts,
  events: [],
  body: '',
  firstMs: undefined,
  totalMs: undefined,
  refusal: undefined,
}

/** The account that pays, or `self` for the owner of the key. */
export type Payer = { account: string } | 'self'

/**
 * Sends a request as an account and shows the answer while it arrives. The answer is kept only in memory, while the
 * page is open.
 */
export function usePlay() {
  const played = useSignal<Played | undefined>(undefined)
  const run = useRef<AbortController | undefined>(undefined)
  const stop = () => run.current?.abort()
  useEffect(() => stop, [])
  return {
    played: played.value,
    play: (payer: Payer, wire: ClientWire, body: string) => void play(payer, wire, body),
    stop,
  }

  async function play(payer: Payer, wire: ClientWire, body: string): Promise<void> {
    stop()
    const own = new AbortController()
    run.current = own
    const startedMs = performance.now()
    const since = () => Math.round(performance.now() - startedMs)
    const set = (changes: Partial<Played>) => {
      if (run.current === own) played.value = { ...(played.peek() ?? begun), ...changes }
    }
    played.value = begun
    try {
      const [path, paid] = payer === 'self' ? ['/me/playground', {}] : ['/playground', payer]
      const response = await send(path, { method: 'POST', body: { ...paid, wire, body }, signal: own.signal })
      set({ status: response.status, requestId: response.headers.get('x-request-id') ?? undefined })
      const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false
      if (isStream) await readStream(response, wire, since, set, () => played.peek()!)
      else {
        const text = await response.text()
        set({ body: text, parts: response.ok ? partsOf(wire, parse(text)) : noParts, firstMs: since() })
      }
      set({ state: 'over', totalMs: since() })
    } catch (error) {
      if (error instanceof Refusal) set({ state: 'over', refusal: error })
      else set({ state: own.signal.aborted ? 'stopped' : 'broken', totalMs: since() })
    }
  }
}

async function readStream(
  response: Response,
  wire: ClientWire,
  since: () => number,
  set: (changes: Partial<Played>) => void,
  now: () => Played,
): Promise<void> {
  const read = eventReader()
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const ms = since()
    const fresh = read(value)
    if (fresh.length === 0) continue
    const parts = fresh.reduce((before, { data }) => addEvent(wire, before, parse(data)), now().parts)
    const events = [...now().events, ...fresh.map((event) => ({ ...event, ms }))].slice(-2_000)
    set({ parts, events, firstMs: now().firstMs ?? ms })
  }
}

/** Returns {} for text that is not JSON: the last data of a stream on the chat wire is `[DONE]`. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text) ?? {}
  } catch {
    return {}
  }
}
