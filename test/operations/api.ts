import assert from 'node:assert/strict'
import { createBooks } from '../../src/accounts/books.ts'
import { startTestGateway, type TestGateway, type TestOptions } from '../support/gateway.ts'
import { checkAnswer } from './contract.ts'

export type Told = {
  status: number
  headers: Headers
  /** JSON; undefined without a body. */
  body: Record<string, never> & { items?: Record<string, never>[] }
  text: string
}

export type Ask = (
  method: string,
  path: string,
  options?: { body?: unknown; token?: string | undefined; headers?: Record<string, string> },
) => Promise<Told>

/** A gateway with an admin and a viewer, and two accounts with a key each. */
export async function startApi(options: TestOptions = {}) {
  const gateway = await startTestGateway(options)
  const books = createBooks(gateway.store.asked, gateway.nowMs)
  const make = async (name: string, role: 'admin' | 'viewer') =>
    (await books.createOperator(name, role, gateway.nowMs() + 86_400_000)).token
  const [admin, viewer] = [await make('ann', 'admin'), await make('vic', 'viewer')]
  const b = gateway.store.createAccount('b', 7_000_000_000n)
  const keyB = gateway.store.createKey('b')
  const ask: Ask = (method, path, { body, token = admin, headers = {} } = {}) =>
    askAdmin(gateway, method, path, { body, token, headers })
  return { gateway, books, admin, viewer, keyA: gateway.key, keyB: keyB.key, b, ask }
}

async function askAdmin(
  { adminUrl }: TestGateway,
  method: string,
  path: string,
  { body, token, headers }: { body: unknown; token: string; headers: Record<string, string> },
): Promise<Told> {
  const isText = typeof body === 'string'
  const target = `/api/v1${path}`
  const response = await fetch(adminUrl + target, {
    method,
    headers: {
      ...(token !== '' && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: isText ? body : JSON.stringify(body) }),
  })
  // Events have no end: the first of it will do.
  const text = /event-stream/.test(response.headers.get('content-type') ?? '')
    ? await firstOf(response)
    : await response.text()
  const isJson = /json\b/.test(response.headers.get('content-type') ?? '') && text !== ''
  const told = isJson ? JSON.parse(text) : undefined
  const type = response.headers.get('content-type')
  // Whatever a test is about: nothing is answered that the document does not tell.
  checkAnswer(method, target, { status: response.status, type, body: told })
  return { status: response.status, headers: response.headers, text, body: told }
}

async function firstOf(response: Response): Promise<string> {
  const reader = response.body!.getReader()
  const { value } = await reader.read()
  await reader.cancel()
  return new TextDecoder().decode(value)
}

/** The problem that was returned, by its name; with the members that every problem has. */
export function problemOf({ status, headers, body }: Told): string {
  assert.equal(headers.get('content-type'), 'application/problem+json')
  const { type, title, status: said, detail, request_id } = body as unknown as Record<string, string>
  assert.equal(said, status)
  assert.ok(title && detail)
  assert.equal(request_id, headers.get('x-request-id'))
  assert.match(type!, /^urn:triwire:problem:/)
  return type!.replace('urn:triwire:problem:', '')
}
