import type { Fields } from './fields.ts'

/**
 * How a body's end is known: by its length in octets, or by its chunks. `undefined`: the head says nothing, which is no body of a
 * request, and of an answer all up to the end of its connection.
 */
export type Framing = number | 'chunked' | undefined

/** Why two readers could see two ends of it. */
export type FramingFault = 'length' | 'encoding' | 'both' | 'old'

/** So many digits are an integer that a number holds. */
const length = /^\d{1,15}$/

/**
 * How the body after a head is framed (RFC 9112 6.3). Nothing is guessed: one plain length, or `chunked` alone and only of
 * HTTP/1.1, and never both. Values of a name that came twice are joined by a comma: two lengths are no length.
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
