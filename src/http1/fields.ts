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

  /** Each value of a field. @param name in lower case */
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

/** Compares a name, ignoring case: a capital letter differs from its lower case by one bit. */
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
