const tab = 0x09
const lineFeed = 0x0a
const carriageReturn = 0x0d
const space = 0x20
const colon = 0x3a

/** The octets that a name may have (RFC 9110 5.6.2). */
const isToken = tableOf((octet) => /[!#$%&'*+\-.^_`|~0-9A-Za-z]/.test(String.fromCharCode(octet)))
/** The octets that a value may have: blanks, visible characters, and octets above ASCII (RFC 9110 5.5). */
const isInValue = tableOf((octet) => octet === tab || (octet >= space && octet !== 0x7f))

function tableOf(isIn: (octet: number) => boolean): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, octet) => (isIn(octet) ? 1 : 0))
}

/**
 * The fields of a head or a trailer. They stay in the original text and are looked up there, because few are ever read.
 */
export class Fields {
  readonly #text: string
  /** Four offsets for each field: the beginning and end of its name, and of its value. */
  readonly #places: readonly number[]

  constructor(text: string, places: readonly number[]) {
    this.#text = text
    this.#places = places
  }

  get count(): number {
    return this.#places.length / 4
  }

  /** Returns the values of a field, joined by a comma and a space. @param name in lower case */
  get(name: string): string | undefined {
    let found: string | undefined
    for (let i = this.#find(name, 0); i >= 0; i = this.#find(name, i + 4))
      found = found === undefined ? this.#valueAt(i) : `${found}, ${this.#valueAt(i)}`
    return found
  }

  /** Returns the first value of a field. @param name in lower case */
  first(name: string): string | undefined {
    const i = this.#find(name, 0)
    return i < 0 ? undefined : this.#valueAt(i)
  }

  /** Returns all values of a field. @param name in lower case */
  all(name: string): string[] {
    const found: string[] = []
    for (let i = this.#find(name, 0); i >= 0; i = this.#find(name, i + 4)) found.push(this.#valueAt(i))
    return found
  }

  /** Counts the occurrences of a field. @param name in lower case */
  countOf(name: string): number {
    let count = 0
    for (let i = this.#find(name, 0); i >= 0; i = this.#find(name, i + 4)) count++
    return count
  }

  get longestValue(): number {
    const places = this.#places
    let longest = 0
    for (let i = 2; i < places.length; i += 4) longest = Math.max(longest, places[i + 1]! - places[i]!)
    return longest
  }

  /** Returns each name in lower case with its value, in the order of the head. */
  *entries(): Generator<[name: string, value: string]> {
    const places = this.#places
    for (let i = 0; i < places.length; i += 4)
      yield [this.#text.slice(places[i], places[i + 1]).toLowerCase(), this.#valueAt(i)]
  }

  #valueAt(i: number): string {
    return this.#text.slice(this.#places[i + 2], this.#places[i + 3])
  }

  #find(name: string, from: number): number {
    const [text, places, { length }] = [this.#text, this.#places, name]
    for (let i = from; i < places.length; i += 4) {
      const start = places[i]!
      if (places[i + 1]! - start === length && isNamed(text, start, name)) return i
    }
    return -1
  }
}

/** Compares a name, ignoring case. A capital letter differs from its lower case by one bit. */
function isNamed(text: string, start: number, name: string): boolean {
  for (let i = 0; i < name.length; i++) {
    const [code, wanted] = [text.charCodeAt(start + i), name.charCodeAt(i)]
    if (code !== wanted && !(code >= 0x41 && code <= 0x5a && (code | 0x20) === wanted)) return false
  }
  return true
}

/**
 * Reads fields. Malformed input is rejected and never repaired (RFC 9112 5.1, 5.2, 2.2). Examples are a blank before a
 * colon, a folded line, or a line end that is not CR LF.
 * @param text Latin-1, from the first field to the end, without an empty line
 * @returns undefined if any field is malformed
 */
export function readFields(text: string, from: number): Fields | undefined {
  const places: number[] = []
  for (let at = from; at < text.length; at += 2) {
    const nameStart = at
    while (isToken[text.charCodeAt(at)] === 1) at++
    if (at === nameStart || text.charCodeAt(at) !== colon) return undefined
    const nameEnd = at++
    while (isBlank(text.charCodeAt(at))) at++
    const valueStart = at
    while (isInValue[text.charCodeAt(at)] === 1) at++
    if (text.charCodeAt(at) !== carriageReturn || text.charCodeAt(at + 1) !== lineFeed) return undefined
    let valueEnd = at
    while (valueEnd > valueStart && isBlank(text.charCodeAt(valueEnd - 1))) valueEnd--
    places.push(nameStart, nameEnd, valueStart, valueEnd)
  }
  return new Fields(text, places)
}

/**
 * Whether text can be part of a head: it has no control character except tab, and only CR LF as line end. With this
 * check, other text is refused immediately rather than at the deadline.
 * @param text Latin-1
 * @param from the offset of the first unchecked character
 */
export function canStandInHead(text: string, from: number): boolean {
  const fault = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r[^\n]|(?<!\r)\n/g
  fault.lastIndex = Math.max(0, from - 1)
  return !fault.test(text)
}

export function isTokenOctet(octet: number): boolean {
  return isToken[octet] === 1
}

function isBlank(octet: number): boolean {
  return octet === space || octet === tab
}

/** A client's request before its body. */
export type RequestHead = {
  method: string
  /** The target as it was sent: a path, a whole URL, `*`, or the host and port of CONNECT. */
  target: string
  minor: number
  fields: Fields
}

/** The most letters of a method. The longest registered method has 17. */
const methodMax = 20
/** The request line. A target is a path, a whole URL, `*`, or the host of CONNECT; it has no blanks. */
const requestLine = new RegExp(`^([A-Z-]{1,${methodMax}}) ([/*A-Za-z0-9[][!-~]*) HTTP/1\\.([01])\\r\\n`)

/**
 * Reads a request head (RFC 9112 3).
 * @param text Latin-1, up to and including the line end of its last field
 * @returns undefined if the head is malformed
 */
export function readRequestHead(text: string): RequestHead | undefined {
  const match = requestLine.exec(text)
  if (match === null) return undefined
  const [whole, method, target, minor] = match as unknown as [string, string, string, string]
  if (!isTarget(method, target)) return undefined
  const fields = readFields(text, whole.length)
  return fields && { method, target, minor: minor === '1' ? 1 : 0, fields }
}

/** Whether the target is a path, a URL, or a form that the method may have (RFC 9112 3.2). */
function isTarget(method: string, target: string): boolean {
  if (target.startsWith('/')) return true
  if (method === 'CONNECT') return /:\d+$/.test(target)
  return target === '*' ? method === 'OPTIONS' : /^https?:\/\/[^/?#]/i.test(target)
}

/**
 * Whether an incomplete head can still become a complete head.
 * @param text Latin-1, the beginning of the head
 * @param from the offset of the first unchecked character
 */
export function mayBecomeHead(text: string, from: number): boolean {
  if (!canStandInHead(text, from)) return false
  // This carriage return is the first half of an empty line. An empty line may precede a head.
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
 * @param text Latin-1, up to and including the line end of the last field
 * @returns undefined if the head is malformed
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

/** Why two readers could disagree on a body's end. `both`: a length and an encoding. `old`: an encoding in HTTP/1.0. */
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
 * Reads how the body after a head is framed (RFC 9112 6.3), without guessing. A head may have one plain length. In
 * HTTP/1.1 it may have the encoding `chunked` instead, but never both. Repeated lengths are refused, because the fields
 * join them by a comma.
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

/** The largest body, in bytes, that is joined with its head. For a larger body, two writes are cheaper. */
const bytesMax = 16_384

/** Returns head and body as one string, to be written as `latin1`; undefined if the body is too large for that. */
export function inOnePiece(head: string, body: Uint8Array): string | undefined {
  if (body.length > bytesMax) return undefined
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(body.buffer, body.byteOffset, body.length)
  return head + bytes.toString('latin1', 0, bytes.length)
}
