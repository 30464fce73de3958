import type { Fields } from './fields.ts'

/**
 * How a reader finds the end of a body: by its length in octets, or by its chunks. `undefined` if the head has neither. A
 * request then has no body, and an answer ends with its connection.
 */
export type Framing = number | 'chunked' | undefined

/** The reason why two readers could see different ends of the body. */
export type FramingFault = 'length' | 'encoding' | 'both' | 'old'

/** A number with at most this many digits is exact. */
const length = /^\d{1,15}$/

/**
 * Reads how the body after a head is framed (RFC 9112 6.3), without guessing. There may be one plain length, or `chunked`
 * alone and only in HTTP/1.1, but never both. Repeated lengths are joined by a comma, which is not a plain length.
 */
export function framingOf(fields: Fields, minor: number): Framing | { fault: FramingFault } {
  const encoding = fields.get('transfer-encoding')
  const declared = fields.get('content-length')
  if (encoding !== undefined) {
    if (minor === 0) return { fault: 'old' }
    if (encoding.toLowerCase() !== 'chunked') return { fault: 'encoding' }
    return declared === undefined ? 'chunked' : { fault: 'both' }
  }
  if (declared === undefined) return undefined
  return length.test(declared) ? Number(declared) : { fault: 'length' }
}
