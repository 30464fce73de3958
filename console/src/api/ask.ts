import { signal } from '@preact/signals'
import { apiOf } from '../demo.ts'
import { findUnreached } from '../pure/unreached.ts'
import { signedOut } from '../session.ts'

/** The names of servers whose part was missing in the last answer about all servers, as one text. */
export const unreachedServers = signal<string | undefined>(undefined)

/** The models that fail now, by the last tick or status. */
export const failingModels = signal<readonly string[]>([])

/** A refusal by the API, or the failure to reach it. */
export class Refusal extends Error {
  readonly status: number
  /** `not_found`, `conflict`…; `unreachable` if there was no response. */
  readonly problem: string
  readonly title: string
  readonly requestId: string | undefined
  readonly errors: readonly { pointer: string; detail: string }[]
  /** If the object was changed meanwhile: its current state, and the version of that state. */
  readonly current: unknown
  readonly version: string | undefined

  constructor(status: number, body: Partial<ProblemBody>, version?: string) {
    super(body.detail ?? 'The gateway did not answer.')
    this.status = status
    this.problem = body.type?.replace('urn:triwire:problem:', '') ?? 'unreachable'
    this.title = body.title ?? 'Not reached'
    this.requestId = body.request_id
    this.errors = body.errors ?? []
    this.current = body.current
    this.version = version
  }
}

/** Refuses fields that the console itself finds invalid, as the API would. @throws Refusal if there is an error */
export function refuseFields(errors: ProblemBody['errors']): void {
  if (errors[0]) throw new Refusal(400, { detail: errors[0].detail, errors })
}

type ProblemBody = {
  type: string
  title: string
  detail: string
  request_id: string
  errors: { pointer: string; detail: string }[]
  current: unknown
}

export type Asked = {
  method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  body?: unknown
  headers?: Record<string, string>
  signal?: AbortSignal
}

export type Told<T> = { body: T; version: string | undefined; status: number }

/** Sends a request and reads the JSON of its answer. @param path below /api/v1 @throws Refusal */
export async function ask<T>(path: string, asked: Asked = {}): Promise<Told<T>> {
  const response = await send(path, asked)
  const version = response.headers.get('etag') ?? undefined
  if (response.status === 204) return { body: undefined as T, version, status: 204 }
  // A proxy may answer in the place of the gateway, in its own words.
  if (!response.ok) throw new Refusal(response.status, {})
  const body = await readJson(response).catch((error: Error) => {
    if (error.name === 'AbortError') throw error
    // The connection broke, or a proxy has answered in the place of the gateway.
    throw new Refusal(0, {})
  })
  return { body: body as T, version, status: response.status }
}

/** Reads JSON, or a table with a row of JSON on each line. */
async function readJson(response: Response): Promise<unknown> {
  if (!response.headers.get('content-type')?.startsWith('application/jsonl')) return response.json()
  const lines = (await response.text()).split('\n').filter(Boolean)
  return lines.map((line) => JSON.parse(line) as unknown)
}

/**
 * Sends a request and returns the response itself, for content other than the API's JSON: a model's answer, or a file.
 * @throws Refusal
 */
export async function send(path: string, { method = 'GET', body, headers, signal: abort }: Asked): Promise<Response> {
  const content: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' }
  let response: Response
  try {
    response = await fetch(`${apiOf(path)}${path}`, {
      method,
      headers: { ...content, ...headers },
      body: body === undefined ? null : JSON.stringify(body),
      signal: abort ?? null,
      cache: 'no-store',
    })
  } catch (error) {
    if ((error as Error).name === 'AbortError') throw error
    throw new Refusal(0, {})
  }
  if (response.ok) {
    const named = response.headers.get('x-triwire-unreached')
    unreachedServers.value = findUnreached(path, named, unreachedServers.peek())
  }
  if (response.ok || !isProblem(response)) return response
  const refusal = await readRefusal(response)
  if (refusal.status === 401 && path !== '/session') signedOut()
  throw refusal
}

function isProblem({ headers }: Response): boolean {
  return headers.get('content-type')?.startsWith('application/problem+json') ?? false
}

async function readRefusal(response: Response): Promise<Refusal> {
  const body = (await response.json().catch(() => ({}))) as Partial<ProblemBody>
  return new Refusal(response.status, body, response.headers.get('etag') ?? undefined)
}

/** Adds the fields of a query to a path. Empty fields are left out. */
export function withQuery(path: string, fields: Readonly<Record<string, string | number | undefined>>): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(fields))
    if (value !== undefined && value !== '') search.set(name, String(value))
  const text = search.toString()
  return text === '' ? path : `${path}?${text}`
}
