import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { StringDecoder } from 'node:string_decoder'
import { writeAsk } from './ask.ts'
import type { ClientRequest, Json, Wire } from './case.ts'
import { compact, isObject, type JsonObject, parse } from './json.ts'
import type { Bindings } from './match.ts'
import type { ClientObservation, SeenEvent } from './observation.ts'
import { replaceModel, replaceUses } from './replace.ts'
import { EventReader } from './sse.ts'
import { clientWires } from './wires/index.ts'

/** @property origin the gateway's address, perhaps with a path, without `/v1` @property headers those that the gateway needs besides */
export type Target = {
  origin: string
  key: string
  model: string
  headers?: Readonly<Record<string, string>> | undefined
}

/** A request as bytes. */
export type BuiltRequest = { method: string; path: string; headers: { [name: string]: string }; body?: Buffer }

/** Builds a request of a case. @throws Error if it uses a value that was not seen */
export function buildRequest(wire: Wire, request: ClientRequest, target: Target, bindings: Bindings): BuiltRequest {
  const { raw, base64 } = request
  const json = request.ask ? writeAsk(wire, request.ask) : request.body
  const text =
    json === undefined ? raw : JSON.stringify(replaceUses(replaceModel(json as Json, target.model), bindings))
  const body = base64 === undefined ? text?.replaceAll('$model', target.model) : Buffer.from(base64, 'base64')
  const path = String(replaceModel(request.path ?? clientWires[wire].path, target.model))
  const headers: { [name: string]: string | null } = {
    ...clientWires[wire].keyHeaders(target.key),
    ...target.headers,
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...request.headers,
  }
  return {
    method: request.method ?? (body === undefined ? 'GET' : 'POST'),
    path: path.replaceAll('$model', target.model),
    headers: Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== null)) as {
      [name: string]: string
    },
    ...(body === undefined ? {} : { body: Buffer.from(body) }),
  }
}

/**
 * Sends a request and observes the answer. A connection that fails is an observation with the status 0.
 * @param limitMs the time after which the answer counts as late
 */
export function send(
  wire: Wire,
  built: BuiltRequest,
  { origin, leaveAfter, limitMs }: { origin: string; leaveAfter?: ClientRequest['leaveAfter']; limitMs: number },
): Promise<ClientObservation> {
  const { promise, resolve } = Promise.withResolvers<ClientObservation>()
  const url = new URL(origin + built.path)
  const seen = { status: 0, headers: {} as { [name: string]: string }, raw: '', events: [] as SeenEvent[] }
  const ask = url.protocol === 'https:' ? requestHttps : requestHttp
  const request = ask(url, { method: built.method, headers: built.headers, agent: false })
  const finish = (ended: ClientObservation['ended']) => {
    for (const timer of timers) clearTimeout(timer)
    resolve(observe(wire, seen, ended))
    request.destroy()
  }
  const timers = [setTimeout(finish, limitMs, 'late')]
  if (leaveAfter?.ms !== undefined) timers.push(setTimeout(finish, leaveAfter.ms, 'left'))
  request.on('error', () => finish('cut'))
  request.on('response', (response) => {
    seen.status = response.statusCode!
    seen.headers = response.headers as { [name: string]: string }
    const decoder = new StringDecoder()
    const reader = new EventReader()
    const isStream = /^text\/event-stream\b/i.test(String(seen.headers['content-type']))
    response.on('data', (chunk: Buffer) => {
      const text = decoder.write(chunk)
      seen.raw += text
      if (isStream) seen.events.push(...reader.push(text))
      if (leaveAfter?.events !== undefined && seen.events.length >= leaveAfter.events) finish('left')
    })
    response.on('end', () => finish('complete'))
    response.on('error', () => finish('cut'))
  })
  request.end(built.body)
  return promise
}

type Seen = Pick<ClientObservation, 'status' | 'headers' | 'raw' | 'events'>

/** Reads what the client received, by its wire: a body, or a stream whose events are joined to a body. */
export function observe(wire: Wire, seen: Seen, ended: ClientObservation['ended']): ClientObservation {
  const reader = clientWires[wire]
  const isStream = seen.events.length > 0
  const body = isStream ? undefined : parse(seen.raw)
  const datas = seen.events.map(({ data }) => data)
  const collected = isStream ? reader.collect(datas) : undefined
  const whole: JsonObject | undefined = collected?.body ?? (isObject(body) ? body : undefined)
  const failed = [...datas, body].find((one) => isObject(one) && reader.readError(one)) as JsonObject | undefined
  return compact({
    ...seen,
    body,
    ended,
    done: collected?.isEnded ?? false,
    disorder: reader.findDisorder(datas),
    ...(whole && !(body && failed) ? reader.read(whole) : {}),
    error: failed && compact(reader.readError(failed)!),
  }) as ClientObservation
}
