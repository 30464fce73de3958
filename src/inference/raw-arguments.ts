import type { Text } from '../bytes/json-source.ts'
import { isJsonObject } from '../bytes/scan.ts'

/*
 * Tool arguments are text on two wires and a JSON object on the third (R-ARGS). Text that is no object travels inside
 * one under this key and comes out of it again. So no client ever runs a tool with arguments that were not sent.
 */
const rawKey = '_raw_arguments'

/** The source text of an arguments object → the argument text. */
export function argumentsOfObject(source: string): string {
  if (!source.includes(rawKey)) return source
  const object = JSON.parse(source) as Record<string, unknown>
  const raw = object[rawKey]
  return typeof raw === 'string' && Object.keys(object).length === 1 ? raw : source
}

/**
 * The source text of a JSON object for an argument text: the text itself if it is one. A text that is deeper or larger
 * than a whole request may be does not count as one. In the body that it came in it was a mere string, which was not
 * measured.
 */
export function objectOfArguments(argumentsText: Text): string {
  const text = argumentsText.toString()
  const trimmed = text.trim()
  if (trimmed === '') return '{}'
  return isJsonObject(trimmed) ? trimmed : `{${JSON.stringify(rawKey)}:${JSON.stringify(text)}}`
}
