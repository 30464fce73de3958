import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { writeAnswer, writeStream } from './answer.ts'
import type { Json, ModelScript, Reply, ScriptedEvent, Wire } from './case.ts'
import { isObject, type JsonObject, objectOf, parse, textOf } from './json.ts'
import type { ModelObservation } from './observation.ts'
import { readRequest } from './read-request.ts'
import { replaceModel } from './replace.ts'
import { clientWires } from './wires/index.ts'

/*
 * The model of all cases: one server on three wires. Cases that run at once each have a lane, which the name of the
 * model shows: from lane 2 on, it ends with the number of the lane.
 */

/**
 * The script and the requests of one run of a case.
 * @property wire the pair's model wire, on which the gateway should ask
 */
export type Lane = {
  wire: Wire
  script: ModelScript | undefined
  seen: ModelObservation[]
  /** A wire on which the gateway asked instead. */
  wrongWire?: Wire
  open: Set<ServerResponse>
}

export type ScriptedModel = {
  port: number
  /** Begins a run. Requests of the lane are answered by its script until the next one. */
  begin(lane: number, wire: Wire, script: ModelScript | undefined): Lane
  /** Waits until each answer of a lane is over, at most so long, and then ends the others. */
  settle(lane: Lane, limitMs: number): Promise<void>
  close(): Promise<void>
}

const paths: [end: RegExp, wire: Wire][] = [
  [/\/chat\/completions$/, 'chat'],
  [/\/responses(\/compact)?$/, 'responses'],
  [/\/messages(\/count_tokens)?$/, 'messages'],
]

/** Starts the model on loopback. @param port 0 lets the system choose. @throws Error if the port is taken */
export async function startModel(port: number): Promise<ScriptedModel> {
  const lanes = new Map<number, Lane>()
  const server: Server = createServer({ keepAliveTimeout: 30_000 }, (request, response) => {
    answer(lanes, request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    begin(number, wire, script) {
      const lane: Lane = { wire, script, seen: [], open: new Set() }
      lanes.set(number, lane)
      return lane
    },
    async settle(lane, limitMs) {
      const end = Date.now() + limitMs
      while (lane.open.size > 0 && Date.now() < end) await pause(5)
      for (const response of lane.open) response.destroy()
    },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function answer(lanes: ReadonlyMap<number, Lane>, request: IncomingMessage, response: ServerResponse) {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const raw = Buffer.concat(chunks).toString()
  const path = request.url!.replace(/\?.*$/s, '')
  // Some gateways request the list of models, or check by themselves that the model answers.
  if (request.method !== 'POST') return sendJson(response, 200, { object: 'list', data: [] })
  const body = parse(raw)
  const name = textOf(objectOf(body)['model'])
  const lane = lanes.get(Number(/-(\d+)$/.exec(name)?.[1] ?? 1))
  const wire = paths.find(([end]) => end.test(path))?.[1]
  if (!lane) return sendJson(response, 503, { error: { type: 'server_error', message: 'no case runs here' } })
  const observation: ModelObservation = {
    method: 'POST',
    path,
    headers: request.headers as { [name: string]: string },
    ...(body === undefined ? {} : { body }),
    raw,
    asked: readRequest(wire ?? lane.wire, objectOf(body)),
    left: false,
  }
  lane.seen.push(observation)
  // Without a script, any request is the fault, whatever its wire.
  if (lane.script && wire && wire !== lane.wire) lane.wrongWire = wire
  const exchanges = lane.script?.exchanges ?? []
  const exchange = exchanges[Math.min(lane.seen.length, exchanges.length) - 1]
  if (!exchange)
    return sendJson(response, 400, { error: { type: 'invalid_request_error', message: 'no model may be asked' } })
  lane.open.add(response)
  response.once('close', () => {
    if (!response.writableFinished && !closedByScript.has(response)) observation.left = true
    lane.open.delete(response)
  })
  const reply = replaceModel(exchange.reply as unknown as Json, name) as unknown as Reply
  await play(response, wire ?? lane.wire, reply, { ...objectOf(body), model: name })
}

const closedByScript = new WeakSet<ServerResponse>()

async function play(response: ServerResponse, wire: Wire, reply: Reply, asked: JsonObject): Promise<void> {
  if (reply.pauseMs) await pause(reply.pauseMs)
  const status = reply.status ?? 200
  const bytes = reply.raw ?? (reply.base64 === undefined ? undefined : Buffer.from(reply.base64, 'base64'))
  if (bytes !== undefined) {
    response.writeHead(status, { 'content-type': 'application/json', ...reply.headers })
    return write(response, [bytes], reply)
  }
  const isStream = asked['stream'] === true && status < 400
  if (isStream || (reply.events && status >= 400)) {
    response.writeHead(status, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', ...reply.headers })
    response.flushHeaders()
    return write(response, eventsOf(wire, reply, asked), reply)
  }
  response.writeHead(status, { 'content-type': 'application/json', ...reply.headers })
  return write(response, [JSON.stringify(bodyOf(wire, reply, asked))], reply)
}

function eventsOf(wire: Wire, reply: Reply, asked: JsonObject): ScriptedEvent[] {
  if (reply.events) return reply.events
  const whole = bodyOf(wire, reply, asked)
  if (!isObject(whole)) return [{ data: whole }]
  const hasUsage = objectOf(asked['stream_options'])['include_usage'] === true
  return writeStream(wire, whole, { pieces: reply.answer?.pieces, hasUsage })
}

function bodyOf(wire: Wire, reply: Reply, asked: JsonObject): Json {
  if (reply.answer) return writeAnswer(wire, reply.answer, textOf(asked['model']))
  if (reply.json !== undefined) return reply.json
  const datas = (reply.events ?? []).map((event) => (event as { data: Json }).data)
  return clientWires[wire].collect(datas).body
}

/** Writes text and events, in pieces, with the pauses and the end that the reply asks for. */
async function write(
  response: ServerResponse,
  parts: (string | Buffer | ScriptedEvent)[],
  reply: Reply,
): Promise<void> {
  let left = reply.cutAfterBytes ?? Number.POSITIVE_INFINITY
  for (const part of parts) {
    if (response.destroyed) return
    if (typeof part === 'object' && 'pauseMs' in part) {
      await pause(part.pauseMs)
      continue
    }
    if (typeof part === 'object' && 'cut' in part) return cut(response)
    if (typeof part === 'object' && 'hang' in part) return
    const bytes = bytesOf(part).subarray(0, left)
    left -= bytes.length
    const size = reply.splitBytes ?? bytes.length
    for (let at = 0; at < bytes.length; at += size) {
      response.write(bytes.subarray(at, at + size))
      // Each piece becomes a packet of its own.
      if (reply.splitBytes) await new Promise(setImmediate)
    }
    if (left <= 0) return cut(response)
  }
  response.end()
}

function cut(response: ServerResponse): void {
  closedByScript.add(response)
  // The bytes that were written must be sent first.
  response.write('', () => setTimeout(() => response.destroy(), 20))
}

function bytesOf(part: string | Buffer | ScriptedEvent): Buffer {
  if (typeof part === 'string') return Buffer.from(part)
  if (Buffer.isBuffer(part)) return part
  if ('raw' in part) return Buffer.from(part.raw)
  if ('base64' in part) return Buffer.from(part.base64, 'base64')
  const { event, data } = part as { event?: string; data: Json }
  const type = event ?? (isObject(data) ? data['type'] : undefined)
  const text = typeof data === 'string' ? data : JSON.stringify(data)
  return Buffer.from(`${typeof type === 'string' ? `event: ${type}\n` : ''}data: ${text}\n\n`)
}

function sendJson(response: ServerResponse, status: number, body: Json): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
