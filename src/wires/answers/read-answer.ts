import { asObject, type JsonObject, type KeptJson, parseKeeping } from '../../bytes/json.ts'
import { parseUpstreamJson } from '../../bytes/scan.ts'
import { isDoneMark, type SseFrame } from '../../bytes/sse.ts'
import type { Narrator } from '../../inference/narrator.ts'
import { brokenFault, truncatedFault } from './faults.ts'

/**
 * The object in a frame. A frame without one ends the answer: a skipped frame could be a piece of a tool's arguments. A
 * mere sign of life is reported as one. `done` is the end mark, which any wire's upstream may send.
 */
export function readFrame(frame: SseFrame, narrator: Narrator): Record<string, unknown> | 'done' | undefined {
  if (frame.broken) {
    narrator.fail(
      frame.broken === 'cut' ? truncatedFault() : brokenFault('The model sent an event that is too large.', 'oversize'),
    )
    return undefined
  }
  if (frame.data === '') {
    narrator.alive()
    return undefined
  }
  let value: unknown
  try {
    value = parseUpstreamJson(frame.data)
  } catch {
    if (isDoneMark(frame.data)) return 'done'
  }
  const object = asObject(value)
  if (!object) narrator.fail(unreadable())
  return object
}

/** The object of a whole JSON answer; undefined if the answer is not an object. */
export function parseAnswer(bodyText: string): Record<string, unknown> | undefined {
  try {
    return asObject(parseUpstreamJson(bodyText))
  } catch {
    return undefined
  }
}

export function unreadable() {
  return brokenFault('The model sent an answer that cannot be read.')
}

/** A non-empty string, else undefined. */
export function stringOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** The elements that are objects; nothing for what is no array. */
export function objectsOf(value: unknown): Record<string, unknown>[] {
  const objects: Record<string, unknown>[] = []
  if (!Array.isArray(value)) return objects
  for (const item of value) {
    const object = asObject(item)
    if (object) objects.push(object)
  }
  return objects
}

/** The new part of a piece that may repeat all that came before it, from the beginning (ruling Y4). */
export function newPart(told: string, piece: string): string {
  return piece.startsWith(told) ? piece.slice(told.length) : piece
}

/** Arguments of a call as a text, also of a server that sends them as another kind of JSON (R-ARGS); of none at all ''. */
export function argumentsText(value: unknown): string {
  if (typeof value === 'string') return value
  return value === undefined || value === null ? '' : JSON.stringify(value)
}

/**
 * The source texts of one member of several objects in an answer: parsing would lose digits (ruling T16). The text is read once,
 * and only if one is asked for: an answer may call a thousand times.
 * @param text what was read as JSON already
 * @param objectsIn the objects, whose places are asked for
 * @returns undefined where there is no object
 */
export function keptSources(
  text: string,
  key: string,
  objectsIn: (root: JsonObject) => readonly (JsonObject | undefined)[],
): (place: number) => string | undefined {
  let kept: KeptJson | undefined
  let objects: readonly (JsonObject | undefined)[] = []
  return (place) => {
    if (kept === undefined) {
      kept = parseKeeping(text, [key])
      objects = objectsIn(kept.value as JsonObject)
    }
    const object = objects[place]
    return object && kept.raw(object[key]).source
  }
}
