import { asObject, type JsonObject } from '../../bytes/json.ts'
import type { Profile } from '../../catalog/profile.ts'
import type { MediaKind } from '../../inference/answer.ts'
import { mediaOf, objectsOf, readContent, sourceOf, stringOf, transcriptIn } from '../answers/read-answer.ts'

/**
 * The text of the first reasoning field with text. Some servers repeat it in a second field, which must not count
 * twice.
 */
export function reasoningOf(delta: JsonObject, field: Profile['chat']['reasoningField']): string {
  const own = field === 'auto' || field === 'details' ? undefined : stringOf(delta[field])
  return (
    own ||
    (field === 'details' ? detailsOf(delta) : '') ||
    stringOf(delta['reasoning_content']) ||
    stringOf(delta['reasoning']) ||
    detailsOf(delta) ||
    stringOf(delta['thinking']) ||
    ''
  )
}

function detailsOf(delta: JsonObject): string {
  let text = ''
  for (const detail of objectsOf(delta['reasoning_details']))
    text += stringOf(detail['text']) ?? stringOf(detail['summary']) ?? ''
  return text
}

/**
 * The choices of a chunk or an answer. A single choice instead of a list is accepted (ruling Y5). An empty object has
 * no choice.
 */
export function choicesOf({ choices }: JsonObject): JsonObject[] {
  return Array.isArray(choices) ? objectsOf(choices) : objectsOf([choices]).filter((one) => Object.keys(one).length > 0)
}

/** The content of a delta or a message, read from any unambiguous form (ruling Y5). */
type ChatContent = {
  text: string
  reasoning: string
  refusal: string
  /** Media, each with a key that identifies it. The entry for a transcript of audio has no key. */
  media: { media: MediaKind; source: string | undefined }[]
  calls: JsonObject[]
  isUnread: boolean
}

function plainText(text: string): ChatContent {
  return { text, reasoning: '', refusal: '', media: [], calls: [], isUnread: false }
}

/** Reads content that is a text, or parts. Parts may be text, reasoning, media or calls. */
export function partsOf(content: unknown): ChatContent {
  if (typeof content === 'string') return plainText(content)
  const said = plainText('')
  for (const part of readContent(content)) {
    if (part.kind === 'media') said.media.push(part)
    else if (part.kind === 'tool_call') said.calls.push(part.call)
    else if (part.kind === 'unread') said.isUnread = true
    else said[part.kind] += part.text
  }
  return said
}

/** Members of a message that hold media, beside its content (OpenRouter, Gemini, audio models). */
const mediaMembers = ['images', 'image', 'audio', 'videos', 'video', 'files', 'file'] as const

/** Reads the content of a delta or a message, including other members with text or media. */
export function contentOf(delta: JsonObject): ChatContent {
  const said = partsOf(delta['content'])
  if (said.text === '') said.text = stringOf(delta['text']) ?? stringOf(delta['output_text']) ?? ''
  for (const member of mediaMembers) {
    const value = delta[member]
    if (value === undefined || value === null) continue
    const transcript = member === 'audio' ? transcriptIn(value) : undefined
    const media = mediaOf(member)!
    // Audio without `data` is only an id or an end marker, which is no media.
    const isMedia = typeof value === 'string' ? value !== '' : member === 'audio' ? asObject(value)?.['data'] : true
    const pieces: unknown[] = Array.isArray(value) ? value : isMedia ? [member] : []
    for (const piece of pieces) said.media.push({ media, source: sourceOf(piece) })
    if (!transcript) continue
    said.text ||= transcript
    said.media.push({ media, source: undefined })
  }
  return said
}

/** Members that need no special reading; `content` only if it is a string. */
const usualMembers = new Set(
  ['content', 'refusal', 'tool_calls', 'function_call'].concat([
    'reasoning_content',
    'reasoning',
    'reasoning_details',
    'thinking',
  ]),
)

/** Members that contain nothing of the answer itself. */
const silentMembers = new Set(['role', 'name', 'annotations'])

/** Whether a delta or a message has content, and whether this content needs special reading. */
export function formOf(delta: JsonObject): 'empty' | 'plain' | 'unusual' {
  let form: 'empty' | 'plain' = 'empty'
  for (const name in delta) {
    const value = delta[name]
    if (value === null || value === undefined || value === '' || silentMembers.has(name)) continue
    if (typeof value === 'object' && Object.keys(value).length === 0) continue
    if (!usualMembers.has(name) || (name === 'content' && typeof value !== 'string')) return 'unusual'
    form = 'plain'
  }
  return form
}

/** Returns the delta or message of a choice. If it has no calls, calls beside it in the choice are added (ruling Y5). */
export function withCallsBeside(choice: JsonObject, own: JsonObject | undefined): JsonObject | undefined {
  const { tool_calls, function_call } = choice
  if (tool_calls == null && function_call == null) return own
  if (listOfCalls(own?.['tool_calls']).length > 0 || own?.['function_call'] != null) return own
  return { ...own, tool_calls, ...(function_call != null && { function_call }) }
}

/** The calls of a list, or a single call instead of a list. A null in the list counts as a call without content. */
export function listOfCalls(value: unknown): unknown[] {
  if (Array.isArray(value)) return value.map((one: unknown) => one ?? {})
  const isEmpty = !value || (typeof value === 'object' && Object.keys(value).length === 0)
  return isEmpty ? [] : [value]
}
