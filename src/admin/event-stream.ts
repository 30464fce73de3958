import type { ApiAnswer } from './answer.ts'
import { tooMany } from './identity.ts'

/** The most event streams that an operator may read at the same time. */
const streamsMax = 20

/** The time between two checks that the token or cookie of a stream is still valid, in ms. */
const lookMs = 5_000

/**
 * Creates event streams, each of which ends when the token or cookie that opened it becomes invalid. They need no timers,
 * because an event is sent each second.
 * @param nowMs Unix milliseconds
 */
export function createEventStreams(nowMs: () => number) {
  const counts = new Map<string, number>()
  return open

  /** @throws ProblemError if the operator reads too many streams */
  function open(events: AsyncIterable<string>, actor: string, isStillGood: () => Promise<boolean>): ApiAnswer {
    const count = counts.get(actor) ?? 0
    if (count >= streamsMax) throw tooMany('You read as many streams as one may: close one.', 5)
    counts.set(actor, count + 1)
    const headers = { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' }
    return { status: 200, headers, pieces: read(events, isStillGood), onClose: () => leave(actor) }
  }

  function leave(actor: string): void {
    const count = counts.get(actor)! - 1
    if (count === 0) counts.delete(actor)
    else counts.set(actor, count)
  }

  async function* read(events: AsyncIterable<string>, isStillGood: () => Promise<boolean>): AsyncIterable<string> {
    let lookedMs = nowMs()
    for await (const event of events) {
      const now = nowMs()
      if (now - lookedMs >= lookMs) {
        lookedMs = now
        if (!(await isStillGood())) return
      }
      yield event
    }
  }
}
