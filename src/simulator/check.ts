import { asObject } from '../bytes/json.ts'
import { rejectField } from './prompt.ts'

/*
 * Functions that check values, and rules that several wires share. Most functions return the checked value. `null` in
 * an optional field counts as absent, as it does at the vendors. Rules in which wires differ, such as lengths, are in
 * the folders of the wires.
 */

export type SimulatorJson = Record<string, unknown>

export function object(value: unknown, path: string): SimulatorJson {
  return asObject(value) ?? rejectField(path, 'must be an object', 'invalid_type')
}

export function array(value: unknown, path: string): unknown[] {
  return Array.isArray(value) ? value : rejectField(path, 'must be an array', 'invalid_type')
}

export function string(value: unknown, path: string): string {
  return typeof value === 'string' ? value : rejectField(path, 'must be a string', 'invalid_type')
}

export function name(value: unknown, path: string, lengthMax: number): string {
  const text = string(value, path)
  const isFit = text.length > 0 && text.length <= lengthMax && /^[a-zA-Z0-9_-]+$/.test(text)
  return isFit ? text : rejectField(path, `must be 1 to ${lengthMax} letters, digits, "_" or "-"`, 'invalid_value')
}

export function integer(value: unknown, path: string, least: number): number {
  const isFit = Number.isInteger(value) && (value as number) >= least
  return isFit ? (value as number) : rejectField(path, `must be an integer of at least ${least}`, 'invalid_type')
}

export function numberWithin(value: unknown, path: string, least: number, most: number): void {
  if (value === undefined || value === null) return
  const isFit = typeof value === 'number' && value >= least && value <= most
  if (!isFit) rejectField(path, `must be a number from ${least} to ${most}`, 'invalid_value')
}

export function oneOf(value: unknown, path: string, words: readonly string[]): string {
  const isFit = typeof value === 'string' && words.includes(value)
  return isFit ? value : rejectField(path, `must be one of ${words.join(', ')}`, 'invalid_value')
}

export function optionalBoolean(value: unknown, path: string): void {
  if (value !== undefined && value !== null && typeof value !== 'boolean') {
    rejectField(path, 'must be a boolean', 'invalid_type')
  }
}

export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}

/** The valid words for reasoning effort on chat and responses. */
export const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']

/** Checks the name of a declared tool, which must be new, and adds it to `names`. */
export function newToolName(value: unknown, path: string, lengthMax: number, names: Set<string>): string {
  const toolName = name(value, path, lengthMax)
  if (names.has(toolName)) rejectField(path, 'tool names must be unique')
  names.add(toolName)
  return toolName
}

/** Checks the name of a chosen tool, which must be declared. @param place the path in the error */
export function knownToolName(value: unknown, path: string, names: ReadonlySet<string>, place = path): void {
  if (!names.has(string(value, path))) rejectField(place, 'names a tool that is not in tools')
}

export function imageUrl(value: unknown, path: string, code: string): void {
  if (!/^(data:image\/[a-z+.-]+;base64,|https?:\/\/)/i.test(string(value, path))) {
    rejectField(path, 'must be a base64 data URL of an image, or an http URL', code)
  }
}

/** Checks the parameters of a function, which are optional. */
export function functionParameters(value: unknown, isStrict: boolean, path: string): void {
  if (!isGiven(value)) return
  const parameters = object(value, path)
  if (Object.keys(parameters).length > 0) oneOf(parameters['type'], `${path}.type`, ['object'])
  if (isStrict) strictSchema(parameters, path)
}

/** Checks a strict schema: every object is closed, and all its properties are required. */
export function strictSchema(schema: unknown, path: string): void {
  const node = asObject(schema)
  if (!node) return
  const properties = asObject(node['properties'])
  if (node['type'] === 'object' || properties) {
    if (node['additionalProperties'] !== false) {
      rejectField(path, 'strict needs "additionalProperties": false on every object', 'invalid_function_parameters')
    }
    const required = Array.isArray(node['required']) ? node['required'] : []
    const missing = Object.keys(properties ?? {}).find((key) => !required.includes(key))
    if (missing)
      rejectField(path, `strict needs every property in "required"; "${missing}" is not`, 'invalid_function_parameters')
  }
  for (const [key, child] of Object.entries(properties ?? {})) strictSchema(child, `${path}.properties.${key}`)
  strictSchema(node['items'], `${path}.items`)
  for (const key of ['anyOf', 'oneOf', 'allOf']) {
    const variants = Array.isArray(node[key]) ? node[key] : []
    for (const [index, child] of variants.entries()) strictSchema(child, `${path}.${key}[${index}]`)
  }
}

/** Returns the elements of a list as objects. Anything else gives an empty list. */
export function list(value: unknown): SimulatorJson[] {
  return Array.isArray(value) ? value.map((one) => asObject(one) ?? {}) : []
}
