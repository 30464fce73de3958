import { GatewayError } from '../../errors.ts'
import type {
  DocumentPart,
  ImagePart,
  ModelPart,
  OperatorText,
  OperatorTurn,
  TextPart,
  Tool,
  Turn,
} from '../../inference/request.ts'
import { readFile, readImageUrl } from '../media.ts'
import {
  type Body,
  isAbsent,
  type Json,
  type Losses,
  optional,
  readArguments,
  readArray,
  readObject,
  readString,
  refusals,
  refuse,
} from '../reading.ts'
import type { DecodeContext } from '../wire.ts'
import { plainNamespace, readTools } from './decode-tools.ts'

const param = 'input'

/** Records of work that a provider has done: nothing another model could be given (R-DROP). */
const providerWork = new Set<unknown>([
  'web_search_call',
  'file_search_call',
  'code_interpreter_call',
  'image_generation_call',
  'mcp_call',
  'mcp_list_tools',
  'mcp_approval_request',
  'mcp_approval_response',
])

/** Calls that the client itself executes with tools a translated model does not have, and what cannot be read at all. */
const refusedItems = new Set<unknown>([
  'custom_tool_call',
  'custom_tool_call_output',
  'local_shell_call',
  'local_shell_call_output',
  'shell_call',
  'shell_call_output',
  'computer_call',
  'computer_call_output',
  'apply_patch_call',
  'apply_patch_call_output',
  'tool_search_call',
  'tool_search_output',
  'compaction',
])

export type Conversation = { preamble: OperatorTurn[]; turns: Turn[]; tools: Tool[] }

/**
 * The conversation. A run of assistant-side items is one turn (the run rule of translation 2.6); operator messages
 * before the first other item are preamble (R-SYS 1); `additional_tools` items declare tools (ruling T11).
 */
export function readItems(body: Body, context: DecodeContext, losses: Losses): Conversation {
  const input = body.fields['input']
  const conversation: Conversation = { preamble: [], turns: [], tools: [] }
  if (typeof input === 'string') {
    conversation.turns.push({ by: 'user', parts: [{ type: 'text', text: input }] })
    return conversation
  }
  if (!Array.isArray(input)) refuse(param, '"input" must be a string or an array.')
  for (const entry of input) {
    const item = readObject(entry, param, 'each item')
    readItem(item, typeOf(item), conversation, { body, context, losses })
  }
  return conversation
}

/** Items without a type are messages if they have a role, references if they have no more than an id (ruling T11). */
function typeOf(item: Json): unknown {
  if (!isAbsent(item['type'])) return item['type']
  return isAbsent(item['role']) ? 'item_reference' : 'message'
}

type Reading = { body: Body; context: DecodeContext; losses: Losses }

function readItem(item: Json, type: unknown, into: Conversation, reading: Reading) {
  switch (type) {
    case 'message':
      readMessage(item, into, reading.losses)
      return
    case 'function_call':
      addModelParts(into, [readCall(item, reading.body)])
      return
    case 'function_call_output':
      into.turns.push({
        by: 'user',
        parts: [
          {
            type: 'tool_result',
            callId: readString(item['call_id'], param, '"call_id"'),
            parts: readParts(item['output'], '"output"')
              .map(readUserPart)
              .filter((part) => part.type !== 'text' || part.text !== ''),
            isError: false,
          },
        ],
      })
      return
    case 'reasoning':
      addModelParts(into, readReasoning(item, reading))
      return
    case 'additional_tools':
      for (const tool of readTools(readArray(item['tools'], param, '"tools"'), param, reading.body))
        into.tools.push(tool)
      return
    case 'item_reference':
      throw new GatewayError('unsupported_parameter', refusals.itemReference, { param })
  }
  if (refusedItems.has(type)) {
    refuse(
      param,
      '"input" has an item that this model cannot be given: calls of custom, shell, computer or patch tools and compacted history.',
    )
  }
  // An item kind we do not know is dropped where it is the assistant's own call, else refused (ruling T14).
  if (!providerWork.has(type) && !(typeof type === 'string' && type.endsWith('_call'))) {
    refuse(param, '"input" has an item of a type that this model cannot be given.')
  }
  reading.losses.add(param, 'dropped', 'a record of the provider’s own work')
}

function readMessage(item: Json, into: Conversation, losses: Losses) {
  const { role } = item
  switch (role) {
    case 'system':
    case 'developer': {
      const turn: OperatorTurn = { by: 'operator', level: role, texts: readTexts(item['content']) }
      if (into.turns.length > 0) into.turns.push(turn)
      else into.preamble.push(turn)
      return
    }
    case 'user':
      into.turns.push({ by: 'user', parts: readParts(item['content'], '"content"').map(readUserPart) })
      return
    case 'assistant':
      addModelParts(
        into,
        readParts(item['content'], '"content"').flatMap((part) => readModelPart(part, losses)),
      )
      return
  }
  refuse(param, '"input": "role" must be one of user, assistant, system, developer.')
}

/** Assistant-side items join the turn they follow directly. */
function addModelParts(into: Conversation, parts: ModelPart[]) {
  const last = into.turns.at(-1)
  if (last?.by === 'model') for (const part of parts) last.parts.push(part)
  else if (parts.length > 0) into.turns.push({ by: 'model', parts })
}

function readParts(content: unknown, what: string): Json[] {
  if (typeof content === 'string') return [{ type: 'input_text', text: content }]
  return readArray(content, param, `${what}, if no string,`).map((part) => readObject(part, param, 'each part'))
}

/** Clients mix the three names of text up; it is text all the same. */
const textTypes = new Set<unknown>(['input_text', 'output_text', 'text'])

function readTexts(content: unknown): OperatorText[] {
  return readParts(content, '"content"').map((part) => {
    if (!textTypes.has(part['type'])) refuse(param, '"input": system and developer messages have text parts only.')
    return { text: readString(part['text'], param, 'the text of a part') }
  })
}

function readUserPart(part: Json): TextPart | ImagePart | DocumentPart {
  if (textTypes.has(part['type'])) return { type: 'text', text: readString(part['text'], param, 'the text of a part') }
  if (part['type'] === 'input_image') {
    if (isAbsent(part['image_url'])) refuse(param, `"input": ${refusals.remoteFile}`)
    return readImageUrl(part['image_url'], param, part['detail'])
  }
  if (part['type'] === 'input_file') return readFile(part, param)
  refuse(param, '"input": a part has a type that this model cannot be given; text, images and files can.')
}

function readModelPart(part: Json, losses: Losses): ModelPart[] {
  if (textTypes.has(part['type']))
    return [{ type: 'text', text: readString(part['text'], param, 'the text of a part') }]
  if (part['type'] === 'refusal') return [{ type: 'refusal', text: readString(part['refusal'], param, '"refusal"') }]
  losses.add(param, 'dropped', 'an assistant part of a kind that only its provider knows')
  return []
}

function readCall(item: Json, body: Body): ModelPart {
  const namespace = optional(readString, item['namespace'], param, '"namespace"')
  return {
    type: 'tool_call',
    callId: readString(item['call_id'], param, '"call_id"'),
    name: readString(item['name'], param, '"name" of a function_call'),
    argumentsText: readArguments(body, item['arguments'], param),
    ...(namespace && namespace !== plainNamespace ? { namespace } : {}),
  }
}

/** R-HIST: the text is for models that want theirs back, the envelope opens only for the account and model it is of. */
function readReasoning(item: Json, { context, losses }: Reading): ModelPart[] {
  const texts = (list: unknown, what: string) =>
    (optional(readArray, list, param, what) ?? []).map((entry) =>
      readString(readObject(entry, param, what)['text'], param, 'the text of a reasoning item'),
    )
  const summary = texts(item['summary'], '"summary"')
  const text = (summary.length > 0 ? summary : texts(item['content'], '"content"')).join('\n\n')
  const envelope = optional(readString, item['encrypted_content'], param, '"encrypted_content"')
  const sealed = envelope ? context.unseal(envelope) : undefined
  if (sealed) return [{ type: 'reasoning', text, sealed }]
  if (envelope) losses.add(param, 'dropped', 'sealed reasoning of another model')
  return text ? [{ type: 'reasoning', text }] : []
}
