import type { Json } from '../case.ts'
import type { JsonObject } from '../json.ts'
import type { Reading, SeenError } from '../observation.ts'

/** A whole answer, put together from a stream; it may lack its end. */
export type Collected = { body: JsonObject; isEnded: boolean }

/** What a client of a wire has to know. */
export type ClientWire = {
  path: string
  keyHeaders(key: string): { [name: string]: string }
  /** Reads a whole answer. */
  read(body: JsonObject): Reading
  /** Returns an answer as a client sends it back in its next request, for a turn of `ask` with `native`. */
  readTurn(body: JsonObject): JsonObject[]
  /** Puts the events of a stream together. */
  collect(datas: readonly Json[]): Collected
  /** Finds the error in a body or in an event. */
  readError(body: JsonObject): SeenError | undefined
  /**
   * Finds the first violation of the order of events, as clients rely on it. A stream without an end is in order.
   * Deviations that SDKs tolerate have cases of their own, so that one of them does not fail every stream.
   */
  findDisorder(datas: readonly Json[]): string | undefined
  /** Finds a part that the vendor sends in every stream with usage, and that is missing here. SDKs do not need it. */
  findMissing(datas: readonly Json[]): string | undefined
}

export const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

/** The error in the envelope that chat and responses share. */
export function readSharedError(body: JsonObject): SeenError | undefined {
  const { error } = body
  if (typeof error === 'string') return { message: error }
  if (typeof error !== 'object' || error === null || Array.isArray(error)) return undefined
  const { type, code, param, message } = error
  return { type, code, param, message } as SeenError
}
