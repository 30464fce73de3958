import type { RawJson } from '../bytes/json.ts'
import { asObject, parseKeeping } from '../bytes/json.ts'
import { GatewayError } from '../errors.ts'
import { isReasoningLevel, type ReasoningLevel } from '../inference/reasoning.ts'
import type { Loss } from '../inference/request.ts'
import type { FieldTable } from './fields.ts'

/*
 * Reading a client's JSON, the same for all wires: a value of the wrong type is a 400 that names the top-level field
 * and what is wrong, never a TypeError (ruling R10). The words are ours; nothing of the body is repeated (spec 7.1).
 */

export type Json = Record<string, unknown>

/** A client's body: its members, and the exact source of those that are kept as text (ruling T16). */
export type Body = { fields: Json; raw: (value: unknown) => RawJson }

/** @throws GatewayError 400 without `param` when the text is not a JSON object. */
export function readBody(bodyText: string, keptKeys: readonly string[]): Body {
  try {
    const { value, raw } = parseKeeping(bodyText, keptKeys)
    const fields = asObject(value)
    if (fields) return { fields, raw }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
  throw new GatewayError('invalid_body', 'The body must be a JSON object.')
}

/** @throws GatewayError 400 `invalid_body` that names the client's top-level field. */
export function refuse(param: string, text: string): never {
  throw new GatewayError('invalid_body', text, { param })
}

export function isAbsent(value: unknown): value is undefined | null {
  return value === undefined || value === null
}

type Read<T> = (value: unknown, param: string, what?: string) => T

/** `null` in an optional field means absent (ruling R7). */
export function optional<T>(read: Read<T>, value: unknown, param: string, what?: string): T | undefined {
  return isAbsent(value) ? undefined : read(value, param, what)
}

export function readString(value: unknown, param: string, what?: string): string {
  return typeof value === 'string' ? value : wrongType(param, what, 'a string')
}

export function readBoolean(value: unknown, param: string, what?: string): boolean {
  return typeof value === 'boolean' ? value : wrongType(param, what, 'true or false')
}

/** A JSON number may be too large to be one here (`1e400`); such a value could not be sent on. */
export function readNumber(value: unknown, param: string, what?: string): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : wrongType(param, what, 'a number')
}

export function readPositiveInteger(value: unknown, param: string, what?: string): number {
  return Number.isInteger(value) && (value as number) > 0
    ? (value as number)
    : wrongType(param, what, 'a positive integer')
}

export function readObject(value: unknown, param: string, what?: string): Json {
  return asObject(value) ?? wrongType(param, what, 'an object')
}

export function readArray(value: unknown, param: string, what?: string): unknown[] {
  return Array.isArray(value) ? value : wrongType(param, what, 'an array')
}

export function readLevel(value: unknown, param: string, what?: string): ReasoningLevel {
  const word = readString(value, param, what)
  return isReasoningLevel(word) ? word : wrongType(param, what, 'one of none, minimal, low, medium, high, xhigh, max')
}

/** The source of a JSON object that is carried as text. */
export function readRawObject(body: Body, value: unknown, param: string, what?: string): RawJson {
  const raw = body.raw(value)
  return raw.source.startsWith('{') ? raw : wrongType(param, what, 'an object')
}

export function optionalRawObject(body: Body, value: unknown, param: string, what?: string): RawJson | undefined {
  return isAbsent(value) ? undefined : readRawObject(body, value, param, what)
}

/** Argument text as it came; some clients send the object itself. */
export function readArguments(body: Body, value: unknown, param: string): string {
  if (isAbsent(value)) return ''
  const { source } = body.raw(value)
  return source.startsWith('{') ? source : readString(value, param, '"arguments"')
}

function wrongType(param: string, what: string | undefined, type: string): never {
  refuse(param, what ? `"${param}": ${what} must be ${type}.` : `"${param}" must be ${type}.`)
}

/** What was dropped, clamped or rewritten, each once: field names and fixed words only (rulings T9, U5). */
export type Losses = { list: Loss[]; add: (field: string, what: Loss['what'], why: string) => void }

export function createLosses(earlier: readonly Loss[] = []): Losses {
  const list = [...earlier]
  const seen = new Set(list.map(lossKey))
  return { list, add }

  function add(field: string, what: Loss['what'], why: string) {
    const loss = { field, what, why }
    if (seen.has(lossKey(loss))) return
    seen.add(lossKey(loss))
    list.push(loss)
  }
}

function lossKey(loss: Loss): string {
  return `${loss.field} ${loss.what} ${loss.why}`
}

/**
 * What the table of a wire alone decides: fields that are refused whatever they say, and fields that no other wire has.
 * A field that is not in the table is counted without its name, which is the client's own word.
 */
export function applyFieldTable(fields: Json, table: FieldTable, losses: Losses) {
  for (const [field, value] of Object.entries(fields)) {
    if (isAbsent(value)) continue
    const facts = table.get(field)
    if (facts?.refusal) refuse(field, facts.refusal)
    if (!facts) losses.add('(unknown)', 'dropped', 'not a field of this wire')
    else if (facts.to.every(([, verdict]) => verdict === 'dropped'))
      losses.add(field, 'dropped', 'no other wire has it')
  }
}

/** The texts of every wire for what no translated model has (rulings T6, T11). */
export const refusals = {
  hostedTool:
    'This model takes function tools only: remove hosted and custom tools from "tools". An agent that adds web search by itself has a setting for it, e.g. web_search = "disabled".',
  itemReference:
    'Nothing is stored here, so an item cannot be referred to: send the whole item, e.g. by setting store: false in your SDK.',
  remoteFile: 'Files and images are not fetched: send the data itself, in base64.',
  hostedChoice: '"tool_choice" must name a function tool: this model has no other tools.',
} as const
