import { isJsonObject } from '../bytes/scan.ts'

/*
 * Tool arguments are text on two wires and a JSON object on the third (R-ARGS). Text that is no object travels inside
 * one under this key and comes out of it again, so that no client ever runs a tool with arguments nobody sent.
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
 * Argument text → the source text of a JSON object: itself where it is one. A text that is deeper or has more in it than a whole
 * request may counts as none: within the body it came in it was but a string, which nobody had measured.
 */
export function objectOfArguments(text: string): string {
  const trimmed = text.trim()
  if (trimmed === '') return '{}'
  return isJsonObject(trimmed) ? trimmed : `{${JSON.stringify(rawKey)}:${JSON.stringify(text)}}`
}
