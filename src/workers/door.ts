import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { digestKey } from '../accounts/keys.ts'
import type { ApiParts } from '../admin/api.ts'
import type { Play, Running } from '../operations/operation.ts'

/** The path on which a worker answers only the process that has started it. A server without workers does not have it. */
export const doorPath = '/internal/'

/** Questions of that process which operators cannot ask a worker themselves. */
const asked = ['listRequests', 'findRequests', 'readHolds', 'readStatus', 'writeTraffic', 'steer'] as const

export type Asked = (typeof asked)[number]

export type PlayAsked = { play: Play; requestId: string; ip: string }

type Parts = { running: Running; play: ApiParts['play']; reportBug: (bug: Error) => void; parentDigest: string }

/** A worker's side: a method of `Running` with its arguments, or a request that an operator wants answered. */
export function createWorkerDoor({ running, play, reportBug, parentDigest }: Parts) {
  const wanted = Buffer.from(parentDigest)
  return (request: IncomingMessage, response: ServerResponse): void => {
    response.on('error', () => {})
    const [, token = ''] = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '') ?? []
    const shown = Buffer.from(digestKey(token))
    if (shown.length !== wanted.length || !timingSafeEqual(shown, wanted)) {
      request.resume()
      response.writeHead(404).end()
      return
    }
    answer(request, response).catch((bug: Error) => {
      reportBug(bug)
      response.destroy()
    })
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const name = (request.url ?? '').slice(doorPath.length)
    const body = await readJson(request)
    if (name === 'play') {
      const { play: one, ...rest } = body as PlayAsked
      play(response, one, rest)
      return
    }
    const method = asked.find((one) => one === name)
    if (method === undefined) throw new Error(`a worker is not asked for ${name}`)
    const result = await (running[method] as (...args: unknown[]) => Promise<unknown>)(...(body as unknown[]))
    response.writeHead(200, { 'content-type': 'application/json' }).end(pack(result))
  }
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const pieces: Buffer[] = []
  for await (const piece of request as AsyncIterable<Buffer>) pieces.push(piece)
  return JSON.parse(Buffer.concat(pieces).toString())
}

/** Maps, sets and large numbers too. */
function pack(value: unknown): string {
  return JSON.stringify(value, (_, one: unknown) => {
    if (typeof one === 'bigint') return { $nanos: one.toString() }
    if (one instanceof Map) return { $map: [...one] }
    return one instanceof Set ? { $set: [...one] } : one
  })
}

/** The inverse. */
export function unpack(text: string): unknown {
  return JSON.parse(text, (_, one: Record<string, never> | null) => {
    if (typeof one !== 'object' || one === null) return one
    if ('$nanos' in one) return BigInt(one['$nanos'] as string)
    if ('$map' in one) return new Map(one['$map'] as [])
    return '$set' in one ? new Set(one['$set'] as []) : one
  })
}
