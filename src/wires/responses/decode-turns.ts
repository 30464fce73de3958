import { joinTexts } from '../../bytes/json-source.ts'
import { splitPreamble } from '../../inference/normalise.ts'
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
import { plainNamespace, readFormat } from '../requests/decode-tools.ts'
import type { Losses } from '../requests/losses.ts'
import { readFile, readImageUrl } from '../requests/media.ts'
import {
  type Body,
  isAbsent,
  type Json,
  optional,
  optionalEach,
  readArguments,
  readArray,
  readContent,
  readLevel,
  readObject,
  readParts,
  readString,
  readText,
} from '../requests/read-value.ts'
import { refusals, refuse, wrongType } from '../requests/refusals.ts'
import type { DecodeContext } from '../wire.ts'
import { readTools } from './decode-tools.ts'
import { isReference, referenceRefused } from './stateless.ts'

const field = 'input'

/** Items that record the use of a provider's hosted tools. Other models cannot use these items (R-DROP). */
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

/** Items that are refused. Some are calls of client tools that only this wire has. The other items cannot be read. */
const refusedItems = new Set<string>([
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

type ResponsesConversation = { preamble: OperatorTurn[]; turns: Turn[]; tools: Tool[] }

/**
 * Reads the conversation. Consecutive items of the assistant form one turn (translation 2.6). Operator messages before
 * any other item are the preamble (R-SYS 1). `additional_tools` items declare tools (ruling T11).
 * `configuration_update` items change fields of the body (ruling Y11).
 */
export function readTurns(body: Body, context: DecodeContext, losses: Losses): ResponsesConversation {
  const input = body.fields[field]
  const read: ReadTurns = { turns: [], tools: [] }
  if (typeof input === 'string') {
    return {
      ...splitPreamble([{ by: 'user', parts: [{ type: 'text', text: readText(body, input, field) }] }]),
      tools: [],
    }
  }
  const reading: ItemContext = { body, context, losses }
  const items = readArray(input, field)
  for (let index = 0; index < items.length; index++) {
    const at = `${field}[${index}]`
    const item = readObject(items[index], at)
    // Only an item of type `item_reference`, or without a type, may refer to a stored item.
    const mayRefer = typeof item['type'] !== 'string' || item['type'] === 'item_reference'
    if (mayRefer && isReference((key) => [item[key]])) throw referenceRefused(index)
    readItem(item, at, read, reading)
  }
  return { ...splitPreamble(read.turns), tools: read.tools }
}

/** The turns and tools read so far. */
type ReadTurns = { turns: Turn[]; tools: Tool[] }

/** The facts that reading an item needs. */
type ItemContext = { body: Body; context: DecodeContext; losses: Losses }

function readItem(item: Json, at: string, into: ReadTurns, reading: ItemContext) {
  // An item without a type but with a role is a message (ruling T11).
  const type = isAbsent(item['type']) && !isAbsent(item['role']) ? 'message' : item['type']
  switch (type) {
    case 'message':
      readMessage(item, at, into, reading)
      return
    case 'function_call':
      addModelParts(into, [readCall(item, at, reading.body)])
      return
    case 'function_call_output': {
      const callId = readString(item['call_id'], `${at}.call_id`)
      const parts = readContent(reading.body, item['output'], `${at}.output`, 'input_text', readUserPart)
      const said = parts.every(saysSomething) ? parts : parts.filter(saysSomething)
      into.turns.push({ by: 'user', parts: [{ type: 'tool_result', callId, parts: said, isError: false }] })
      return
    }
    case 'reasoning':
      addModelParts(into, readReasoning(item, at, reading))
      return
    case 'additional_tools':
      for (const tool of readTools(item['tools'], `${at}.tools`, reading.body)) into.tools.push(tool)
      return
    case 'configuration_update':
      readUpdate(item, at, reading)
      return
  }
  if (typeof type === 'string' && refusedItems.has(type)) {
    refuse(at, `this model cannot be given an item of type ${type}: remove it, or name a model of this wire.`)
  }
  // An item of unknown kind is dropped if it is a call by the assistant, else refused (ruling T14).
  if (!providerWork.has(type) && !(typeof type === 'string' && type.endsWith('_call'))) {
    refuse(
      at,
      'this model cannot be given an item of this type; messages, function calls and their outputs can be sent.',
    )
  }
  reading.losses.add(field, 'dropped', 'a record of the provider’s own work')
}

/**
 * The settings that an item of type `configuration_update` may change. Sources: `ResponseConfigurationUpdateItemParam`
 * of the vendor's SDK; verbosity: ruling Y11.
 */
const updatable = new Map<string, Readonly<Record<string, (value: unknown, at: string, body: Body) => unknown>>>([
  ['reasoning', { effort: readLevel }],
  ['text', { verbosity: readString, format: (value, at, body) => readFormat(value, at, body, 'beside') }],
])

/**
 * Reads the settings of an update item. They apply to everything after the item, and so to the answer. The last value
 * replaces the value in the request (ruling Y11).
 */
function readUpdate(item: Json, at: string, { body, losses }: ItemContext) {
  for (const [name, value] of Object.entries(item)) {
    if (name === 'type' || name === 'id' || isAbsent(value)) continue
    const readers = updatable.get(name)
    const given = readers ? readObject(value, `${at}.${name}`) : { [name]: value }
    for (const [member, setting] of Object.entries(given)) {
      const read = readers && Object.hasOwn(readers, member) ? readers[member] : undefined
      if (isAbsent(setting)) continue
      if (!read) losses.add(field, 'dropped', 'a setting of a configuration update that is not known here')
      else {
        read(setting, `${at}.${name}.${member}`, body)
        body.fields[name] = { ...optional(readObject, body.fields[name], name), [member]: setting }
      }
    }
  }
}

function readMessage(item: Json, at: string, into: ReadTurns, { body, losses }: ItemContext) {
  const { role, content } = item
  const place = `${at}.content`
  switch (role) {
    case 'system':
    case 'developer': {
      const texts = readContent(body, content, place, 'input_text', readOperatorText)
      into.turns.push({ by: 'operator', level: role, texts })
      return
    }
    case 'user':
      into.turns.push({ by: 'user', parts: readContent(body, content, place, 'input_text', readUserPart) })
      return
    case 'assistant':
      addModelParts(
        into,
        readParts(body, content, place, 'input_text', (part, where) => readModelPart(part, where, body, losses)),
      )
      return
  }
  throw wrongType(`${at}.role`, 'one of user, assistant, system, developer')
}

/** Adds parts of the assistant to the last turn, if that is a model turn. Otherwise they become a new turn. */
function addModelParts(into: ReadTurns, parts: ModelPart[]) {
  const last = into.turns.at(-1)
  if (last?.by === 'model') for (const part of parts) last.parts.push(part)
  else if (parts.length > 0) into.turns.push({ by: 'model', parts })
}

/** The three type names of text. Clients mix them up, and all mean text. */
const textTypes = new Set<unknown>(['input_text', 'output_text', 'text'])

function readOperatorText(part: Json, at: string, body: Body): OperatorText {
  if (!textTypes.has(part['type'])) refuse(at, 'system and developer messages have text parts only.')
  return { text: readText(body, part['text'], `${at}.text`) }
}

function readUserPart(part: Json, at: string, body: Body): TextPart | ImagePart | DocumentPart {
  if (textTypes.has(part['type'])) return { type: 'text', text: readText(body, part['text'], `${at}.text`) }
  if (part['type'] === 'input_image') {
    if (isAbsent(part['image_url'])) refuse(at, refusals.remoteFile)
    const detail = optional(readString, part['detail'], `${at}.detail`)
    return readImageUrl(part['image_url'], `${at}.image_url`, at, detail)
  }
  if (part['type'] === 'input_file') return readFile(part, at, at)
  refuse(at, 'this model cannot be given a part of this type; text, images and files can be sent.')
}

function saysSomething(part: TextPart | ImagePart | DocumentPart): boolean {
  return part.type !== 'text' || part.text !== ''
}

function readModelPart(part: Json, at: string, body: Body, losses: Losses): ModelPart[] {
  if (textTypes.has(part['type'])) return [{ type: 'text', text: readText(body, part['text'], `${at}.text`) }]
  if (part['type'] === 'refusal') return [{ type: 'refusal', text: readString(part['refusal'], `${at}.refusal`) }]
  losses.add(field, 'dropped', 'an assistant part of a kind that only its provider knows')
  return []
}

function readCall(item: Json, at: string, body: Body): ModelPart {
  const namespace = optional(readString, item['namespace'], `${at}.namespace`)
  const call: ModelPart = {
    type: 'tool_call',
    callId: readString(item['call_id'], `${at}.call_id`),
    name: readString(item['name'], `${at}.name`),
    argumentsText: readArguments(body, item['arguments'], `${at}.arguments`),
  }
  return namespace && namespace !== plainNamespace ? { ...call, namespace } : call
}

/**
 * Reads reasoning (R-HIST). The text is for models that want their own text back. The envelope in `encrypted_content`
 * opens only for the account and model for which it was made.
 */
function readReasoning(item: Json, at: string, { body, context, losses }: ItemContext): ModelPart[] {
  const textsOf = (key: string) =>
    optionalEach(item[key], `${at}.${key}`, (part, place) =>
      readText(body, readObject(part, place)['text'], `${place}.text`),
    )
  const summary = textsOf('summary')
  const text = joinTexts(summary.length > 0 ? summary : textsOf('content'), '\n\n')
  const envelope = optional(readString, item['encrypted_content'], `${at}.encrypted_content`)
  const sealed = envelope ? context.unseal(envelope) : undefined
  if (sealed) return [{ type: 'reasoning', text, sealed }]
  if (envelope) losses.add(field, 'dropped', 'sealed reasoning of another model')
  return text ? [{ type: 'reasoning', text }] : []
}
