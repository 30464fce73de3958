import type { Text } from '../bytes/json-source.ts'
import { isJsonObject } from '../bytes/scan.ts'

/*
 * Tool arguments are text on two wires and a JSON object on the third (R-ARGS). Argument text that is no object is
 * wrapped into an object under this key, and unwrapped on the way back. So no client ever runs a tool with arguments
 * that the model did not send.
 */
const rawKey = '_raw_arguments'

/**
 * Converts the JSON of an arguments object to the text of the arguments. If the object only wraps a text (see
 * `rawKey`), this text is returned.
 */
export function argumentsOfObject(source: string): string {
  if (!source.includes(rawKey)) return source
  const object = JSON.parse(source) as Record<string, unknown>
  const raw = object[rawKey]
  return typeof raw === 'string' && Object.keys(object).length === 1 ? raw : source
}

/**
 * Converts the arguments of a call from plain text to the JSON text of an object. A blank text becomes `{}`. An object
 * stays as written, but half a surrogate pair becomes an escape (ruling T16). Any other text is wrapped. An object that
 * is deeper or larger than a request may be is wrapped too. In the body, the arguments were only a string, so their
 * depth and size were not checked there.
 */
export function objectOfArguments(argumentsText: Text): string {
  const text = argumentsText.toString()
  const trimmed = text.trim()
  if (trimmed === '') return '{}'
  if (!isJsonObject(trimmed)) return `{${JSON.stringify(rawKey)}:${JSON.stringify(text)}}`
  return trimmed.isWellFormed()
    ? trimmed
    : trimmed.replace(/\p{Surrogate}/gu, (half) => JSON.stringify(half).slice(1, -1))
}
