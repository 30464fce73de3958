import { setTimeout as pause } from 'node:timers/promises'
import { clientWires, writeAsk } from '#probes'
import { type DoctorReply, send } from '../ask.ts'
import { type Asker, KeyRefused, OwnPromise, type Probe, type ProbedGateway, type ProbeFinding } from './probe.ts'
import { readAnswer } from './read-answer.ts'

const noteLengthMax = 240

/** Runs a probe and judges its answer. @throws KeyRefused */
export async function runProbe(
  { model, wire, name, isOurs, run }: Probe,
  target: ProbedGateway,
): Promise<ProbeFinding> {
  let last: DoctorReply | undefined
  let tokens = 0
  const clientWire = clientWires[wire ?? 'chat']
  const keyHeaders = (key = target.key) => clientWire.keyHeaders(key)
  const request: Asker['request'] = async (path, headers, body) => {
    last = undefined
    const { origin, timeoutMs } = target
    const sending = { url: origin + path, headers, timeoutMs, ...(body === undefined ? {} : { body }) }
    last = await send(sending)
    const waitMs = soonMs(last)
    if (waitMs === undefined) return last
    await pause(waitMs)
    last = await send(sending)
    return last
  }
  const ask: Asker['ask'] = async (question, asked) => {
    const { cacheKey, stream = false } = question
    // The messages wire has no field for the key of a conversation, so a header carries it.
    const headers = { ...keyHeaders(), ...(cacheKey && wire === 'messages' ? { 'x-session-id': cacheKey } : {}) }
    const body = { ...writeAsk(wire ?? 'chat', question), model: asked, ...(wire === 'responses' && { store: false }) }
    const reply = readAnswer(wire ?? 'chat', stream, await request(clientWire.path, headers, JSON.stringify(body)))
    const { input, output } = reply.usage ?? {}
    tokens += (input ?? 0) + (output ?? 0)
    if (input === undefined || !output) throw new Error('the answer does not count its tokens')
    return reply
  }
  const finish = (result: ProbeFinding['result'], note: string): ProbeFinding => {
    const { firstByteMs = null, totalMs = null, status = null } = last ?? {}
    return { model, wire, probe: name, result, firstByteMs, totalMs, tokens, note: tidy(note, target.key), status }
  }
  try {
    const { result, note } = await run({ ask, request, keyHeaders })
    return finish(result, note)
  } catch (error) {
    const { message } = error as Error
    if (error instanceof KeyRefused) throw new KeyRefused(tidy(message, target.key))
    const isOwn = isOurs || error instanceof OwnPromise
    return isOwn && target.isPeer && last ? finish('none', `unlike triwire: ${message}`) : finish('failed', message)
  }
}

const soonMaxSeconds = 2

/** Returns how long to wait after a 429 with a short `retry-after`, in ms. Clients also retry after such a 429. */
function soonMs({ status, headers }: DoctorReply): number | undefined {
  const seconds = headers.get('retry-after') ?? ''
  return status === 429 && /^\d{1,2}$/.test(seconds) && Number(seconds) <= soonMaxSeconds
    ? Number(seconds) * 1_000
    : undefined
}

/** Makes one line for a terminal without the key, which the server may have repeated. */
function tidy(note: string, key: string): string {
  const line = note
    .replaceAll(key, '…')
    .replace(/[\s\p{Cc}\p{Cf}]+/gu, ' ')
    .trim()
  return line.length > noteLengthMax ? `${line.slice(0, noteLengthMax)}…` : line
}
