import { asObject, type JsonObject, type KeptJson, parseKeeping } from '../../bytes/json.ts'
import { appendOwn } from '../../bytes/memory.ts'
import { isJsonObject, parseUpstreamJson } from '../../bytes/scan.ts'
import { isDoneMark, type SseFrame } from '../../bytes/sse.ts'
import type { Step } from '../../bytes/step.ts'
import type { Profile } from '../../catalog/profile.ts'
import type { AnswerEvent, MediaKind } from '../../inference/answer.ts'
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

/** Whether a frame with data only shows that the upstream is alive, which is no progress (faults F-U15). */
export function isKeepAlive({ event, data }: SseFrame): boolean {
  return event === 'ping' || event === 'keepalive' || (data.length < 128 && keepAlive.test(data))
}

const keepAlive = /^\s*\{\s*"type"\s*:\s*"(?:ping|keepalive)"/

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

/** The texts so far of the parts of a stream, for an upstream that repeats all earlier text in each piece (ruling Y4). */
export class ToldTexts {
  readonly #told = new Map<string, string>()
  readonly #partsMax: number

  /** @param partsMax for how many parts the text is kept. Pieces of further parts count as new */
  constructor(partsMax: number) {
    this.#partsMax = partsMax
  }

  /** Returns the new part of a piece, and adds it to the text of its part. */
  take(part: string, piece: string): string {
    const told = this.#told.get(part) ?? ''
    const news = newPart(told, piece)
    if (told !== '' || this.#told.size < this.#partsMax) this.#told.set(part, appendOwn(told, news))
    return news
  }
}

/**
 * Whether a block's first delta repeats the text of the block's start event (ruling Y4). That is so if both texts are
 * equal, or if the start event has whole arguments. Any other delta continues the text.
 */
export function repeatsStart(start: string, delta: string, isArguments = false): boolean {
  return delta === start || (isArguments && isJsonObject(start))
}

/**
 * Returns the arguments of a call as text. Some servers send JSON that is not a string (R-ARGS). Absent arguments
 * become ''.
 */
export function argumentsText(value: unknown): string {
  if (typeof value === 'string') return value
  return value === undefined || value === null ? '' : JSON.stringify(value)
}

/**
 * Reads the member `key` of several objects of an answer as source text, since parsing would lose digits (ruling T16).
 * An answer may have a thousand calls, so its text is scanned only once, when the first member is asked for.
 * @param text an answer that is valid JSON
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
  /** Returns the events of a whole JSON answer (laws I1–I10), as if it had been streamed. Not called after `push`. */
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

  /** Reads one frame of a stream. @param object the parsed data of the frame */
  protected abstract read(object: JsonObject, frame: SseFrame): void

  /** Ends the answer. @param isMarked true if an end mark was received; false if only the connection ended */
  protected abstract close(isMarked: boolean): void

  /** Reads a whole answer. @param text the body as received */
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

/**
 * A part of a model's content: text, a call, media that client wires cannot carry in an answer, or an unreadable
 * part.
 */
type ContentPart =
  | { kind: 'text' | 'reasoning' | 'refusal'; text: string }
  | { kind: 'tool_call'; call: JsonObject }
  | { kind: 'media'; media: MediaKind; source: string }
  | { kind: 'unread' }

/**
 * The kind of a part by its type. All wires share the table, since some servers use another wire's types (ruling Y5).
 */
const kindsOfTypes = new Map<string, 'text' | 'reasoning' | 'refusal' | 'tool_call'>([
  ['text', 'text'],
  ['output_text', 'text'],
  ['input_text', 'text'],
  ['message', 'text'],
  ['refusal', 'refusal'],
  ['thinking', 'reasoning'],
  ['reasoning', 'reasoning'],
  ['reasoning_text', 'reasoning'],
  ['summary_text', 'reasoning'],
  ['tool_use', 'tool_call'],
  ['tool_call', 'tool_call'],
  ['function_call', 'tool_call'],
  ['function', 'tool_call'],
])

/** The kind of a part of this type; undefined for media and for unreadable parts. */
export function kindOfPart(type: unknown): 'text' | 'reasoning' | 'refusal' | 'tool_call' | undefined {
  return kindsOfTypes.get(type as string)
}

/** Returns a list as it is, a single value as a list of one, and an absent value as an empty list. */
export function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : value === undefined || value === null || value === '' ? [] : [value]
}

/** The member names that wires and servers use for the arguments of a call. */
const argumentNames = ['arguments', 'input', 'parameters', 'args', 'params']

/**
 * Finds the arguments of a call, in the call or in its `function`, under any of `argumentNames` (ruling Y5). Empty
 * arguments are returned only if no others are found.
 */
export function argumentsIn(call: JsonObject): unknown {
  const fn = asObject(call['function'])
  const usual = fn?.['arguments']
  if (typeof usual === 'string' && !isEmptyArguments(usual)) return usual
  const holders = [fn, call]
  const found = holders
    .flatMap((holder) => argumentNames.map((name) => holder?.[name]))
    .filter((value) => value != null)
  return found.find((value) => !isEmptyArguments(value)) ?? found[0]
}

/** Members of a part that may hold its text. If a part has several of these members, the first in this order counts. */
const wordMembers = [
  ...['text', 'output_text', 'refusal', 'thinking', 'reasoning', 'reasoning_content', 'summary'],
  ...['transcript', 'content', 'value'],
]

/** The text of a string, of a list of strings, or of an object with text; undefined if none of it can be read. */
export function wordsIn(value: unknown, depth = 0): string | undefined {
  if (typeof value === 'string') return value
  if (depth > 4 || typeof value !== 'object' || value === null) return undefined
  if (Array.isArray(value)) {
    const words = value.map((one) => wordsIn(one, depth + 1)).filter((one) => one !== undefined)
    return words.length > 0 || value.length === 0 ? words.join('') : undefined
  }
  for (const name of wordMembers) {
    const words = wordsIn((value as JsonObject)[name], depth + 1)
    if (words !== undefined) return words
  }
  return undefined
}

/**
 * The parts of a content in any form: a string, a list of parts or strings, or a single part. Empty content has no
 * parts.
 */
export function readContent(content: unknown): ContentPart[] {
  const parts = listOf(content)
  const isEmpty = !Array.isArray(content) && parts.length > 0 && Object.keys(parts[0] as object).length === 0
  return isEmpty && typeof content === 'object' ? [] : parts.map(readPart)
}

function readPart(part: unknown): ContentPart {
  if (typeof part === 'string') return { kind: 'text', text: part }
  const object = asObject(part)
  if (!object) return { kind: 'unread' }
  const type = stringOf(object['type'])
  const kind = type === undefined ? (object['refusal'] ? 'refusal' : 'text') : kindsOfTypes.get(type)
  if (kind === 'tool_call') return { kind, call: object }
  const media = kind ? undefined : mediaOf(type ?? '')
  const words = (kind && wordsIn(object)) ?? (kind || media === 'audio' ? transcriptIn(object) : undefined)
  if (words !== undefined) return { kind: kind ?? 'text', text: words }
  return media ? { kind: 'media', media, source: sourceOf(object) } : { kind: 'unread' }
}

/** Returns the kind of media for the `type` of a part, an item or an event. */
export function mediaOf(type: string): MediaKind | undefined {
  return mediaKinds.find(([, words]) => words.test(type))?.[0]
}

/** Each pattern matches only whole words of a type, so that `profile` does not match as `file`. */
const mediaKinds: readonly (readonly [MediaKind, RegExp])[] = [
  ['image', /(?<![a-z])images?(?![a-z])/],
  ['audio', /(?<![a-z])audios?(?![a-z])/],
  ['video', /(?<![a-z])videos?(?![a-z])/],
  ['file', /(?<![a-z])(?:file|document|attachment)s?(?![a-z])/],
]

/**
 * Returns a key by which media that were received twice are recognised. Some servers repeat all media in the last
 * chunk.
 */
export function sourceOf(value: unknown): string {
  const source = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return source.length > 200 ? `${source.length} ${source.slice(-100)}` : source
}

/**
 * The transcript of an audio object, or of a list of audio objects; undefined if there is none. A plain string is the
 * sound itself, not a transcript.
 */
export function transcriptIn(audio: unknown): string | undefined {
  const words = listOf(audio).map((one) => {
    const object = asObject(one)
    return (
      object &&
      (wordsIn(object['transcript'] ?? object['text']) || transcriptIn(object['audio'] ?? object['input_audio']))
    )
  })
  return words.join('') || undefined
}

/** Whether arguments are empty: a blank text, or an object without members, which may be a mere placeholder. */
export function isEmptyArguments(value: unknown): boolean {
  return typeof value === 'string'
    ? /^\s*(?:\{\s*\}\s*)?$/.test(value)
    : typeof value === 'object' && Object.keys(value as object).length === 0
}
