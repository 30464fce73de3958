import { asObject, endOfValue } from '../../bytes/json.ts'
import { ownCopy } from '../../bytes/own-copy.ts'
import { keptMark, keptPlace, parseUpstreamJson } from '../../bytes/scan.ts'

/** The longest event that is learned, in characters: a delta of text has some hundreds, with all that vendors add to it. */
const learnedCharactersMax = 2_048
/** A stream in which no two events are alike is not learned for ever. */
const learnedMax = 16

/** A string or number that differs from event to event, and where it belongs in the object of the event. */
type EventHole = { holder: Record<string, unknown>; key: string }

/** An event as literal text with holes between. Holes and the object belong together. */
type EventMould = { literals: string[]; holes: EventHole[]; value: unknown }

/**
 * Reads the JSON of a stream's events. Most deltas differ from the one before in a few strings and numbers. Such a delta is compared
 * with it and not parsed. Its values are put into the object of the last one, which is valid until the next event.
 */
export class AlikeEvents {
  #mould: EventMould | undefined
  #before = ''
  #left = learnedMax
  #isAlike = false

  /** @throws JsonError, SyntaxError */
  parse(text: string): unknown {
    const value = this.#mould && fill(text, this.#mould)
    this.#isAlike = value !== undefined
    return value ?? parseUpstreamJson(text)
  }

  /**
   * Is called when the last event has been read. Its texts are let go of, since each keeps the piece that it came in.
   * @param isDelta the event can be learned from: no code keeps an object of it
   */
  done(text: string, isDelta: boolean): void {
    if (this.#mould) for (const { holder, key } of this.#mould.holes) holder[key] = ''
    if (this.#isAlike || !isDelta || this.#left === 0 || text.length > learnedCharactersMax) return
    this.#left--
    this.#mould = mouldOf(this.#before, text) ?? this.#mould
    this.#before = this.#left > 0 ? ownCopy(text) : ''
  }
}

/** @returns undefined if the text does not fit; its values are not to be used then, and the next that fits replaces all of them */
function fill(text: string, { literals, holes, value }: EventMould): unknown {
  let at = 0
  for (let i = 0; i < literals.length; i++) {
    const literal = literals[i]!
    // Slices are compared four times as fast as `startsWith` compares.
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

/** Integers of so many digits are exact. */
const digitsMax = 15
const zero = 0x30

const plainString = /^"[^"\\\u0000-\u001f]*"$/
const scalarStart = /^["\d-]/

/** A string or number; undefined if the text is not exactly one. */
function readScalar(text: string): unknown {
  if (plainString.test(text)) return text.slice(1, -1)
  try {
    return scalarStart.test(text) ? JSON.parse(text) : undefined
  } catch {
    return undefined
  }
}

/** The mould of two events that differ in strings and numbers alone; undefined for others. @param text JSON, as the one before */
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
  // A key, or a member that occurs twice, has a hole that is no value of the object.
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

/** The end of the string or number at a place, or of one other character. */
function endOfToken(text: string, at: number): number {
  return Math.max(at + 1, scalarStart.test(text.slice(at, at + 1)) ? endOfValue(text, at) : at + 1)
}
