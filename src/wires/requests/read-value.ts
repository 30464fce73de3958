import { asObject, type Range, type RawJson } from '../../bytes/json.ts'
import { JsonSource, SourceText, type Text } from '../../bytes/json-source.ts'
import { type KeptKeys, keptMark, keptPlace, numberAt, rareCharacter } from '../../bytes/scan.ts'
import { isReasoningLevel, type ReasoningLevel } from '../../inference/reasoning.ts'
import type { ClientBody } from './client-body.ts'
import { wrongType } from './refusals.ts'

/*
 * Reads a client's JSON, for all wires. A value of the wrong type causes a 400 that names its place and the right
 * type, never a TypeError (ruling R10). `at` is this place, as a path into the body.
 */

export type Json = Record<string, unknown>

/**
 * A client's body, parsed. Placeholders stand for values that must keep their source text, such as schemas (ruling
 * T16). `raw` and `text` turn a placeholder into its source text. A string that may be a placeholder must be read with
 * `readText`.
 */
export class Body {
  readonly fields: Json
  readonly #bytes: Buffer
  readonly #ranges: readonly Range[]

  constructor(asked: ClientBody, keys: KeptKeys) {
    const { text, ranges } = asked.outline(keys)
    this.fields = JSON.parse(text) as Json
    this.#bytes = asked.bytes
    this.#ranges = ranges
  }

  /**
   * Returns the source text of a value. If the value's key is written with an escape, the source was not kept, and the
   * value is serialized again.
   */
  raw(value: unknown): RawJson {
    const range = this.#rangeOf(value)
    return range ? new JsonSource(this.#bytes, range.start, range.end) : { source: this.write(value) }
  }

  /** Returns a value as JSON on one line. Each placeholder is replaced by its source text. */
  write(value: unknown): string {
    const text = JSON.stringify(value) ?? 'null'
    const parts: string[] = []
    let from = 0
    for (let at = text.indexOf(rareCharacter); at >= 0; at = text.indexOf(rareCharacter, at + 1)) {
      if (!text.startsWith(keptMark, at)) continue
      const { value: place, end } = numberAt(text, at + keptMark.length)
      const { start, end: stop } = this.#ranges[place]!
      const source = this.#bytes.toString('utf8', start, stop)
      // One regular expression for both characters would take longer than the rest of this function.
      const hasLines = source.includes('\n') || source.includes('\r')
      parts.push(text.slice(from, at - 1), hasLines ? JSON.stringify(JSON.parse(source)) : source)
      from = end + 1
    }
    parts.push(text.slice(from))
    return parts.join('')
  }

  /** Returns the source of a string that was kept unparsed; undefined for any other value. */
  text(value: unknown): SourceText | undefined {
    const range = this.#rangeOf(value)
    return range && this.#bytes[range.start] === quote ? new SourceText(this.#bytes, range.start, range.end) : undefined
  }

  #rangeOf(value: unknown): Range | undefined {
    const place = keptPlace(value)
    return place === undefined ? undefined : this.#ranges[place]
  }
}

const quote = 0x22

export function isAbsent(value: unknown): value is undefined | null {
  return value === undefined || value === null
}

type ValueReader<T> = (value: unknown, at: string) => T

/** Reads an optional field. `null` means that the field is absent (ruling R7). */
export function optional<T>(read: ValueReader<T>, value: unknown, at: string): T | undefined {
  return isAbsent(value) ? undefined : read(value, at)
}

export function readString(value: unknown, at: string): string {
  if (typeof value === 'string') return value
  throw wrongType(at, 'a string')
}

/** Reads a text from a string, or from a placeholder that stands for a kept text. */
export function readText(body: Body, value: unknown, at: string): Text {
  return body.text(value) ?? readString(value, at)
}

export function optionalText(body: Body, value: unknown, at: string): Text | undefined {
  return isAbsent(value) ? undefined : readText(body, value, at)
}

export function readBoolean(value: unknown, at: string): boolean {
  if (typeof value === 'boolean') return value
  throw wrongType(at, 'true or false')
}

/** Reads a number. JSON numbers beyond the range of a double (`1e400`) are refused, since they could not be sent on. */
export function readNumber(value: unknown, at: string): number {
  if (typeof value === 'number' && Number.isFinite(value)) return value
  throw wrongType(at, 'a number')
}

export function readPositiveInteger(value: unknown, at: string): number {
  if (typeof value === 'number' && Number.isInteger(value) && value > 0) return value
  throw wrongType(at, 'a positive integer')
}

export function readObject(value: unknown, at: string): Json {
  const object = asObject(value)
  if (object) return object
  throw wrongType(at, 'an object')
}

export function readArray(value: unknown, at: string): unknown[] {
  if (Array.isArray(value)) return value
  throw wrongType(at, 'an array')
}

/** Reads every element of an array, each with its own place. */
export function readEach<T>(value: unknown, at: string, read: ValueReader<T>): T[] {
  return readArray(value, at).map((element, index) => read(element, `${at}[${index}]`))
}

/** Like `readEach`; an absent array is empty. */
export function optionalEach<T>(value: unknown, at: string, read: ValueReader<T>): T[] {
  return isAbsent(value) ? [] : readEach(value, at, read)
}

/**
 * Reads content that is a text or a list of blocks. A text counts as a list of one block (ruling T14).
 * @param textType the type of the block that a text becomes
 */
export function readContent<T>(
  body: Body,
  content: unknown,
  at: string,
  textType: string,
  read: (block: Json, at: string, body: Body) => T,
): T[] {
  if (typeof content === 'string') return [read({ type: textType, text: content }, at, body)]
  if (!Array.isArray(content)) throw wrongType(at, 'a string or an array')
  if (content.length === 1) {
    const place = `${at}[0]`
    return [read(readObject(content[0], place), place, body)]
  }
  return readEach(content, at, (block, place) => read(readObject(block, place), place, body))
}

/**
 * Like `readContent`, but a block can become any number of parts. These loops are ten times as fast as `flat`.
 * @param read returns a block's parts. For a single block, the usual case, this list is returned without a copy.
 */
export function readParts<T>(
  body: Body,
  content: unknown,
  at: string,
  textType: string,
  read: (block: Json, at: string, body: Body) => T[],
): T[] {
  const lists = readContent(body, content, at, textType, read)
  if (lists.length === 1) return lists[0]!
  const parts: T[] = []
  for (const some of lists) for (const part of some) parts.push(part)
  return parts
}

export function readLevel(value: unknown, at: string): ReasoningLevel {
  if (typeof value === 'string' && isReasoningLevel(value)) return value
  throw wrongType(at, 'one of none, minimal, low, medium, high, xhigh, max')
}

/** The source text of a JSON object that is not parsed. */
export function readRawObject(body: Body, value: unknown, at: string): RawJson {
  const raw = body.raw(value)
  if (firstOf(raw) === '{') return raw
  throw wrongType(at, 'an object')
}

export function optionalRawObject(body: Body, value: unknown, at: string): RawJson | undefined {
  return isAbsent(value) ? undefined : readRawObject(body, value, at)
}

/** Reads the arguments of a call as text. Some clients send an object instead, whose source text is returned. */
export function readArguments(body: Body, value: unknown, at: string): Text {
  if (isAbsent(value)) return ''
  const text = body.text(value)
  if (text !== undefined) return text
  if (typeof value === 'string' && keptPlace(value) === undefined) return value
  const raw = body.raw(value)
  const first = firstOf(raw)
  if (first === '{') return raw.source
  // The client sent a list, and the value is the placeholder of this list. A placeholder must not be taken for a text
  // of the client.
  if (first === '[') throw wrongType(at, 'a string or an object')
  return readString(value, at)
}

function firstOf(raw: RawJson): string {
  return raw instanceof JsonSource ? raw.first : raw.source.slice(0, 1)
}
