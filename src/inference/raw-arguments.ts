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

/**
 * The pieces of a call's arguments. Some models repeat all arguments so far in each piece. Then the last piece is a JSON
 * object, but the joined pieces are not. If the answer is read as a whole, the last piece counts (ruling Y4).
 */
export class ArgumentPieces {
  /** The last piece; undefined if one of the pieces does not repeat the piece before it. */
  #last: string | undefined = ''

  add(piece: string): void {
    this.#last = this.#last !== undefined && piece.startsWith(this.#last) ? piece : undefined
  }

  /** Returns the arguments. @param joined all pieces, joined */
  read(joined: string): string {
    const last = this.#last
    return last !== undefined && last !== joined && !isJsonObject(joined) && isJsonObject(last) ? last : joined
  }
}

/**
 * Returns the texts that the last piece of a call repeats (see `ArgumentPieces`). They are no part of a whole answer, so
 * they must not be billed.
 * @param told each piece, with a key of its call
 */
export function repeatedTexts(told: readonly (readonly [key: unknown, piece: unknown])[]): string[] {
  const calls = new Map<unknown, { pieces: ArgumentPieces; joined: string }>()
  for (const [key, piece] of told) {
    if (typeof piece !== 'string') continue
    const call = calls.get(key) ?? { pieces: new ArgumentPieces(), joined: '' }
    call.pieces.add(piece)
    call.joined += piece
    calls.set(key, call)
  }
  return Array.from(calls.values(), ({ pieces, joined }) => beforeLast(joined, pieces.read(joined)))
}

/** The joined pieces before the last piece; '' if the joined pieces are the arguments. */
export function beforeLast(joined: string, read: string): string {
  return joined.slice(0, joined.length - read.length)
}
