import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Rejection } from './prompt.ts'

/** A received request, for tests. */
export type RecordedRequest = {
  method: string
  path: string
  query: string
  headers: IncomingHttpHeaders
  body: string
  /** The parsed body, or undefined if it is not JSON. */
  json: unknown
  /** The status of the answer, or 0 before there is one. */
  status: number
  closedEarly: boolean
  /** When the client left before its answer was complete, in Unix milliseconds. */
  closedAt: number | undefined
}

const bodyBytesMax = 64 * 1024 * 1024

export function createRecord(request: IncomingMessage, path: string): RecordedRequest {
  return {
    method: request.method ?? '',
    path,
    query: (request.url ?? '').slice(path.length),
    headers: request.headers,
    body: '',
    json: undefined,
    status: 0,
    closedEarly: false,
    closedAt: undefined,
  }
}

export async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    size += (chunk as Buffer).length
    if (size > bodyBytesMax) throw new Rejection({ status: 413, message: `The body is over ${bodyBytesMax} bytes.` })
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks).toString('utf8')
}

export function parseOrNothing(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Returns the key of a request. Any key is accepted. Each key has a separate prompt cache. */
export function keyOf(request: IncomingMessage): string {
  const said = request.headers.authorization ?? ''
  const [, bearer] = /^bearer\s+(\S+)\s*$/i.exec(said) ?? /^AWS4-HMAC-SHA256 Credential=([^/]+)\//.exec(said) ?? []
  return bearer ?? String(request.headers['x-api-key'] ?? request.headers['api-key'] ?? '').trim()
}
