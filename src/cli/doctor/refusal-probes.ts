import type { ClientWire, Question } from './client-wire.ts'
import { type Asker, none, ok, type Verdict } from './probe.ts'
import { messageOf, needKey, needRequestId, objectOf } from './read-answer.ts'

const noSuchKey = 'sk-triwire-doctor-no-such-key'
export const noSuchModel = 'triwire-doctor-no-such-model'

export type Refusal = { status: number; change: Partial<Question>; key?: string; isBroken?: boolean }

/** Asked once of each wire; the body of the answer is the wire's to judge. The wrong keys come last: they are throttled. */
export const refusalProbes: Readonly<Record<string, Refusal>> = {
  'unknown model': { status: 404, change: { model: noSuchModel } },
  'malformed body': { status: 400, change: {}, isBroken: true },
  'wrong key': { status: 401, change: {}, key: noSuchKey },
}

export async function probeRefusal(
  clientWire: ClientWire,
  refusal: Refusal,
  model: string,
  asker: Asker,
): Promise<Verdict> {
  const question = { model, text: 'Hello.', stream: false, ...refusal.change }
  const whole = JSON.stringify(clientWire.body(question))
  const sent = refusal.isBroken ? whole.slice(0, -1) : whole
  const seen = await asker.request(clientWire.path, asker.keyHeaders(refusal.key), sent)
  const { status, headers, text } = seen
  const body = objectOf(text)
  if (refusal.key && status === 429) return none('too many failed authentications from here: ask again in a minute')
  if (!refusal.key) needKey(seen)
  if (status !== refusal.status) throw new Error(`status ${status} and not ${refusal.status}: ${messageOf(text)}`)
  const mistake = body ? clientWire.findMistake(body, status, headers.get('x-request-id')) : 'it is not JSON'
  if (mistake) throw new Error(`the error has not the shape of the wire: ${mistake}`)
  needRequestId(seen)
  return ok(messageOf(text))
}
