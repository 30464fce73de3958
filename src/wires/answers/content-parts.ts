import { asObject, type JsonObject } from '../../bytes/json.ts'
import type { MediaKind } from '../../inference/answer.ts'
import { stringOf } from './read-answer.ts'

/** A piece of a model's content: words, a call, media that no wire of ours carries in an answer, or what cannot be read. */
type ContentPart =
  | { kind: 'text' | 'reasoning' | 'refusal'; text: string }
  | { kind: 'tool_call'; call: JsonObject }
  | { kind: 'media'; media: MediaKind; source: string }
  | { kind: 'unread' }

/** The kinds of parts by their types on all wires: servers outside the dialect mix them up (ruling Y5). */
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

/** The kind of a part of this type; undefined for media, and for what cannot be read. */
export function kindOfPart(type: unknown): 'text' | 'reasoning' | 'refusal' | 'tool_call' | undefined {
  return kindsOfTypes.get(type as string)
}

/** A list, or a single one instead of it; empty for nothing. */
export function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : value === undefined || value === null || value === '' ? [] : [value]
}

/** The names that wires and servers have for the arguments of a call. */
const argumentNames = ['arguments', 'input', 'parameters', 'args', 'params']

/** The arguments of a call, in its function or beside it, under any name (ruling Y5). Empty ones count if there are no others. */
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

/** The members that hold the words of a part. The first that is there counts. */
const wordMembers = [
  ...['text', 'output_text', 'refusal', 'thinking', 'reasoning', 'reasoning_content', 'summary'],
  ...['transcript', 'content', 'value'],
]

/** The words of a text, a list of texts, or an object that has one; undefined if nothing of it is known. */
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

/** The parts of a content in any form: a text, a list of parts or texts, or a single part. An empty one has none. */
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

/** The kind of media that a type of a part, an item or an event names. */
export function mediaOf(type: string): MediaKind | undefined {
  return mediaKinds.find(([, words]) => words.test(type))?.[0]
}

/** By whole words of a type: a profile is no file. */
const mediaKinds: readonly (readonly [MediaKind, RegExp])[] = [
  ['image', /(?<![a-z])images?(?![a-z])/],
  ['audio', /(?<![a-z])audios?(?![a-z])/],
  ['video', /(?<![a-z])videos?(?![a-z])/],
  ['file', /(?<![a-z])(?:file|document|attachment)s?(?![a-z])/],
]

/** A key of media by which repetitions are found: some servers send them again in the last chunk. */
export function sourceOf(value: unknown): string {
  const source = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return source.length > 200 ? `${source.length} ${source.slice(-100)}` : source
}

/** The words of audio, or of a list of it, where an object tells them: any other text is the sound itself. Undefined for none. */
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

/** Whether arguments say nothing: no text, or an object without members, which may be a placeholder for real ones. */
export function isEmptyArguments(value: unknown): boolean {
  return typeof value === 'string'
    ? /^\s*(?:\{\s*\})?\s*$/.test(value)
    : typeof value === 'object' && Object.keys(value as object).length === 0
}
