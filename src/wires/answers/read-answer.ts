import { asObject, type JsonObject, type KeptJson, parseKeeping } from '../../bytes/json.ts'
import { isJsonObject, parseUpstreamJson } from '../../bytes/scan.ts'
import { isDoneMark, type SseFrame } from '../../bytes/sse.ts'
import type { Step } from '../../bytes/step.ts'
import type { Profile } from '../../catalog/profile.ts'
import type { AnswerEvent } from '../../inference/answer.ts'
import { Narrator } from '../../inference/narrator.ts'
import { AlikeEvents } from './alike-events.ts'
import { brokenFault, truncatedFault } from './faults.ts'

/**
 * Parses the object in a frame. A frame without an object fails the answer, since a skipped frame could be a piece of a
 * tool's arguments. A keep-alive frame is only passed on to the narrator. `done` means the end mark, which upstreams of
 * any wire may send.
 */
function readFrame(
  frame: SseFrame,
  narrator: Narrator,
  events: AlikeEvents,
): Record<string, unknown> | 'done' | undefined {
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
    value = events.parse(frame.data)
  } catch {
    if (isDoneMark(frame.data)) return 'done'
  }
  const object = asObject(value)
  if (!object) narrator.fail(unreadable())
  return object
}

/** Parses a whole JSON answer; undefined if it is not an object. */
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

/** Returns a non-empty string, else undefined. */
export function stringOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** Returns the elements that are objects; an empty list if the value is no array. */
export function objectsOf(value: unknown): Record<string, unknown>[] {
  const objects: Record<string, unknown>[] = []
  if (!Array.isArray(value)) return objects
  for (const item of value) {
    const object = asObject(item)
    if (object) objects.push(object)
  }
  return objects
}

/** Returns the new part of a piece. Some servers repeat all earlier text in each piece (ruling Y4). */
export function newPart(told: string, piece: string): string {
  return piece.startsWith(told) ? piece.slice(told.length) : piece
}

/**
 * Whether a block's first delta repeats the text that the block's start event had (ruling Y4). It does if both are
 * equal, or if that text is whole arguments. Any other delta continues the text.
 */
export function repeatsStart(start: string, delta: string, isArguments = false): boolean {
  return delta === start || (isArguments && isJsonObject(start))
}

/** The arguments of a call as text. Some servers send other kinds of JSON (R-ARGS). Absent arguments become ''. */
export function argumentsText(value: unknown): string {
  if (typeof value === 'string') return value
  return value === undefined || value === null ? '' : JSON.stringify(value)
}

/**
 * Reads a member of several objects of an answer as source text, since parsing would lose digits (ruling T16). The text
 * is scanned once, when the first member is asked for: an answer may have a thousand calls.
 * @param text an answer that has been parsed already
 * @param objectsIn returns the objects whose members are wanted
 * @returns a function that returns the source text for an object's place in the list; undefined for a missing object
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

/**
 * Converts a model's answer to events: frame by frame, or from one JSON body. Unreadable input becomes a `fail` event.
 */
export type Decoder = Step<SseFrame, AnswerEvent> & {
  /**
   * Whether the model has given a stop reason. The answer is then whole, even if the connection breaks now (ruling
   * T19).
   */
  readonly isEnough: boolean
  /** Returns the events of a whole JSON answer (laws I1–I10), as if it had been streamed. Not used after frames. */
  whole(bodyText: string): AnswerEvent[]
}

/** Receives an answer or a part of one, which may name its model and service (rulings Y13, Y17). */
export type OnAnswer = (answer: JsonObject) => void

/** The common part of all decoders. A decoder reports what it reads to the narrator, which makes the events. */
export abstract class AnswerDecoder implements Decoder {
  protected readonly narrator = new Narrator()
  protected readonly profile: Profile
  readonly #onAnswer: OnAnswer | undefined
  readonly #alike = new AlikeEvents()

  constructor(profile: Profile, onAnswer?: OnAnswer) {
    this.profile = profile
    this.#onAnswer = onAnswer
  }

  abstract readonly isEnough: boolean

  /** @param object the parsed data of the frame */
  protected abstract read(object: JsonObject, frame: SseFrame): void

  /** @param isMarked true if an end mark was received; false if only the connection ended */
  protected abstract close(isMarked: boolean): void

  /** @param text the body as received */
  protected abstract readWhole(body: JsonObject, text: string): void

  push(frame: SseFrame): AnswerEvent[] {
    if (this.narrator.isOver) return []
    const object = readFrame(frame, this.narrator, this.#alike)
    if (object === 'done') this.close(true)
    else if (object) {
      this.#onAnswer?.(answerIn(object))
      this.read(object, frame)
    }
    const events = this.narrator.take()
    if (object) this.#alike.done(frame.data, events.length > 0 && events.every(isDelta))
    return events
  }

  end(): AnswerEvent[] {
    this.close(false)
    return this.narrator.take()
  }

  whole(bodyText: string): AnswerEvent[] {
    const body = parseAnswer(bodyText)
    if (body) {
      this.#onAnswer?.(body)
      this.readWhole(body, bodyText)
    } else this.narrator.fail(unreadable())
    return this.narrator.take()
  }
}

function isDelta({ type }: AnswerEvent): boolean {
  return type === 'block_delta' || type === 'usage'
}

/**
 * The object that describes the answer. On chat this is the chunk itself; events of other wires contain a message or
 * a response.
 */
function answerIn(object: JsonObject): JsonObject {
  return object['model'] === undefined ? (asObject(object['message'] ?? object['response']) ?? object) : object
}
