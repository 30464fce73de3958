import type { RawJson } from '../../bytes/json.ts'
import { asObject, parseKept } from '../../bytes/json.ts'
import { isReasoningLevel, type ReasoningLevel } from '../../inference/reasoning.ts'
import type { ClientBody } from './client-body.ts'
import { wrongType } from './refusals.ts'

/*
 * Reading a client's JSON, the same for all wires. A value of the wrong type is a 400 that names its place and the
 * right type, never a TypeError (ruling R10). `at` is that place, as a path into the body.
 */

export type Json = Record<string, unknown>

/** A client's body: its members, and the exact source of those that are kept as text (ruling T16). */
export type Body = { fields: Json; raw: (value: unknown) => RawJson }

/** @param keptKeys where the value is an object or an array, its source is kept */
export function parseBody(body: ClientBody, keptKeys: readonly string[]): Body {
  const { value, raw } = parseKept(body.bytes, body.rangesUnder(keptKeys))
  return { fields: value as Json, raw }
}

export function isAbsent(value: unknown): value is undefined | null {
  return value === undefined || value === null
}

type ValueReader<T> = (value: unknown, at: string) => T

/** `null` in an optional field means absent (ruling R7). */
export function optional<T>(read: ValueReader<T>, value: unknown, at: string): T | undefined {
  return isAbsent(value) ? undefined : read(value, at)
}

export function readString(value: unknown, at: string): string {
  if (typeof value === 'string') return value
  throw wrongType(at, 'a string')
}

export function readBoolean(value: unknown, at: string): boolean {
  if (typeof value === 'boolean') return value
  throw wrongType(at, 'true or false')
}

/** A JSON number may be too large to be one here (`1e400`); such a value could not be sent on. */
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

/** Every element of an array, with its own place. */
export function readEach<T>(value: unknown, at: string, read: ValueReader<T>): T[] {
  return readArray(value, at).map((element, index) => read(element, `${at}[${index}]`))
}

/** The same for an optional array, which is empty where it is absent. */
export function optionalEach<T>(value: unknown, at: string, read: ValueReader<T>): T[] {
  return isAbsent(value) ? [] : readEach(value, at, read)
}

/**
 * Content that is one text or a list of blocks: a text is a list of one (ruling T14).
 * @param textType the type of the block that stands for the text
 */
export function readContent<T>(
  content: unknown,
  at: string,
  textType: string,
  read: (block: Json, at: string) => T,
): T[] {
  if (typeof content === 'string') return [read({ type: textType, text: content }, at)]
  if (!Array.isArray(content)) throw wrongType(at, 'a string or an array')
  return readEach(content, at, (block, place) => read(readObject(block, place), place))
}

export function readLevel(value: unknown, at: string): ReasoningLevel {
  if (typeof value === 'string' && isReasoningLevel(value)) return value
  throw wrongType(at, 'one of none, minimal, low, medium, high, xhigh, max')
}

/** The source of a JSON object that is carried as text. */
export function readRawObject(body: Body, value: unknown, at: string): RawJson {
  const raw = body.raw(value)
  if (raw.source.startsWith('{')) return raw
  throw wrongType(at, 'an object')
}

export function optionalRawObject(body: Body, value: unknown, at: string): RawJson | undefined {
  return isAbsent(value) ? undefined : readRawObject(body, value, at)
}

/** Argument text as it came; some clients send the object itself. */
export function readArguments(body: Body, value: unknown, at: string): string {
  if (isAbsent(value)) return ''
  const { source } = body.raw(value)
  if (source.startsWith('{')) return source
  // A list was kept as well: what stands in its place is a token of ours and no text of the client's.
  if (source.startsWith('[')) throw wrongType(at, 'a string or an object')
  return readString(value, at)
}
