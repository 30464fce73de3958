import { clientWires, EventReader, type JsonObject } from '#probes'
import { asObject, parseObject } from '../../bytes/json.ts'
import type { ClientWire } from '../../catalog/wire-names.ts'
import type { DoctorReply } from '../ask.ts'
import type { ProbeReply } from './client-wire.ts'
import { KeyRefused, StatusError } from './probe.ts'

/** Reads an answer as a client of the wire does. @throws Error that describes the fault */
export function readAnswer(wire: ClientWire, isStream: boolean, seen: DoctorReply): ProbeReply {
  const reader = clientWires[wire]
  const read = (body: JsonObject) => ({ ...reader.read(body), turn: reader.readTurn(body) })
  if (seen.status !== 200 || !isStream) return read(bodyOf(seen))
  const type = seen.headers.get('content-type')
  if (!type?.startsWith('text/event-stream')) throw new Error(`a stream was asked for, and the answer is ${type}`)
  const events = new EventReader().push(seen.text)
  const datas = events.map(({ data }) => data).filter((data) => data !== '')
  const disorder = reader.findDisorder(datas) ?? reader.findMissing(datas)
  if (disorder) throw new Error(`the stream is out of order: ${disorder}`)
  const { body, isEnded } = reader.collect(datas)
  const failures = datas.flatMap((data) => reader.readError((asObject(data) ?? {}) as JsonObject)?.message ?? [])
  if (isEnded && failures.length === 0) return read(body)
  throw new Error(['the stream ended without its terminator', ...failures].join(': '))
}

/** Returns the body of a response. @throws StatusError unless the status is 200 @throws Error unless it is an object */
export function bodyOf(seen: DoctorReply): JsonObject {
  const { status, headers, text } = seen
  needKey(seen)
  if (status !== 200) {
    const requestId = headers.get('x-request-id')
    const message = messageOf(text).slice(0, 160).replace(/\.$/, '')
    throw new StatusError(status, `status ${status}: ${message}; ${cureFor(status, requestId)}`)
  }
  const body = parseObject(text)
  if (!body) throw new Error('the answer is not a JSON object: is this base URL a gateway?')
  return body as JsonObject
}

/** Checks that the key was accepted. @throws KeyRefused if it was refused, or if its account cannot pay */
export function needKey({ status, text }: DoctorReply): void {
  if (status === 402) {
    throw new KeyRefused(
      `the account cannot pay for the probes: ${messageOf(text).slice(0, 160)} Give it credit with triwire account credit, or use the key of another`,
    )
  }
  if (status !== 401) return
  throw new KeyRefused(
    `the gateway refuses the key: ${messageOf(text).slice(0, 160)} Check --key or TRIWIRE_KEY; triwire key create makes a key`,
  )
}

export function needRequestId({ headers }: DoctorReply): void {
  if (!headers.get('x-request-id')) throw new Error('the answer has no x-request-id')
}

/** Returns the error message of a whole body or of an event of a stream. */
function failureOf(body: Record<string, unknown> | undefined): string | undefined {
  const error = asObject(body?.['error']) ?? asObject(asObject(body?.['response'])?.['error'])
  return typeof error?.['message'] === 'string' ? error['message'] : undefined
}

/** Returns the error message of a body, or else the whole text. */
export function messageOf(text: string): string {
  return failureOf(parseObject(text)) ?? text
}

/** The advice for each status of an error. It is printed after the gateway's own message. */
const cures: Readonly<Record<number, string>> = {
  402: 'give the account credit: triwire account credit',
  403: 'ask the operator of the gateway what this key may use',
  404: 'check --base-url, and the model against GET /v1/models',
  413: 'something before the gateway limits its bodies to a few kilobytes',
  429: 'wait a minute, or ask fewer models with --model',
}

/** Returns the advice for a status. Without advice, the text names the log in which to look. */
function cureFor(status: number, requestId: string | undefined): string {
  if (status >= 300 && status < 400) return 'name the address that it redirects to as --base-url'
  const logged = requestId ? `look for ${requestId} in the gateway's log` : 'look into the log of the server'
  return cures[status] ?? logged
}
