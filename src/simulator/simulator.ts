import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { asObject } from '../bytes/json.ts'
import { chat } from './chat/format.ts'
import { type CloudPath, frameType, openEnvelope, readCloudPath } from './clouds.ts'
import { messages } from './messages/format.ts'
import { planReply } from './plan-reply.ts'
import { type Outlet, pause, playBody, playFrames } from './play.ts'
import { createPrefixCache, tokensOf } from './prefix-cache.ts'
import {
  type Frame,
  type PromptTurn,
  Rejection,
  type ReplyHead,
  type SimulatorWire,
  type WireFormat,
} from './prompt.ts'
import { createRecord, keyOf, parseOrNothing, type RecordedRequest, readText } from './recorded-request.ts'
import { responses } from './responses/format.ts'
import { checkScript, loadScripts, type Script, type ScriptedEvent, type ScriptStep, selectStep } from './script.ts'

export { type BuiltInScript, builtInScripts } from '../catalog/built-in-scripts.ts'
export type { RecordedRequest } from './recorded-request.ts'
export { loadScripts, parseScript, parseScripts, type Script, ScriptError } from './script.ts'

/** An `import` of `node:http` would read all its exports. Reading one of them loads Node's fetch, which takes 30 ms. */
const { createServer } = process.getBuiltinModule('node:http')

/** A line of the log: names, counts and times, and no content. */
export type AnsweredRequest = {
  method: string
  path: string
  /** The model as the request names it. Undefined if the request names no model. */
  model?: string
  status: number
  ms: number
  /** Whether the client left before the answer was complete. */
  isCut: boolean
}

export type SimulatorOptions = {
  host?: string
  /** The port to listen on. With 0, any free port is used. */
  port?: number
  /** Scripts by name, or the path of a YAML file with them. */
  scripts?: ReadonlyMap<string, Script> | Readonly<Record<string, Script>> | string
  /** Whether to keep every request in `requests`, without a limit, for tests. */
  record?: boolean
  /** Called for each request when its answer has ended. */
  onAnswered?: (request: AnsweredRequest) => void
  /** Whether requests are checked as the vendors check them. */
  strict?: boolean
  /** The wires by path, for a provider whose paths differ from the usual paths of the wires. */
  paths?: Readonly<Record<string, SimulatorWire>>
  /** The shortest prefix that prompt caches keep: 64 tokens, or the minimum that the vendors have. */
  promptCache?: 'short' | 'vendors'
  clock?: () => number
  newId?: (prefix: string) => string
}

export type Simulator = {
  url: string
  port: number
  /** The requests in the order of arrival. Empty unless `record` is set. */
  requests: RecordedRequest[]
  /** Adds or replaces a script. @throws ScriptError */
  script(name: string, script: Script): void
  close(): Promise<void>
}

const wires: Record<SimulatorWire, WireFormat> = { messages, chat, responses }
/** The status of an answer that a script ends by `cut.how: error`, if the answer is not a stream. */
const failureStatus = 500

/**
 * Starts an upstream that behaves like the vendors of the three wires. Its answers are deterministic. They come from a
 * script, or are the defaults. It shares no code with the gateway's wires.
 * @throws ScriptError, or the error of the listener
 */
export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const { host = '127.0.0.1', port = 0, record = false, strict = true, clock = Date.now, newId = randomId } = options
  const { promptCache: length = 'short' } = options
  const scripts = await readScripts(options.scripts)
  const cache = createPrefixCache({ length, clock })
  const requests: RecordedRequest[] = []
  const server = createServer((request, response) => {
    void handle(request, response).catch(() => response.destroy())
  })
  server.listen(port, host)
  await new Promise((resolve, reject) => server.once('listening', resolve).on('error', reject))
  const bound = (server.address() as AddressInfo).port
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    port: bound,
    requests,
    script: (name, script) => void scripts.set(name, checkScript(script)),
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController()
    const outlet: Outlet = { response, gone: gone.signal, isReset: false }
    const path = (request.url ?? '/').split('?')[0]!
    const recorded = createRecord(request, path)
    if (record) requests.push(recorded)
    const startedMs = performance.now()
    response.on('close', () => {
      if (!response.writableFinished && !outlet.isReset) {
        recorded.closedEarly = true
        recorded.closedAt = clock()
      }
      gone.abort()
      options.onAnswered?.(lineOf(recorded, response, startedMs))
    })
    for (const [name, value] of Object.entries(corsHeaders)) response.setHeader(name, value)
    if (request.method === 'OPTIONS') return answerPreflight(request, response)
    const clouded = readCloudPath(path)
    const found = clouded ? 'messages' : findWire(path, options.paths)
    const format = found ? wires[found] : path === countPath ? messages : chat
    try {
      recorded.body = await readText(request)
      recorded.json = parseOrNothing(recorded.body)
      const key = keyOf(request)
      if (key === '') throw new Rejection({ status: 401, message: 'No API key was sent.', code: 'invalid_api_key' })
      if (path === '/v1/models' && request.method === 'GET')
        write(response, ownHeaders(chat), listModels(scripts.keys()))
      else if (path === countPath && request.method === 'POST')
        write(response, ownHeaders(messages), countInput(recorded.json, strict))
      else if (!found || request.method !== 'POST') throw unknownPath(`${request.method} ${path}`)
      else
        await answer(
          outlet,
          found,
          format,
          clouded ? openEnvelope(recorded.json, clouded) : recorded.json,
          key,
          clouded,
        )
    } catch (error) {
      if (!(error instanceof Rejection) && (!request.complete || response.headersSent)) throw error
      writeRejection(response, format, rejectionOf(error), ownHeaders(format))
    } finally {
      recorded.status = response.headersSent ? response.statusCode : 0
    }
  }

  function ownHeaders(format: WireFormat): Record<string, string> {
    return { [format.requestIdHeader]: newId('req_') }
  }

  async function answer(
    outlet: Outlet,
    wire: SimulatorWire,
    format: WireFormat,
    json: unknown,
    key: string,
    clouded: CloudPath | undefined,
  ): Promise<void> {
    const body = bodyOf(json)
    if (strict) format.check(body)
    const prompt = format.read(body)
    const step = selectStep(scripts, prompt.model, wire, countAssistantTurns(prompt.turns))
    await pause(outlet, step.head_delay_ms)
    if (outlet.gone.aborted) return
    const head: ReplyHead = {
      id: newId(format.idPrefix),
      createdSeconds: Math.floor(clock() / 1_000),
      model: prompt.model,
      body,
      newId,
    }
    const isStream = prompt.isStream && (step.body === undefined || step.events !== undefined)
    const status = step.status ?? (step.cut?.how === 'error' && !isStream ? failureStatus : 200)
    const headers = scriptedHeaders(step)
    if (step.body === undefined && status >= 400) {
      throw new Rejection({ status, message: `The simulator was told to answer ${status}.`, headers })
    }
    const counts = cache.read(prompt, key, wire)
    const reply = planReply(prompt, step, counts)
    const isFramed = isStream && clouded?.isFramed === true
    const type = isFramed ? frameType : isStream ? 'text/event-stream; charset=utf-8' : 'application/json'
    outlet.response.writeHead(status, { ...ownHeaders(format), 'content-type': type, ...headers })
    if (isStream) {
      outlet.response.flushHeaders()
      const frames = step.events?.map((event) => scriptedFrame(event, wire)) ?? format.writeFrames(reply, head)
      await playFrames(outlet, step, frames, (sent) => format.writeFailure(step.cut?.error ?? {}, head, sent), isFramed)
    } else {
      const whole = step.body ?? format.writeJson(reply, head)
      await playBody(outlet, step, typeof whole === 'string' ? whole : JSON.stringify(whole))
    }
  }
}

/** Returns the wire of a path. @param paths replaces the usual paths of the wires */
function findWire(path: string, paths: SimulatorOptions['paths']): SimulatorWire | undefined {
  if (paths) return paths[path]
  return (Object.keys(wires) as SimulatorWire[]).find((wire) => wires[wire].path === path)
}

function writeRejection(
  response: ServerResponse,
  format: WireFormat,
  { problem }: Rejection,
  own: Record<string, string>,
): void {
  response.writeHead(problem.status, { ...own, 'content-type': 'application/json', ...problem.headers })
  response.end(JSON.stringify(format.writeError(problem, own[format.requestIdHeader]!)))
}

/** Makes a refusal of an error, such as a header of a script that cannot be sent, or a schema that never ends. */
function rejectionOf(error: unknown): Rejection {
  if (error instanceof Rejection) return error
  return new Rejection({ status: 400, message: `The simulator cannot answer this: ${(error as Error).message}` })
}

function write(response: ServerResponse, own: Record<string, string>, body: object): void {
  response.writeHead(200, { ...own, 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}

/** Makes the log line of a request. @param startedMs by the monotonic clock */
function lineOf(recorded: RecordedRequest, response: ServerResponse, startedMs: number): AnsweredRequest {
  const { method, path, json, closedEarly } = recorded
  const model = asObject(json)?.['model']
  return {
    method,
    path,
    ...(typeof model === 'string' && { model }),
    status: response.headersSent ? response.statusCode : 0,
    ms: Math.round(performance.now() - startedMs),
    isCut: closedEarly,
  }
}

function bodyOf(json: unknown): Record<string, unknown> & { model: string } {
  const body = asObject(json)
  if (!body) throw new Rejection({ status: 400, message: 'The body is not a JSON object.' })
  if (typeof body['model'] !== 'string')
    throw new Rejection({ status: 400, message: 'model: is required', param: 'model' })
  return body as Record<string, unknown> & { model: string }
}

function listModels(scripts: Iterable<string>): object {
  const ids = ['sim', ...Array.from(scripts, (name) => `script:${name}`)]
  return { object: 'list', data: ids.map((id) => ({ id, object: 'model', created: 0, owned_by: 'simulator' })) }
}

/** Counts the input of a messages request, as the vendor does. `max_tokens` may be missing. */
function countInput(json: unknown, strict: boolean): object {
  // Without a maximum, a budget for thinking has no bound either.
  const body = { max_tokens: Number.MAX_SAFE_INTEGER, ...bodyOf(json) }
  if (strict) messages.check(body)
  return { input_tokens: messages.read(body).segments.reduce((sum, segment) => sum + tokensOf(segment), 0) }
}

const countPath = '/v1/messages/count_tokens'

/** Allows pages of any origin to call the simulator, and to read the headers that the SDKs of the wires use. */
const corsHeaders = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': 'x-request-id, request-id, retry-after',
}

function answerPreflight(request: IncomingMessage, response: ServerResponse): void {
  request.resume()
  const asked = request.headers['access-control-request-headers']
  response.writeHead(204, {
    'access-control-allow-methods': 'GET, POST',
    'access-control-max-age': '600',
    ...(asked && { 'access-control-allow-headers': asked }),
  })
  response.end()
}

async function readScripts(given: SimulatorOptions['scripts']): Promise<Map<string, Script>> {
  if (typeof given === 'string') return loadScripts(given)
  const entries = given instanceof Map ? [...given] : Object.entries(given ?? {})
  return new Map(entries.map(([name, script]) => [name, checkScript(script)]))
}

function unknownPath(what: string): Rejection {
  return new Rejection({ status: 404, message: `The simulator does not serve ${what}.`, code: 'unknown_url' })
}

/** Counts assistant turns; neighbouring ones count as one. The number selects a step of a script's `turns`. */
function countAssistantTurns(turns: PromptTurn[]): number {
  const talk = turns.filter((turn) => turn.side !== 'operator')
  return talk.filter((turn, index) => turn.side === 'assistant' && talk[index - 1]?.side !== 'assistant').length
}

function randomId(prefix: string): string {
  return prefix + randomBytes(12).toString('hex')
}

function scriptedHeaders(step: ScriptStep): Record<string, string> {
  return {
    ...(step.retry_after === undefined ? {} : { 'retry-after': String(step.retry_after) }),
    ...(step.content_type === undefined ? {} : { 'content-type': step.content_type }),
    ...step.headers,
  }
}

/** Makes the frame of a scripted event. On wires that name events, the default name is the `type` of the data. */
function scriptedFrame(scripted: ScriptedEvent, wire: SimulatorWire): Frame {
  if (typeof scripted === 'string') return { data: scripted }
  const { event, data, delay_ms, comment, raw } = scripted
  const type = wire === 'chat' ? undefined : asObject(data)?.['type']
  const name = event === undefined ? type : event
  return {
    ...(typeof name === 'string' && name !== '' ? { event: name } : {}),
    ...(data === undefined ? {} : { data: typeof data === 'string' ? data : JSON.stringify(data) }),
    ...(comment === undefined ? {} : { comment }),
    ...(raw === undefined ? {} : { raw }),
    ...(delay_ms === undefined ? {} : { delayMs: delay_ms }),
  }
}
