import { asObject, endOfValue } from '../../bytes/json.ts'
import { ownCopy } from '../../bytes/memory.ts'
import { keptMark, keptPlace, parseUpstreamJson } from '../../bytes/scan.ts'

/**
 * The longest event that may become a mould (a template for later events), in characters. Events that fit the mould are
 * not parsed. A text delta has some hundreds of characters, including what its vendor adds.
 */
const learnedCharactersMax = 2_048
/** The most moulds (templates of events) for one stream. In a stream that needs more, hardly any events are alike. */
const learnedMax = 16

/** The place of a changing string or number in a parsed event. `holder` contains the value under `key`. */
type EventHole = { holder: Record<string, unknown>; key: string }

/** The pattern of an event: fixed texts with holes between them. Each hole is a place in the parsed event, `value`. */
type EventMould = { literals: string[]; holes: EventHole[]; value: unknown }

/**
 * Parses the JSON of a stream's events. Most deltas differ from the previous delta only in a few strings and numbers.
 * Such a delta is compared with the previous delta instead of being parsed. Its values overwrite the values in the
 * previous object, so an object is valid only until the next event.
 */
export class AlikeEvents {
  #mould: EventMould | undefined
  #before = ''
  #left = learnedMax
  #isAlike = false

  /** Parses the JSON of one event. @throws JsonError, SyntaxError */
  parse(text: string): unknown {
    const value = this.#mould && fill(text, this.#mould)
    this.#isAlike = value !== undefined
    return value ?? parseUpstreamJson(text)
  }

  /**
   * Call this after an event has been read. It releases the texts in the parsed event, since each text would keep its
   * whole chunk in memory.
   * @param isDelta true if no code keeps a reference to the event's object. Then it can become a template (mould)
   */
  done(text: string, isDelta: boolean): void {
    if (this.#mould) for (const { holder, key } of this.#mould.holes) holder[key] = ''
    if (this.#isAlike || !isDelta || this.#left === 0 || text.length > learnedCharactersMax) return
    this.#left--
    this.#mould = mouldOf(this.#before, text) ?? this.#mould
    this.#before = this.#left > 0 ? ownCopy(text) : ''
  }
}

/**
 * Writes the changing values of `text` into the object of the mould (template).
 * @returns the object; undefined if the text does not fit. Some values may have been overwritten before the mismatch.
 *   This does no harm, since the next text that fits overwrites all values.
 */
function fill(text: string, { literals, holes, value }: EventMould): unknown {
  let at = 0
  for (let i = 0; i < literals.length; i++) {
    const literal = literals[i]!
    // Comparing slices is four times as fast as `startsWith`.
    if (text.slice(at, at + literal.length) !== literal) return undefined
    at += literal.length
    const hole = holes[i]
    if (hole === undefined) break
    const begin = at
    let number = 0
    for (let digit = text.charCodeAt(at) - 0x30; digit >= 0 && digit <= 9; digit = text.charCodeAt(++at) - 0x30)
      number = 10 * number + digit
    const isInteger = at > begin && at - begin <= digitsMax && (text.charCodeAt(begin) !== zero || at - begin === 1)
    if (!isInteger) at = endOfValue(text, begin)
    const scalar = isInteger ? number : readScalar(text.slice(begin, at))
    if (scalar === undefined) return undefined
    hole.holder[hole.key] = scalar
  }
  return at === text.length ? value : undefined
}

/** Integers of up to this many digits are exact. */
const digitsMax = 15
const zero = 0x30

const plainString = /^"[^"\\\u0000-\u001f]*"$/
const scalarStart = /^["\d-]/

/** Reads a string or number; undefined if the text is not exactly one string or number. */
function readScalar(text: string): unknown {
  if (plainString.test(text)) return text.slice(1, -1)
  try {
    return scalarStart.test(text) ? JSON.parse(text) : undefined
  } catch {
    return undefined
  }
}

/**
 * Makes the mould: the common pattern of two events that differ only in strings and numbers. Returns undefined if the
 * events differ in anything else. @param text JSON, like `before`
 */
function mouldOf(before: string, text: string): EventMould | undefined {
  const literals: string[] = []
  let [at, from] = [0, 0]
  let template = ''
  for (let own = 0; own < text.length || at < before.length; ) {
    const [end, ownEnd] = [endOfToken(before, at), endOfToken(text, own)]
    const [token, ownToken] = [before.slice(at, end), text.slice(own, ownEnd)]
    if (token !== ownToken) {
      if (!scalarStart.test(token) || !scalarStart.test(ownToken)) return undefined
      template += `${text.slice(from, own)}"${keptMark}${literals.length}"`
      literals.push(ownCopy(text.slice(from, own)))
      from = ownEnd
    }
    at = end
    own = ownEnd
  }
  const value: unknown = JSON.parse(template + text.slice(from))
  const holes: EventHole[] = []
  findHoles(value, holes)
  // A changed text may be a key, or the value of a key that occurs twice. `findHoles` does not find such a text, so no
  // mould is made.
  if (holes.filter(Boolean).length < literals.length) return undefined
  return { literals: [...literals, ownCopy(text.slice(from))], holes, value }
}

function findHoles(value: unknown, holes: EventHole[]): void {
  const holder = (Array.isArray(value) ? value : asObject(value)) as Record<string, unknown> | undefined
  for (const key of Object.keys(holder ?? {})) {
    const place = keptPlace(holder![key])
    if (place === undefined) findHoles(holder![key], holes)
    else if (key !== '__proto__') holes[place] = { holder: holder!, key }
  }
}

/** Returns the end of the string or number at this position. Any other character is a token of its own. */
function endOfToken(text: string, at: number): number {
  return Math.max(at + 1, scalarStart.test(text.slice(at, at + 1)) ? endOfValue(text, at) : at + 1)
}
