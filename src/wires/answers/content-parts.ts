import { asObject, type JsonObject } from '../../bytes/json.ts'
import type { MediaKind } from '../../inference/answer.ts'
import { stringOf } from './read-answer.ts'

/**
 * A part of a model's content: text, a call, media that client wires cannot carry in an answer, or an unreadable
 * part.
 */
type ContentPart =
  | { kind: 'text' | 'reasoning' | 'refusal'; text: string }
  | { kind: 'tool_call'; call: JsonObject }
  | { kind: 'media'; media: MediaKind; source: string }
  | { kind: 'unread' }

/** The kind of a part by its type. All wires share the table, since some servers use another wire's types (ruling Y5). */
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
 * Returns the arguments of a call. They stand under any of these names, in the call or in its `function` (ruling Y5).
 * Empty arguments are returned only if the call has no others.
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

/** Members that hold the text of a part. The first member present counts. */
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

/** The kind of media that the type of a part, an item or an event means. */
export function mediaOf(type: string): MediaKind | undefined {
  return mediaKinds.find(([, words]) => words.test(type))?.[0]
}

/** Matches whole words of a type, so that `profile` is no `file`. */
const mediaKinds: readonly (readonly [MediaKind, RegExp])[] = [
  ['image', /(?<![a-z])images?(?![a-z])/],
  ['audio', /(?<![a-z])audios?(?![a-z])/],
  ['video', /(?<![a-z])videos?(?![a-z])/],
  ['file', /(?<![a-z])(?:file|document|attachment)s?(?![a-z])/],
]

/** Returns a key by which media received twice are recognised: some servers repeat all media in the last chunk. */
export function sourceOf(value: unknown): string {
  const source = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return source.length > 200 ? `${source.length} ${source.slice(-100)}` : source
}

/**
 * The transcript of audio, or of a list of audio; undefined if there is none. A plain string is the sound itself, not
 * a transcript.
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

/**
 * Whether arguments are empty: no text, or an object without members, which may be a placeholder for later arguments.
 */
export function isEmptyArguments(value: unknown): boolean {
  return typeof value === 'string'
    ? /^\s*(?:\{\s*\})?\s*$/.test(value)
    : typeof value === 'object' && Object.keys(value as object).length === 0
}
