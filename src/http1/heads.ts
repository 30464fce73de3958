import { canStandInHead, type Fields, readFields } from './fields.ts'

/** A client's request before its body. */
export type RequestHead = {
  method: string
  /** The target as it was sent: a path, a whole URL, `*`, or the host and port of CONNECT. */
  target: string
  minor: number
  fields: Fields
}

/** The most letters of a method. The longest registered one has 17. */
const methodMax = 20
/** The request line. A target is a path, a whole URL, `*`, or the host of CONNECT; it has no blanks. */
const requestLine = new RegExp(`^([A-Z-]{1,${methodMax}}) ([/*A-Za-z0-9[][!-~]*) HTTP/1\\.([01])\\r\\n`)

/**
 * Reads a request head (RFC 9112 3).
 * @param text Latin-1, up to and including the line end of its last field
 * @returns undefined if it is malformed
 */
export function readRequestHead(text: string): RequestHead | undefined {
  const match = requestLine.exec(text)
  if (match === null) return undefined
  const [whole, method, target, minor] = match as unknown as [string, string, string, string]
  if (!isTarget(method, target)) return undefined
  const fields = readFields(text, whole.length)
  return fields && { method, target, minor: minor === '1' ? 1 : 0, fields }
}

/** Whether the target is a path, or one of the forms that only some methods may have (RFC 9112 3.2). */
function isTarget(method: string, target: string): boolean {
  if (target.startsWith('/')) return true
  if (method === 'CONNECT') return /:\d+$/.test(target)
  return target === '*' ? method === 'OPTIONS' : /^https?:\/\/[^/?#]/i.test(target)
}

/**
 * Whether an incomplete head can still become a complete one.
 * @param text Latin-1, the beginning of the head
 * @param from the offset of the first unchecked character
 */
export function mayBecomeHead(text: string, from: number): boolean {
  if (!canStandInHead(text, from)) return false
  // Half of an empty line, which may precede a head.
  if (text === '\r') return true
  const method = /^[A-Z-]*/.exec(text)![0].length
  return method <= methodMax && (method === text.length || (method > 0 && text[method] === ' '))
}

/** A server's response before its body. */
export type ResponseHead = {
  status: number
  minor: number
  fields: Fields
}

/** The status line. The phrase after the status has no meaning, and some servers omit it together with the space. */
const statusLine = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t -~\x80-\xff]*)?\r\n/

/**
 * Reads a response head (RFC 9112 4).
 * @param text Latin-1, up to and including the line end of its last field
 * @returns undefined if it is malformed
 */
export function readResponseHead(text: string): ResponseHead | undefined {
  if (!statusLine.test(text)) return undefined
  const fields = readFields(text, text.indexOf('\n') + 1)
  return fields && { status: readLength(text.slice(9, 12))!, minor: text[7] === '1' ? 1 : 0, fields }
}

/**
 * How to find the end of a body: by its length in octets, or by its chunks. `undefined` if the head has neither. Then a
 * request has no body, and a response ends with its connection.
 */
export type Framing = number | 'chunked' | undefined

/** The reason why two readers could see different ends of the body. */
export type FramingFault = 'length' | 'encoding' | 'both' | 'old'

/** A number with at most this many digits is exact. */
const digitsMax = 15

/**
 * Reads a number digit by digit. `Number` on a part of a head would use V8's slow runtime.
 * @returns undefined if the text is not a plain number
 */
function readLength(text: string): number | undefined {
  if (text === '' || text.length > digitsMax) return undefined
  let number = 0
  for (let i = 0; i < text.length; i++) {
    const digit = text.charCodeAt(i) - 0x30
    if (digit < 0 || digit > 9) return undefined
    number = 10 * number + digit
  }
  return number
}

/**
 * Reads how the body after a head is framed (RFC 9112 6.3), without guessing. A head may have one plain length, or only
 * `chunked` and only in HTTP/1.1, but never both. Repeated lengths are joined by a comma, so they are not a plain
 * length.
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
  return readLength(declared) ?? { fault: 'length' }
}

/**
 * Whether the connection stays open after this message (RFC 9112 9.3). With HTTP/1.1 it does, unless the head contains
 * `close`. With HTTP/1.0 it only does if the head contains `keep-alive`.
 * @param connection the value of the header: options in any case, separated by commas
 * @param minor the minor version: 0 for HTTP/1.0, 1 for HTTP/1.1
 */
export function staysOpen(connection: string | undefined, minor: number): boolean {
  if (connection === undefined) return minor > 0
  const options = connection.toLowerCase().split(',')
  const says = (option: string) => options.some((one) => one.trim() === option)
  return !says('close') && (minor > 0 || says('keep-alive'))
}

/** Returns a copy of the bytes that shares its memory with nothing else. */
export function ownBytes(bytes: Uint8Array): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  copy.set(bytes)
  return copy
}

/** Copies bytes that take less than half of their memory block, because keeping them would keep the whole block. */
export function ownIfLittle(bytes: Buffer): Buffer {
  return bytes.length * 2 < bytes.buffer.byteLength ? ownBytes(bytes) : bytes
}

/** Up to this size, in bytes, joining a body with its head is cheaper than two writes. */
const bytesMax = 16_384

/** Returns head and body as one string, to be written as `latin1`; undefined if the body is too large for that. */
export function inOnePiece(head: string, body: Uint8Array): string | undefined {
  if (body.length > bytesMax) return undefined
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(body.buffer, body.byteOffset, body.length)
  return head + bytes.toString('latin1', 0, bytes.length)
}
