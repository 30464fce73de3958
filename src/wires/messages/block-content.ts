import { asObject, type JsonObject } from '../../bytes/json.ts'
import { isJsonObject } from '../../bytes/scan.ts'
import { isBlankJson } from '../../inference/filters/whole-calls.ts'
import { argumentsIn, kindOfPart, wordsIn } from '../answers/content-parts.ts'
import { argumentsText, objectsOf, repeatsStart, stringOf } from '../answers/read-answer.ts'

/** A delta of a block's content in the words of this wire. */
export type ContentDelta = JsonObject & { type: string }

/** The deltas that bring content, by type: the blocks that they belong to, and their member that has it. */
export const contentDeltas: Readonly<Record<string, { blocks: RegExp; member: string }>> = {
  text_delta: { blocks: /^text$/, member: 'text' },
  citations_delta: { blocks: /^text$/, member: 'citation' },
  thinking_delta: { blocks: /^thinking$/, member: 'thinking' },
  signature_delta: { blocks: /^thinking$/, member: 'signature' },
  // Calls of the client's tools, of the provider's and of remote servers.
  input_json_delta: { blocks: /tool_use$/, member: 'partial_json' },
}

/**
 * The content in the start of a block, which belongs into deltas (message-wire 9.2, ruling Y3). Clients empty every start.
 * The start content of other blocks stays there: the vendor's own SDK reads it.
 */
export type StartContent = {
  /** The members that have to be emptied, as JSON. */
  emptied: Map<string, string>
  /** Content that comes right after the start, until a delta of the upstream was compared with it. */
  deltas: ContentDelta[]
  /** Whole arguments of a call, as the model wrote them: they count if no delta brings any (ruling Y4). */
  input: string
  signature: string
}

/** @param source gives the exact text of a call's input; it is asked for only if there is some */
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
    // A server that knows no empty object writes an empty list.
    if (isJsonObject(input)) start.input = input
    else if (input !== '[]' && !isBlankJson(input)) start.deltas.push({ type: 'input_json_delta', partial_json: input })
  }
  return start
}

/** This wire's names for blocks that servers call by those of another wire (ruling Y5): SDKs pass over these. */
const ownTypes = { text: 'text', refusal: 'text', reasoning: 'thinking', tool_call: 'tool_use' } as const

/**
 * The members of a block that SDKs need, if they are missing or have a name of another wire (rulings Y3, Y5). The block is of a
 * stream or of a whole message.
 * @param mint an id for a call that has none
 * @returns undefined if it is a call without a name, which nobody can run
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

/** The content of a delta: its value as a text, or a citation. */
export type DeltaContent = { type: string; member: string; value: unknown }

/**
 * The content of a delta, whose type is known by its member if the upstream leaves it out (ruling Y5). Undefined for other
 * kinds; the value is undefined if it cannot be read.
 */
export function readDelta(delta: JsonObject): DeltaContent | undefined {
  const type = stringOf(delta['type']) ?? Object.keys(contentDeltas).find((one) => contentDeltas[one]!.member in delta)
  if (type === undefined || !Object.hasOwn(contentDeltas, type)) return undefined
  const known = contentDeltas[type]!
  const said = delta[known.member] ?? ''
  if (type === 'citations_delta') return { type, member: known.member, value: said }
  return { type, member: known.member, value: type === 'input_json_delta' ? argumentsText(said) : wordsIn(said) }
}

/** Whether a delta says what the start has said already, so that it is left out (ruling Y4). Anything else continues it. */
export function isRepetition({ deltas }: StartContent, { type, member, value }: DeltaContent): boolean {
  const said = deltas.shift()
  if (said === undefined) return false
  if (said.type === type && repeatsStart(JSON.stringify(said[member]), JSON.stringify(value))) return true
  deltas.length = 0
  return false
}

/** A signature with one more piece. A piece that begins with all that came is the signature so far, said again (ruling Y4). */
export function withSignature(before: string, piece: string): string {
  return piece.startsWith(before) ? piece : before + piece
}

/**
 * A call's input as it began. Arguments that came as a text are that text. An input that is no object stays as it is. A
 * tool that runs without its arguments is worse than one that does not run (R-ARGS).
 * @param source gives its exact text; it is asked for only if there is some
 */
export function initialOf(block: JsonObject, source: () => string | undefined): string {
  const input = argumentsIn(block)
  const object = asObject(input)
  if (!object) return argumentsText(input)
  if (Object.keys(object).length === 0) return ''
  return (input === block['input'] ? source() : undefined) ?? argumentsText(object)
}
