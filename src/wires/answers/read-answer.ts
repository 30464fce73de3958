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
 * The object in a frame. A frame without one ends the answer: a skipped frame could be a piece of a tool's arguments. A
 * mere sign of life is reported as one. `done` is the end mark, which any wire's upstream may send.
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

/**
 * Whether a first delta says again what stood in its start (ruling Y4): exactly that, or whole arguments, which nothing but
 * themselves can follow. Any other goes on from it.
 */
export function repeatsStart(start: string, delta: string, isArguments = false): boolean {
  return delta === start || (isArguments && isJsonObject(start))
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
 * @returns undefined if there is no object
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

/** A model's answer to events, by the frames of its stream or as one JSON body. What it cannot read becomes `fail`. */
export type Decoder = Step<SseFrame, AnswerEvent> & {
  /** The model has said why it ends: should the connection break now, the answer is whole all the same (ruling T19). */
  readonly isEnough: boolean
  /** The events of a whole JSON answer, as the model would have streamed them (laws I1–I10). No frames come before it. */
  whole(bodyText: string): AnswerEvent[]
}

/** Is given an answer, or each part of one, that may name its model and its service (rulings Y13, Y17). */
export type OnAnswer = (answer: JsonObject) => void

/** The part that the decoders of all wires share. A wire reports to the narrator what it reads. */
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

  /** @param object what the frame's data says */
  protected abstract read(object: JsonObject, frame: SseFrame): void

  /** @param isMarked the end was said by an end mark, and is not merely that of the bytes */
  protected abstract close(isMarked: boolean): void

  /** @param text the body as it came */
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

/** A chunk of chat is one itself; events of the other wires hold a message or a response. */
function answerIn(object: JsonObject): JsonObject {
  return object['model'] === undefined ? (asObject(object['message'] ?? object['response']) ?? object) : object
}
