import type { ClientWire } from './wires.ts'

/** A call of a tool by the model. @property input usually JSON; while it streams, the part that has arrived */
export type ToolCall = { place: string; name: string; id: string; input: string }

/** The parts of an answer that people read. For a stream, these are the parts that have arrived so far. */
export type AnswerParts = { text: string; reasoning: string; calls: readonly ToolCall[] }

export const noParts: AnswerParts = { text: '', reasoning: '', calls: [] }

/** Adds one event of a stream to the parts. Events without such a part, and data of an unknown form, change nothing. */
export function addEvent(wire: ClientWire, parts: AnswerParts, data: unknown): AnswerParts {
  return eventReaders[wire](parts, bag(data))
}

/** Reads the parts of an answer that is not a stream. */
export function partsOf(wire: ClientWire, body: unknown): AnswerParts {
  return bodyReaders[wire](bag(body))
}

/** An object of an answer. Upstreams may send anything, so each member is checked when it is read. */
type Bag = Readonly<Record<string, unknown>>

type EventReader = (parts: AnswerParts, event: Bag) => AnswerParts

const eventReaders: Readonly<Record<ClientWire, EventReader>> = {
  messages(parts, { index, content_block, delta }) {
    const place = String(index)
    const begun = bag(content_block)
    if (isCall(begun['type'])) return withCall(parts, readCall(place, { ...begun, input: filled(begun['input']) }))
    const { thinking, text, partial_json } = { ...begun, ...bag(delta) } as Bag
    if (typeof partial_json === 'string') return extended(parts, place, partial_json)
    return said(parts, text, thinking)
  },
  chat(parts, { choices }) {
    return bags(choices).reduce<AnswerParts>((before, choice, at) => {
      const { index = at, delta } = choice
      return withChatMessage(before, bag(delta), index)
    }, parts)
  },
  responses(parts, { type, delta, output_index, item }) {
    const place = String(output_index)
    const kind = String(type)
    const held = bag(item)
    if (isCall(held['type'])) return withCall(parts, readCall(place, held))
    if (typeof delta !== 'string') return parts
    if (/output_text|refusal/.test(kind)) return said(parts, delta)
    if (/reasoning/.test(kind)) return said(parts, undefined, delta)
    return extended(parts, place, delta)
  },
}

const bodyReaders: Readonly<Record<ClientWire, (body: Bag) => AnswerParts>> = {
  messages: ({ content }) =>
    bags(content).reduce<AnswerParts>((parts, block, at) => {
      if (isCall(block['type'])) return withCall(parts, readCall(String(at), block))
      return said(parts, block['text'], block['thinking'])
    }, noParts),
  chat: ({ choices }) =>
    bags(choices).reduce<AnswerParts>(
      (parts, choice, at) => withChatMessage(parts, bag(choice['message']), choice['index'] ?? at),
      noParts,
    ),
  responses: ({ output }) =>
    bags(output).reduce<AnswerParts>((parts, item, at) => {
      if (isCall(item['type'])) return withCall(parts, readCall(String(at), item))
      const isReasoning = item['type'] === 'reasoning'
      return [...bags(item['summary']), ...bags(item['content'])].reduce<AnswerParts>((before, { text, refusal }) => {
        return isReasoning ? said(before, undefined, text) : said(before, text ?? refusal)
      }, parts)
    }, noParts),
}

/** Adds a message of the chat wire, or a delta of one. The text of further choices is not shown; their calls are. */
function withChatMessage(parts: AnswerParts, message: Bag, choice: unknown): AnswerParts {
  const { content, refusal, reasoning_content, reasoning, tool_calls, function_call } = message
  const before = choice === 0 ? said(parts, content || refusal, reasoning_content ?? reasoning) : parts
  const older: Bag[] = function_call ? [{ index: -1, function: function_call }] : []
  return [...bags(tool_calls), ...older].reduce<AnswerParts>((now, call, at) => {
    const place = `${choice} ${call['index'] ?? at}`
    const piece = readCall(place, { id: call['id'], ...bag(call['function'] ?? call['custom']) })
    const known = now.calls.find((one) => one.place === place)
    // A delta repeats neither the name nor the id, and continues the input.
    return withCall(now, known ? { ...known, input: known.input + piece.input } : piece)
  }, before)
}

/** Whether a type is one of a call, on any wire: `tool_use`, `server_tool_use`, `function_call`, `web_search_call`… */
function isCall(type: unknown): boolean {
  return typeof type === 'string' && /(tool_use|_call)$/.test(type)
}

/** The members that may have the input of a call, depending on its kind. */
const inputs = ['arguments', 'input', 'code', 'action', 'queries'] as const

function readCall(place: string, call: Bag): ToolCall {
  const input = inputs.map((name) => call[name]).find((value) => value !== undefined && value !== null) ?? ''
  return {
    place,
    name: String(call['name'] ?? call['type'] ?? 'tool'),
    id: String(call['call_id'] ?? call['id'] ?? ''),
    input: typeof input === 'string' ? input : JSON.stringify(input),
  }
}

/**
 * Returns the input unless it is empty: a stream of the messages wire begins a call with an empty input, which deltas
 * replace.
 */
function filled(input: unknown): unknown {
  return Object.keys(bag(input)).length === 0 ? undefined : input
}

function withCall({ calls, ...parts }: AnswerParts, call: ToolCall): AnswerParts {
  const isKnown = calls.some(({ place }) => place === call.place)
  return { ...parts, calls: isKnown ? calls.map((one) => (one.place === call.place ? call : one)) : [...calls, call] }
}

function extended(parts: AnswerParts, place: string, more: string): AnswerParts {
  const call = parts.calls.find((one) => one.place === place)
  return call ? withCall(parts, { ...call, input: call.input + more }) : parts
}

function said(parts: AnswerParts, text: unknown, reasoning?: unknown): AnswerParts {
  return {
    ...parts,
    text: parts.text + (typeof text === 'string' ? text : ''),
    reasoning: parts.reasoning + (typeof reasoning === 'string' ? reasoning : ''),
  }
}

function bag(value: unknown): Bag {
  return typeof value === 'object' && value !== null ? (value as Bag) : {}
}

function bags(value: unknown): Bag[] {
  return Array.isArray(value) ? value.map(bag) : []
}
