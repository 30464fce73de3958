import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { frameOfEvent } from './clouds.ts'
import type { Frame } from './prompt.ts'
import type { ScriptStep } from './script.ts'

/** The wait before a connection is reset, in ms. Otherwise the reset could overtake bytes that were sent before it. */
const resetGraceMs = 20

/** The destination of an answer. `gone` is aborted when the client has left. */
export type Outlet = {
  response: ServerResponse
  gone: AbortSignal
  /** Whether the simulator ended the connection, and not the client. */
  isReset: boolean
}

/**
 * Writes the frames of a stream with the delays, cuts and line ends of the step. Waits while the client does not read,
 * and returns when the client has left.
 * @param fail makes the frames after a cut with `how: error`; its argument is the number of frames sent before
 * @param isFramed whether each event is sent in a frame of Amazon's event stream
 */
export async function playFrames(
  outlet: Outlet,
  step: ScriptStep,
  frames: Iterable<Frame>,
  fail: (sent: number) => Iterable<Frame>,
  isFramed = false,
): Promise<void> {
  const { cut, sse } = step
  let all = frames
  let eventsMax = cut?.after_events ?? Number.POSITIVE_INFINITY
  if (eventsMax < 0) {
    all = [...frames]
    eventsMax = Math.max(0, (all as Frame[]).length + eventsMax)
  }
  const write = createWriter(outlet, step)
  let sent = 0
  let held = sse?.bom ? '\ufeff' : ''
  for (const frame of all) {
    if (sent >= eventsMax) break
    await pause(outlet, frame.delayMs ?? (sent === 0 ? step.first_delay_ms : step.delay_ms))
    // If the script leaves out the last blank line, the blank line after each frame is sent with the next frame.
    const { body, blank } = frameText(frame, sse?.crlf ? '\r\n' : '\n')
    const text = held + body + (sse?.no_last_blank ? '' : blank)
    const isWhole = await write(isFramed ? frameOfEvent(text) : text)
    held = sse?.no_last_blank ? blank : ''
    sent++
    if (!isWhole) return endCut(outlet, step, fail, sent, isFramed)
    if (outlet.gone.aborted) return
  }
  if (sent >= eventsMax) return endCut(outlet, step, fail, sent, isFramed)
  outlet.response.end()
}

/** Writes a body that is not a stream. It has no events, so `cut.after_events` removes its second half. */
export async function playBody(outlet: Outlet, step: ScriptStep, body: string): Promise<void> {
  const after = step.cut?.after_bytes ?? (step.cut ? Math.floor(Buffer.byteLength(body) / 2) : undefined)
  const cut = after === undefined ? undefined : { ...step.cut, after_bytes: after }
  await pause(outlet, step.first_delay_ms)
  const isWhole = await createWriter(outlet, { ...step, cut })(body)
  if (!isWhole) return endCut(outlet, step, () => [], 0)
  if (!outlet.gone.aborted) outlet.response.end()
}

/** Waits for `delayMs`, or until the client has left. */
export async function pause({ gone }: Outlet, delayMs = 0): Promise<void> {
  if (delayMs > 0) await sleep(delayMs, undefined, { signal: gone }).catch(() => undefined)
}

/** Creates a function that writes a text. The function returns false if `cut.after_bytes` has cut the text. */
function createWriter({ response, gone }: Outlet, step: ScriptStep): (text: string | Buffer) => Promise<boolean> {
  let left = step.cut?.after_bytes ?? Number.POSITIVE_INFINITY
  return async (text) => {
    const bytes = Buffer.from(text as string)
    const kept = bytes.length > left ? bytes.subarray(0, left) : bytes
    left -= kept.length
    const size = step.split ?? Math.max(1, kept.length)
    for (let at = 0; at < kept.length && !gone.aborted; at += size) {
      if (!response.write(kept.subarray(at, at + size)))
        await once(response, 'drain', { signal: gone }).catch(() => undefined)
      // Node combines writes of the same tick, but each piece must be sent separately.
      if (step.split) await new Promise((resolve) => setImmediate(resolve))
    }
    return kept.length === bytes.length
  }
}

async function endCut(
  outlet: Outlet,
  step: ScriptStep,
  fail: (sent: number) => Iterable<Frame>,
  sent: number,
  isFramed = false,
): Promise<void> {
  const { response, gone } = outlet
  if (gone.aborted) return
  response.flushHeaders()
  switch (step.cut?.how ?? 'reset') {
    case 'hang':
      return
    case 'end':
      response.end()
      return
    case 'error':
      for (const frame of fail(sent)) {
        const { body, blank } = frameText(frame, step.sse?.crlf ? '\r\n' : '\n')
        response.write(isFramed ? frameOfEvent(body + blank) : body + blank)
      }
      response.end()
      return
    case 'reset':
      await pause(outlet, resetGraceMs)
      outlet.isReset = true
      response.socket?.resetAndDestroy()
  }
}

function frameText(frame: Frame, lineEnd: string): { body: string; blank: string } {
  if (frame.raw !== undefined) return { body: frame.raw, blank: '' }
  if (frame.comment !== undefined) return { body: `: ${frame.comment}${lineEnd}`, blank: lineEnd }
  const event = frame.event ? `event: ${frame.event}${lineEnd}` : ''
  const data = (frame.data ?? '')
    .split('\n')
    .map((line) => `data: ${line}${lineEnd}`)
    .join('')
  return { body: event + data, blank: lineEnd }
}
