import { timingSafeEqual } from 'node:crypto'
import { digestKey } from '../accounts/keys.ts'
import type { AdminHandler, ApiAnswer } from '../admin/answer.ts'
import type { PlayRequest } from '../admin/api.ts'
import type { Play, Running } from '../operations/operation.ts'

/** The path at which a worker answers the process that has started it. Other servers do not have it. */
export const doorPath = '/internal/'

/** The methods that only the parent process calls: its operators cannot ask a worker for them. */
const asked = ['listRequests', 'findRequests', 'readHolds', 'readStatus', 'writeTraffic', 'steer'] as const

export type DoorMethod = (typeof asked)[number]

export type PlayAsked = { play: Play; requestId: string; ip: string }

type DoorParts = { running: Running; play: PlayRequest; parentDigest: string }

/** A worker's side: a method of `Running` with its arguments, or a request that an operator wants answered. */
export function createWorkerDoor({ running, play, parentDigest }: DoorParts): AdminHandler {
  const wanted = Buffer.from(parentDigest)
  return async ({ exchange, path, readBody }): Promise<ApiAnswer | undefined> => {
    const [, token = ''] = /^Bearer (\S+)$/.exec(exchange.header('authorization') ?? '') ?? []
    const shown = Buffer.from(digestKey(token))
    if (shown.length !== wanted.length || !timingSafeEqual(shown, wanted)) return { status: 404, headers: {} }
    const name = path.slice(doorPath.length)
    const body = JSON.parse((await readBody(Number.POSITIVE_INFINITY)).toString())
    if (name === 'play') {
      const { play: one, ...rest } = body as PlayAsked
      play(exchange, one, rest)
      return undefined
    }
    const method = asked.find((one) => one === name)
    if (method === undefined) throw new Error(`a worker is not asked for ${name}`)
    const result = await (running[method] as (...args: unknown[]) => Promise<unknown>)(...(body as unknown[]))
    return { status: 200, headers: { 'content-type': 'application/json' }, body: pack(result) }
  }
}

/** JSON that has maps, sets and large numbers too. */
function pack(value: unknown): string {
  return JSON.stringify(value, (_, one: unknown) => {
    if (typeof one === 'bigint') return { $nanos: one.toString() }
    if (one instanceof Map) return { $map: [...one] }
    return one instanceof Set ? { $set: [...one] } : one
  })
}

/** Reads what `pack` wrote. */
export function unpack(text: string): unknown {
  return JSON.parse(text, (_, one: Record<string, never> | null) => {
    if (typeof one !== 'object' || one === null) return one
    if ('$nanos' in one) return BigInt(one['$nanos'] as string)
    if ('$map' in one) return new Map(one['$map'] as [])
    return '$set' in one ? new Set(one['$set'] as []) : one
  })
}
