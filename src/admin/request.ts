import { type JsonMember, scanObject } from '../bytes/scan.ts'
import { GatewayError } from '../errors.ts'
import { ClientGone } from '../gateway/call.ts'
import { allOperations, pathFields } from '../operations/openapi.ts'
import { type Operation, ownRoles } from '../operations/operation.ts'
import { ProblemError, pointerTo } from '../operations/problem.ts'
import { type AdminRequest, type LargeBody, problemBelow } from './answer.ts'

/** The largest body of an operation, in bytes. If the body contains a client's request, more bytes are allowed. */
const ownBytesMax = 65_536
/** The largest body of an operation that needs no token, in bytes. Anybody may open many connections for such bodies. */
const openBytesMax = 4_096

export type Matched =
  | { operation: Operation; inPath: Record<string, string> }
  | { allow: readonly string[] }
  | undefined

/** The paths of an API, each with its operation. */
type ApiRoutes = readonly { operation: Operation; names: string[]; pattern: RegExp }[]

/** The routes of all operations, below the path of the admin API. */
export const adminRoutes: ApiRoutes = routesOf(`/api/v1`, allOperations)

/** The routes of operations for owners of keys. `/me` may be left out, because all paths are about the owner. */
export const ownRoutes: ApiRoutes = routesOf(
  '/console/api(?:/me(?=/))?',
  allOperations
    .filter(({ role }) => ownRoles.has(role))
    .map((operation) => ({ ...operation, path: operation.path.replace(/^\/me(?=\/)/, '') })),
)

function routesOf(prefix: string, operations: readonly Operation[]): ApiRoutes {
  return operations.map((operation) => ({
    operation,
    names: pathFields(operation),
    pattern: new RegExp(`^${prefix}${operation.path.replace('.', '\\.').replace(/\{\w+\}/g, '([^/]+)')}$`),
  }))
}

/** Returns the operation for a method and path. If the path has only other methods, returns these methods. */
export function matchOperation(routes: ApiRoutes, method: string, path: string): Matched {
  const allow: string[] = []
  for (const { operation, names, pattern } of routes) {
    const match = pattern.exec(path)
    if (!match) continue
    if (operation.method !== method && !(operation.method === 'GET' && method === 'HEAD')) {
      allow.push(operation.method)
      continue
    }
    try {
      return {
        operation,
        inPath: Object.fromEntries(names.map((name, at) => [name, decodeURIComponent(match[at + 1]!)])),
      }
    } catch {
      // A percent-escape in the path is invalid, so the path matches nothing.
      return undefined
    }
  }
  return allow.length > 0 ? { allow: allow.includes('GET') ? [...allow, 'HEAD'] : allow } : undefined
}

/**
 * Returns the fields in the path, the query and the body.
 * @param bounds.bytesMax the size limit for a client's request, in bytes
 * @param bounds.large what the body needs if it may contain such a request; the caller gives the memory back
 * @throws ProblemError
 */
export async function readFields(
  request: AdminRequest,
  { operation, inPath }: Extract<Matched, { operation: unknown }>,
  { bytesMax: requestBytesMax, large }: { bytesMax: () => number; large: LargeBody | undefined },
): Promise<Record<string, unknown>> {
  // This body can contain a client's request as a JSON string, in which each quote takes two characters.
  const mostBytes = operation.role === 'anyone' ? openBytesMax : ownBytesMax
  const bytesMax = operation.isLarge ? ownBytesMax + 2 * requestBytesMax() : mostBytes
  const hasBody = operation.method === 'POST' || operation.method === 'PATCH'
  const sent = hasBody ? await readBody(request, bytesMax, large) : readQuery(request)
  for (const name of Object.keys(inPath)) {
    if (Object.hasOwn(sent, name)) throw refuse(name, 'stands in the path already')
  }
  return { ...sent, ...inPath }
}

function readQuery({ query }: AdminRequest): Record<string, unknown> {
  const fields: Record<string, unknown> = {}
  for (const [name, value] of new URLSearchParams(query)) {
    if (Object.hasOwn(fields, name)) throw refuse(name, 'is there twice')
    Object.defineProperty(fields, name, { value, enumerable: true, writable: true, configurable: true })
  }
  return fields
}

async function readBody(
  { exchange, readBody }: AdminRequest,
  bytesMax: number,
  large: LargeBody | undefined,
): Promise<Record<string, unknown>> {
  const { declaredBytes = 0 } = exchange
  if (declaredBytes === 0 && exchange.header('transfer-encoding') === undefined) return {}
  if (!/^application\/json\s*(;|$)/i.test(exchange.header('content-type') ?? ''))
    throw new ProblemError('unsupported_media_type', 'Send the body as application/json.')
  if (declaredBytes > bytesMax) throw tooLarge(bytesMax)
  try {
    return parse(await readBody(bytesMax, large))
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'rate_limit_exceeded') throw noRoom()
    if (error instanceof GatewayError) throw error.status === 413 ? tooLarge(bytesMax) : problemBelow(error)
    // A client that has left gets no answer, so the message does not matter.
    throw error instanceof ClientGone ? new ProblemError('invalid_request', 'The body is not whole.') : error
  }
}

/** The byte order mark, which some programs write at the beginning of a file. */
const byteOrderMark = Buffer.from('\ufeff')

/** @throws ProblemError also for a member that is there twice, because programs differ in which one they read */
function parse(bytes: Buffer): Record<string, unknown> {
  const text = bytes.subarray(byteOrderMark.equals(bytes.subarray(0, 3)) ? 3 : 0)
  const names = new Set<string>()
  for (const { key } of scan(text)) {
    if (names.has(key)) throw refuse(key, 'is there twice')
    names.add(key)
  }
  return JSON.parse(text.toString('utf8')) as Record<string, unknown>
}

/** Lists the members. JSON that is too deep or too large is refused, because parsing it would block other requests. */
function scan(text: Buffer): JsonMember[] {
  try {
    return scanObject(text)
  } catch {
    throw new ProblemError('invalid_request', 'The body is not a JSON object.')
  }
}

function tooLarge(bytesMax: number): ProblemError {
  return new ProblemError('payload_too_large', `A body has at most ${bytesMax} bytes.`, {
    headers: { connection: 'close' },
  })
}

/** Makes the refusal for a full memory, which bodies of clients and operators share (ruling R18), or for a long wait. */
function noRoom(): ProblemError {
  return new ProblemError('rate_limited', 'The server has as many large requests as it can take: ask again soon.', {
    headers: { 'retry-after': '1', connection: 'close' },
  })
}

function refuse(name: string, detail: string): ProblemError {
  return new ProblemError('invalid_request', `${JSON.stringify(name)} ${detail}.`, {
    mistakes: [{ pointer: pointerTo([name]), detail }],
  })
}
