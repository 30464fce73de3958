import { randomFillSync } from 'node:crypto'
import type { Tracing } from '../gateway/record.ts'

/** A caller's span and its trace (W3C Trace Context). */
type Parent = { traceId: string; spanId: string; isSampled: boolean }

const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/** Reads a trace header. Returns undefined if it is missing or invalid; the request then begins a new trace. */
export function readTraceparent(text: string | string[] | undefined): Parent | undefined {
  // A later version of the standard may send a longer text; we ignore it.
  if (typeof text !== 'string' || text.length > 128) return undefined
  const [, version, traceId = '', spanId = '', flags = '', more] = form.exec(text.trim()) ?? []
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return undefined
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

export function writeTraceparent({ traceId, spanId, isSampled }: Parent): string {
  return `00-${traceId}-${spanId}-0${isSampled ? 1 : 0}`
}

/** Random bytes are read from the system in large blocks, so an id costs only a tenth of a microsecond. */
const pool = Buffer.alloc(4_096)
let used = pool.length

export function newTraceId(): string {
  return takeHex(16)
}

export function newSpanId(): string {
  return takeHex(8)
}

function takeHex(bytes: number): string {
  if (used + bytes > pool.length) {
    randomFillSync(pool)
    used = 0
  }
  used += bytes
  return pool.toString('hex', used - bytes, used)
}

/**
 * Tracing without a collector. It is used if the configuration passes the trace header on. Upstreams get the client's
 * header unchanged, and no span of ours is added.
 */
export const passOn: Tracing = {
  begin(traceparent) {
    const parent = traceparent === undefined ? undefined : readTraceparent(traceparent)
    return parent && { id: parent.traceId, parentId: parent.spanId, isSampled: parent.isSampled }
  },
  enter({ trace }) {
    if (trace?.parentId === undefined) return undefined
    return writeTraceparent({ traceId: trace.id, spanId: trace.parentId, isSampled: trace.isSampled })
  },
}
