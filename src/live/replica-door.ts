import { createHmac } from 'node:crypto'
import type { AdminHandler, ApiAnswer } from '../admin/answer.ts'
import { isSameSecret } from '../ids.ts'
import type { Running } from '../operations/operation.ts'
import type { Events } from './events.ts'

/** The first part of the paths on which servers of a store answer each other. A server's key and a method follow. */
export const doorPath = '/internal/'

/**
 * The operations that other servers can request from this one. They read memory, and little or nothing of the store.
 */
const methods = ['explain', 'listRequests', 'findRequests', 'readUnbilledSinceMs', 'readHolds', 'listNeeds'] as const

export type DoorMethod = (typeof methods)[number]

/** The largest body of a request, in bytes. Bodies contain ids and filters. */
const bodyBytesMax = 1_000_000

type ReplicaDoorParts = {
  /** The operations of this server alone. */
  running: Pick<Running, DoorMethod>
  /** The live events of this server alone. */
  watch: Events['watch']
  /** The key of this server, as recorded in the store. */
  key: string
  /** Returns the token that another server requires. @param key the key of that server, as recorded in the store */
  tokenOf(key: string): string
  /** Passes a request to another server that shares the port of this server. @param key the key of that server */
  pass(key: string, name: string, body: string): Promise<ApiAnswer>
}

/**
 * Returns the token for a door, the path on which a server answers other servers. The token is made with the seal key.
 * All replicas have this key, but the database does not (ruling T7). So nobody can make a token from the database.
 * @param key the key of the door, which is a part of its path
 */
export function createDoorToken(sealKey: Uint8Array, key: string): string {
  return createHmac('sha256', sealKey).update(`triwire replica door\n${key}`).digest('base64url')
}

/** Answers other servers of the store (ruling X9). A client without the token gets a 404. */
export function createReplicaDoor({ running, watch, key: own, tokenOf, pass }: ReplicaDoorParts): AdminHandler {
  return async ({ exchange, path, readBody }): Promise<ApiAnswer> => {
    const [key = '', name = ''] = path.slice(doorPath.length).split('/')
    const [, token = ''] = /^Bearer (\S+)$/.exec(exchange.header('authorization') ?? '') ?? []
    if (!isSameSecret(token, tokenOf(key))) return { status: 404, headers: {} }
    const body = (await readBody(bodyBytesMax)).toString()
    if (key !== own) return pass(key, name, body)
    if (name === 'watch')
      return { status: 200, headers: { 'content-type': 'text/event-stream' }, pieces: watch(undefined) }
    const method = methods.find((one) => one === name)
    // A newer version may ask for an operation that this version does not have.
    if (method === undefined) return { status: 404, headers: {} }
    const result = await (running[method] as (...args: unknown[]) => Promise<unknown>)(...JSON.parse(body))
    return { status: 200, headers: { 'content-type': 'application/json' }, body: pack(result) }
  }
}

/** Formats a value as JSON. The value may contain maps, sets and bigints, which JSON itself cannot express. */
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
