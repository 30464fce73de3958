import { asObject, type JsonObject } from '../../bytes/json.ts'
import type { Profile } from '../../catalog/profile.ts'
import type { MediaKind } from '../../inference/answer.ts'
import type { JsonPatch } from '../answers/json-patch.ts'
import {
  argumentsIn,
  argumentsText,
  keptSources,
  mediaOf,
  objectsOf,
  readContent,
  sourceOf,
  stringOf,
  transcriptIn,
} from '../answers/read-answer.ts'
import { argumentsHolder } from './tool-calls.ts'

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
  /** The media. `source` identifies the medium. It is undefined for the transcript of an audio. */
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

/** Members of a plain delta (see `formOf`). The member `content` must also be a string. */
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

/** Whether a delta or a message has content. `unusual`: some content is not in the `usualMembers`, or is no string. */
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

/**
 * Returns the delta or message of a choice. Some upstreams put calls beside the delta, in the choice. If the delta has
 * no calls, the calls of the choice are added to the delta (ruling Y5).
 */
export function withCallsBeside(choice: JsonObject, own: JsonObject | undefined): JsonObject | undefined {
  const { tool_calls, function_call } = choice
  if (tool_calls == null && function_call == null) return own
  if (listOfCalls(own?.['tool_calls']).length > 0 || own?.['function_call'] != null) return own
  return { ...own, tool_calls, ...(function_call != null && { function_call }) }
}

/** Returns the calls of a list, or a single call as a list. A null in the list counts as an empty call. */
export function listOfCalls(value: unknown): unknown[] {
  if (Array.isArray(value)) return value.map((one: unknown) => one ?? {})
  const isEmpty = !value || (typeof value === 'object' && Object.keys(value).length === 0)
  return isEmpty ? [] : [value]
}

/** The member of a choice that has the content: `delta` in a chunk, `message` in a whole answer. */
type ChoiceKey = 'delta' | 'message'

/**
 * Rewrites a chunk or an answer so that its choices have the wire's own form (ruling Y5). SDKs ignore any other form,
 * and the client would see an empty answer. These other forms are accepted:
 * - `message` or `text` instead of `delta`, and the reverse
 * - calls that are members of the choice, or a single call instead of a list
 * - the name and arguments of a call in other members
 * @param hasOwn whether earlier deltas had content. A whole message then only repeats that content
 * @returns the JSON in latin1; undefined if nothing has to change
 */
export function withPlainChoices(patch: JsonPatch, key: ChoiceKey, hasOwn = false): string | undefined {
  const choices: unknown[] = Array.isArray(patch.value['choices']) ? patch.value['choices'] : []
  const said = choices.map((choice) => plainOf(asObject(choice), key, hasOwn))
  if (said.every((one) => one === undefined)) return undefined
  const sourceAt = keptSources(patch.bytes.toString(), 'arguments', (root) =>
    said
      .flatMap((one, place) => (one ? callsOf(asObject(asList(root['choices'])[place]) ?? {}, one.holder) : []))
      .map((call) => argumentsHolder(asObject(call) ?? {})),
  )
  let before = 0
  for (const [place, one] of said.entries()) {
    if (one === undefined) continue
    const { tool_calls: _, ...members } = one.content
    const first = before
    before += one.calls.length
    const calls = one.calls.map((call, at) => {
      const plain = isPlain(call) ? asObject(call) : plainCall(asObject(call) ?? {}, () => sourceAt(first + at))
      // The calls of a whole message have no index. In a delta they need one, so each call gets its position.
      return plain && key === 'delta' && one.holder === 'message' ? { index: at, ...plain } : (plain ?? call)
    })
    const plain = { ...members, ...(calls.length > 0 && { tool_calls: calls }) }
    const values = new Map<string, string | undefined>([[key, JSON.stringify(plain)]])
    for (const name of besides) if (name !== key) values.set(name, undefined)
    patch.set(['choices', `${place}`], values)
  }
  return patch.result().toString('latin1')
}

/** Members of a choice that are merged into its delta or message. */
const besides = ['delta', 'message', 'text', 'tool_calls', 'function_call']

type PlainContent = { content: JsonObject; calls: readonly unknown[]; holder: ChoiceKey }

/** Returns a choice's content in the wire's own form; undefined if the content has this form already. */
function plainOf(choice: JsonObject | undefined, key: ChoiceKey, hasOwn: boolean): PlainContent | undefined {
  if (choice === undefined) return undefined
  const own = asObject(choice[key])
  const merged = withCallsBeside(choice, own)
  if (merged !== undefined && formOf(merged) !== 'empty') {
    const calls = listOfCalls(merged['tool_calls'])
    const isRight =
      merged === own && (own['tool_calls'] == null || Array.isArray(own['tool_calls'])) && calls.every(isPlain)
    return isRight ? undefined : { content: merged, calls, holder: key }
  }
  const otherKey = key === 'delta' ? 'message' : 'delta'
  const words = [choice['text'], choice[key], choice[otherKey]].find((one) => stringOf(one))
  const other = asObject(choice[otherKey]) ?? (words === undefined ? {} : { content: words })
  const isEmpty = formOf(other) === 'empty' || hasOwn
  if (isEmpty) return own || key === 'message' ? undefined : { content: hasOwn ? {} : other, calls: [], holder: key }
  return { content: { ...own, ...other }, calls: listOfCalls(other['tool_calls']), holder: otherKey }
}

function callsOf(choice: JsonObject, holder: ChoiceKey): unknown[] {
  return listOfCalls(withCallsBeside(choice, asObject(choice[holder]))?.['tool_calls'])
}

function asList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

/**
 * Whether a call, or a piece of a call, has its name and arguments where SDKs look for them. If not, the caller moves
 * them there. The result is true for a value that is not an object, because it has nothing to move.
 */
function isPlain(value: unknown): boolean {
  const call = asObject(value)
  if (call === undefined || asObject(call['custom'])) return true
  const fn = asObject(call['function'])
  if (fn === undefined)
    return call['function'] === undefined && call['name'] === undefined && argumentsIn(call) === undefined
  const { arguments: args } = fn
  return args == null ? argumentsIn(call) === undefined : typeof args === 'string'
}

/**
 * Returns a call in the standard form of the wire.
 * @param source returns the source text of the arguments, for arguments that are an object
 */
function plainCall(call: JsonObject, source: () => string | undefined): JsonObject {
  const {
    function: fn,
    name,
    call_id,
    arguments: _,
    input: __,
    parameters: ___,
    args: ____,
    params: _____,
    ...others
  } = call
  const own = asObject(fn)
  const called = stringOf(own?.['name']) ?? stringOf(name) ?? stringOf(fn)
  const value = argumentsIn(call)
  const isKept = typeof value === 'object' && argumentsHolder(call)['arguments'] === value
  const text = value === undefined ? undefined : ((isKept ? source() : undefined) ?? argumentsText(value))
  const id = others['id'] ?? call_id
  return {
    ...others,
    ...(id !== undefined && { id }),
    function: { ...(called && { name: called }), ...(text !== undefined && { arguments: text }) },
  }
}
