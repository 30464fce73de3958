import { asObject, type JsonObject } from '../../bytes/json.ts'
import { isJsonObject } from '../../bytes/scan.ts'
import { isBlankJson } from '../../inference/filters/whole-calls.ts'
import {
  argumentsIn,
  argumentsText,
  kindOfPart,
  objectsOf,
  repeatsStart,
  stringOf,
  wordsIn,
} from '../answers/read-answer.ts'

/** A change of a block's content, as the messages wire writes it. */
export type ContentDelta = JsonObject & { type: string }

/** The content deltas by type: the types of blocks they may belong to, and the member that holds the content. */
export const contentDeltas: Readonly<Record<string, { blocks: RegExp; member: string }>> = {
  text_delta: { blocks: /^text$/, member: 'text' },
  citations_delta: { blocks: /^text$/, member: 'citation' },
  thinking_delta: { blocks: /^thinking$/, member: 'thinking' },
  signature_delta: { blocks: /^thinking$/, member: 'signature' },
  // For every tool call, whether the client, the provider or a remote server runs the tool.
  input_json_delta: { blocks: /tool_use$/, member: 'partial_json' },
}

/**
 * Content that an upstream put into the start of a text, thinking or call block. Clients discard content there, so it
 * is sent to them as deltas (message-wire 9.2, ruling Y3). Blocks of other types are not changed, because the vendor's
 * SDK reads their content from the start.
 */
export type StartContent = {
  /**
   * The members of the start event that are emptied before the client gets the event. For each member, the map has the
   * empty value as JSON.
   */
  emptied: Map<string, string>
  /** Deltas that clients get right after the start. They are kept, because the upstream may repeat them. */
  deltas: ContentDelta[]
  /** The arguments of a call in its start event, as text. They are used only if no delta has arguments (ruling Y4). */
  input: string
  signature: string
}

/** Reads a block's start. @param source returns the exact text of a call's input; called only if there is an input */
export function readStart(block: JsonObject, source: () => string | undefined): StartContent {
  const start: StartContent = { emptied: new Map(), deltas: [], input: '', signature: '' }
  const type = `${block['type']}`
  const empty = (member: string, isEmpty: boolean, text = '""') => isEmpty || start.emptied.set(member, text)
  if (type === 'text' || type === 'thinking') {
    empty(type, block[type] === '')
    const words = wordsIn(block)
    if (words) start.deltas.push({ type: `${type}_delta`, [type]: words })
  }
  if (type === 'text') {
    const citations = objectsOf(block['citations'])
    empty('citations', citations.length === 0, '[]')
    for (const citation of citations) start.deltas.push({ type: 'citations_delta', citation })
  } else if (type === 'thinking') {
    empty('signature', block['signature'] === '')
    start.signature = stringOf(block['signature']) ?? ''
  } else if (type.endsWith('tool_use')) {
    const object = asObject(block['input'])
    empty('input', object !== undefined && Object.keys(object).length === 0, '{}')
    const input = initialOf(block, source)
    // Some servers write an empty list instead of an empty object.
    if (isJsonObject(input)) start.input = input
    else if (input !== '[]' && !isBlankJson(input)) start.deltas.push({ type: 'input_json_delta', partial_json: input })
  }
  return start
}

/** This wire's type for each kind of block. Some servers use another wire's type, which SDKs ignore (ruling Y5). */
const ownTypes = { text: 'text', refusal: 'text', reasoning: 'thinking', tool_call: 'tool_use' } as const

/**
 * Returns the members that SDKs need and that the block lacks, or has in the form of another wire (rulings Y3, Y5).
 * @param block from a stream or from a whole message
 * @param mint makes an id for a call without one
 * @returns undefined for a call without a name, which no client can run
 */
export function missingInBlock(block: JsonObject, mint: () => string): Map<string, string> | undefined {
  const values = new Map<string, string>()
  const kind = kindOfPart(block['type'])
  if (kind === undefined) return values
  if (block['type'] !== ownTypes[kind]) values.set('type', JSON.stringify(ownTypes[kind]))
  if (kind !== 'tool_call') return values
  const name = stringOf(block['name']) ?? stringOf(asObject(block['function'])?.['name'])
  if (!name?.trim()) return undefined
  if (name !== block['name']) values.set('name', JSON.stringify(name))
  if (!stringOf(block['id'])) values.set('id', JSON.stringify(mint()))
  return values
}

/** Whether a block has no type, text, name or input. Such a block is left out if there are others (ruling Y5). */
export function saysNothing(block: unknown): boolean {
  const { type, name, input } = asObject(block) ?? {}
  return !stringOf(type) && (name ?? input) === undefined && wordsIn(block) === undefined
}

/** The content of a delta. `member` names the member that has the content. `value` is a text, or a citation. */
export type DeltaContent = { type: string; member: string; value: unknown }

/**
 * Reads the content of a delta. If the upstream omits the type, or writes the type of a block, the name of the delta's
 * member shows the type (ruling Y5). Returns undefined for a delta of another kind. `value` is undefined if the content
 * cannot be read.
 */
export function readDelta(delta: JsonObject): DeltaContent | undefined {
  const told = kindOfPart(delta['type']) === undefined ? stringOf(delta['type']) : undefined
  const type = told ?? Object.keys(contentDeltas).find((one) => contentDeltas[one]!.member in delta)
  if (type === undefined || !Object.hasOwn(contentDeltas, type)) return undefined
  const known = contentDeltas[type]!
  const said = delta[known.member] ?? ''
  if (type === 'citations_delta') return { type, member: known.member, value: said }
  return { type, member: known.member, value: type === 'input_json_delta' ? argumentsText(said) : wordsIn(said) }
}

/**
 * Whether a delta repeats content of the start event. Such a delta must be left out (ruling Y4). Any other delta
 * continues the content.
 */
export function isRepetition({ deltas }: StartContent, { type, member, value }: DeltaContent): boolean {
  const said = deltas.shift()
  if (said === undefined) return false
  if (said.type === type && repeatsStart(JSON.stringify(said[member]), JSON.stringify(value))) return true
  deltas.length = 0
  return false
}

/** Adds a piece to a signature. A piece that begins with the signature so far replaces it (ruling Y4). */
export function withSignature(before: string, piece: string): string {
  return piece.startsWith(before) ? piece : before + piece
}

/**
 * Returns the initial text of a call's input. If the input is a string or another non-object, it is kept, so that the
 * call fails visibly. Running the tool without its arguments would be worse (R-ARGS).
 * @param source returns the exact text of the input; called only if there is an input
 */
export function initialOf(block: JsonObject, source: () => string | undefined): string {
  const input = argumentsIn(block)
  const object = asObject(input)
  if (!object) return argumentsText(input)
  if (Object.keys(object).length === 0) return ''
  return (input === block['input'] ? source() : undefined) ?? argumentsText(object)
}
