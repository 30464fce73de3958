import type { operations } from './api.ts'
import { routes } from './routes.ts'

/*
 * A client of the admin API, for any program that has `fetch`. Its types are generated from the OpenAPI document, by
 * `node bin/node.mjs scripts/admin-clients.ts --write`. Copy the three files of this folder into your own sources.
 */

type Operations = operations
type Id = keyof typeof routes & keyof Operations

type Parameters<I extends Id> = Operations[I]['parameters']
type BodyOf<I extends Id> = Operations[I] extends { requestBody?: { content: { 'application/json': infer B } } }
  ? B
  : never
type AnswerOf<I extends Id> =
  Operations[I]['responses'] extends Record<200, { content: { 'application/json': infer A } }> ? A : undefined

/** All fields of an operation in one object: of its path, of its query, and of its body. */
export type Fields<I extends Id> = (Parameters<I>['path'] extends object ? Parameters<I>['path'] : object) &
  (Parameters<I>['query'] extends infer Q ? (Q extends object ? Q : object) : object) &
  ([BodyOf<I>] extends [never] ? object : NonNullable<BodyOf<I>>)

/**
 * @property version the `ETag` of an object that can be edited, as `ifMatch` of an edit takes it
 * @property location the path of a new object
 */
export type Answer<I extends Id> = {
  data: AnswerOf<I>
  status: number
  version: string | undefined
  location: string | undefined
}

/** @property ifMatch the version that an edit is based on; `*`: any @property idempotencyKey makes a creation once in 24 hours */
export type CallOptions = { ifMatch?: string; idempotencyKey?: string; signal?: AbortSignal }

export type Mistake = { pointer: string; detail: string }

/** A refusal (RFC 9457). @property problem its name, such as `not_found` @property current what is there now, after a 412 */
export class AdminProblem extends Error {
  override name = 'AdminProblem'
  readonly status: number
  readonly problem: string
  readonly requestId: string | undefined
  readonly errors: readonly Mistake[]
  readonly current: unknown

  constructor(status: number, body: Record<string, unknown>) {
    super(String(body['detail'] ?? body['title'] ?? `The answer has the status ${status}.`))
    this.status = status
    this.problem = String(body['type'] ?? '').replace(/^urn:triwire:problem:/, '')
    this.requestId = body['request_id'] as string | undefined
    this.errors = (body['errors'] as Mistake[] | undefined) ?? []
    this.current = body['current']
  }
}

/**
 * @param options.url of the admin listener, such as `http://127.0.0.1:8081`
 * @param options.token of an operator
 * @returns a function that asks an operation by its id, and one that yields the rows of all pages of a list
 */
export function createAdminClient({ url, token, ...given }: { url: string; token: string; fetch?: typeof fetch }) {
  const send = given.fetch ?? fetch
  return { call, list }

  /** @throws AdminProblem if it is refused */
  async function call<I extends Id>(id: I, fields: Fields<I>, options: CallOptions = {}): Promise<Answer<I>> {
    const [method, path] = routes[id]
    const rest = new Map(Object.entries(fields as Record<string, unknown>).filter(([, value]) => value !== undefined))
    const target = path.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = encodeURIComponent(String(rest.get(name)))
      rest.delete(name)
      return value
    })
    const hasBody = method === 'POST' || method === 'PATCH'
    const query = hasBody ? '' : `?${new URLSearchParams([...rest].map(([name, value]) => [name, String(value)]))}`
    const response = await send(url.replace(/\/$/, '') + target + query, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(hasBody && { 'content-type': 'application/json' }),
        ...(options.ifMatch !== undefined && { 'if-match': options.ifMatch }),
        ...(options.idempotencyKey !== undefined && { 'idempotency-key': options.idempotencyKey }),
      },
      ...(hasBody && { body: JSON.stringify(Object.fromEntries(rest)) }),
      ...(options.signal && { signal: options.signal }),
    })
    const isJson = /json\b/.test(response.headers.get('content-type') ?? '')
    const read: unknown = isJson ? await response.json() : await response.text()
    if (!response.ok) throw new AdminProblem(response.status, isJson ? (read as Record<string, unknown>) : {})
    const data = read as AnswerOf<I>
    const { status, headers } = response
    return { data, status, version: headers.get('etag') ?? undefined, location: headers.get('location') ?? undefined }
  }

  /** Yields the rows of a list, page after page. */
  async function* list<I extends ListId>(id: I, fields: Omit<Fields<I>, 'cursor'>): AsyncGenerator<RowOf<I>> {
    let cursor: string | undefined
    do {
      const { data } = await call(id, { ...fields, ...(cursor !== undefined && { cursor }) } as Fields<I>)
      const page = data as { items: RowOf<I>[]; next: string | null }
      yield* page.items
      cursor = page.next ?? undefined
    } while (cursor !== undefined)
  }
}

type RowOf<I extends Id> = AnswerOf<I> extends { items: (infer Row)[] } ? Row : never

/** Operations that return pages. */
export type ListId = { [I in Id]: AnswerOf<I> extends { items: unknown[]; next: string | null } ? I : never }[Id]
