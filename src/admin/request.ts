import type { IncomingMessage } from 'node:http'
import { scanObject } from '../bytes/scan.ts'
import type { BodyShare } from '../gateway/fairness/bodies.ts'
import { pointerTo } from '../operations/mistakes.ts'
import { allOperations, pathFields } from '../operations/openapi.ts'
import type { Operation } from '../operations/operation.ts'
import { ProblemError } from '../operations/problem.ts'

/** No body of an operation needs more, but those that have a client's request in them; those have this beside it. */
const ownBytesMax = 65_536

export type Matched =
  | { operation: Operation; inPath: Record<string, string> }
  | { allow: readonly string[] }
  | undefined

const routes = allOperations.map((operation) => ({
  operation,
  names: pathFields(operation),
  pattern: new RegExp(`^/api/v1${operation.path.replace('.', '\\.').replace(/\{\w+\}/g, '([^/]+)')}$`),
}))

/** The operation at a path; where the method is another one, those that there are. */
export function matchOperation(method: string, path: string): Matched {
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
      // It is no text, and so names nothing.
      return undefined
    }
  }
  return allow.length > 0 ? { allow: allow.includes('GET') ? [...allow, 'HEAD'] : allow } : undefined
}

/**
 * All fields that were sent, in path, query or body.
 * @param bounds.bytesMax of a client's request @param bounds.share of what the process holds, where the body may be as large: taken
 *   here, and its caller's to give back
 * @throws ProblemError
 */
export async function readFields(
  request: IncomingMessage,
  { operation, inPath }: Extract<Matched, { operation: unknown }>,
  { bytesMax: requestBytesMax, share }: { bytesMax: () => number; share: BodyShare | undefined },
): Promise<Record<string, unknown>> {
  // Within a text of JSON a quote is two characters.
  const bytesMax = operation.isLarge ? ownBytesMax + 2 * requestBytesMax() : ownBytesMax
  const hasBody = operation.method === 'POST' || operation.method === 'PATCH'
  const sent = hasBody ? await readBody(request, bytesMax, share) : readQuery(request)
  for (const name of Object.keys(inPath)) {
    if (Object.hasOwn(sent, name)) throw refuse(name, 'stands in the path already')
  }
  return { ...sent, ...inPath }
}

function readQuery({ url = '' }: IncomingMessage): Record<string, unknown> {
  const at = url.indexOf('?')
  const fields: Record<string, unknown> = {}
  if (at < 0) return fields
  for (const [name, value] of new URLSearchParams(url.slice(at + 1))) {
    if (Object.hasOwn(fields, name)) throw refuse(name, 'is there twice')
    Object.defineProperty(fields, name, { value, enumerable: true, writable: true, configurable: true })
  }
  return fields
}

async function readBody(
  request: IncomingMessage,
  bytesMax: number,
  share: BodyShare | undefined,
): Promise<Record<string, unknown>> {
  const { 'content-length': declared, 'content-type': type = '', 'transfer-encoding': coding } = request.headers
  if ((declared === undefined || declared === '0') && coding === undefined) return {}
  if (!/^application\/json\s*(;|$)/i.test(type))
    throw new ProblemError('unsupported_media_type', 'Send the body as application/json.')
  if (Number(declared ?? 0) > bytesMax) throw tooLarge(bytesMax)
  return parse(await readPieces(request, bytesMax, share))
}

async function readPieces(request: IncomingMessage, bytesMax: number, share: BodyShare | undefined): Promise<Buffer> {
  const pieces: Buffer[] = []
  let bytes = 0
  try {
    for await (const piece of request as AsyncIterable<Buffer>) {
      bytes += piece.length
      if (bytes > bytesMax) throw tooLarge(bytesMax)
      if (share?.take(piece.length) === false) throw noRoom()
      pieces.push(piece)
    }
  } catch (error) {
    // Who has left in the middle hears nothing of it.
    throw error instanceof ProblemError ? error : new ProblemError('invalid_request', 'The body is not whole.')
  }
  return Buffer.concat(pieces)
}

/** Some writers of files put it first. */
const byteOrderMark = Buffer.from('\ufeff')

function parse(bytes: Buffer): Record<string, unknown> {
  try {
    // Of the size of a client's, so that it stops nobody's requests for longer than one of those (reliability §3).
    const text = bytes.subarray(byteOrderMark.equals(bytes.subarray(0, 3)) ? 3 : 0)
    scanObject(text)
    return JSON.parse(text.toString('utf8')) as Record<string, unknown>
  } catch {
    // Told below.
  }
  throw new ProblemError('invalid_request', 'The body is not a JSON object.')
}

function tooLarge(bytesMax: number): ProblemError {
  return new ProblemError('payload_too_large', `A body has at most ${bytesMax} bytes.`, {
    headers: { connection: 'close' },
  })
}

/** Clients' bodies and operators' fill the same memory (ruling R18). */
function noRoom(): ProblemError {
  return new ProblemError('rate_limited', 'The server holds as many bodies of requests as it can: ask again soon.', {
    headers: { 'retry-after': '1', connection: 'close' },
  })
}

function refuse(name: string, detail: string): ProblemError {
  return new ProblemError('invalid_request', `${JSON.stringify(name)} ${detail}.`, {
    mistakes: [{ pointer: pointerTo([name]), detail }],
  })
}
