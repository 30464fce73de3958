import {
  array,
  efforts,
  functionParameters,
  imageUrl,
  integer,
  isGiven,
  knownToolName,
  name,
  numberWithin,
  object,
  oneOf,
  optionalBoolean,
  type SimulatorJson,
  strictSchema,
  string,
} from '../check.ts'
import { rejectField } from '../prompt.ts'

/*
 * Refuses the requests that the vendor of the chat wire refuses (wires/chat-wire §2–5). Unknown top-level fields pass.
 * The tables come first, then the rules of fields, then those of the conversation.
 */

const partsOf: Record<string, string[]> = {
  system: ['text'],
  developer: ['text'],
  user: ['text', 'image_url', 'input_audio', 'file'],
  assistant: ['text', 'refusal'],
  tool: ['text'],
}
const stopsMax = 4
const toolsMax = 128

/** Checks the body of a chat request as the vendor does. @throws Rejection */
export function checkChat(body: SimulatorJson): void {
  checkFields(body)
  checkTools(body)
  const conversation = array(body['messages'], 'messages').map((value, index) => {
    const path = `messages[${index}]`
    const message = object(value, path)
    checkMessage(message, path)
    return message
  })
  if (conversation.length === 0) rejectField('messages', 'must hold at least one message', 'empty_array')
  checkPairs(conversation)
}

function checkFields(body: SimulatorJson): void {
  optionalBoolean(body['stream'], 'stream')
  if (isGiven(body['stream_options']) && body['stream'] !== true) {
    rejectField('stream_options', 'may only be given when stream is true')
  }
  for (const key of ['max_tokens', 'max_completion_tokens', 'n']) if (isGiven(body[key])) integer(body[key], key, 1)
  numberWithin(body['temperature'], 'temperature', 0, 2)
  numberWithin(body['top_p'], 'top_p', 0, 1)
  numberWithin(body['frequency_penalty'], 'frequency_penalty', -2, 2)
  numberWithin(body['presence_penalty'], 'presence_penalty', -2, 2)
  if (isGiven(body['reasoning_effort'])) oneOf(body['reasoning_effort'], 'reasoning_effort', efforts)
  if (isGiven(body['stop']) && typeof body['stop'] !== 'string') {
    const stops = array(body['stop'], 'stop')
    if (stops.length > stopsMax)
      rejectField('stop', `must hold at most ${stopsMax} sequences`, 'array_above_max_length')
    for (const [index, stop] of stops.entries()) string(stop, `stop[${index}]`)
  }
  if (isGiven(body['response_format'])) {
    const format = object(body['response_format'], 'response_format')
    const type = oneOf(format['type'], 'response_format.type', ['text', 'json_object', 'json_schema'])
    if (type === 'json_schema') {
      const inner = object(format['json_schema'], 'response_format.json_schema')
      name(inner['name'], 'response_format.json_schema.name', 64)
      if (isGiven(inner['schema'])) object(inner['schema'], 'response_format.json_schema.schema')
      if (inner['strict'] === true) strictSchema(inner['schema'], 'response_format.json_schema.schema')
    }
  }
}

function checkTools(body: SimulatorJson): void {
  const names = new Set<string>()
  if (isGiven(body['tools'])) {
    const tools = array(body['tools'], 'tools')
    if (tools.length === 0) rejectField('tools', 'must hold at least one tool', 'empty_array')
    if (tools.length > toolsMax) rejectField('tools', `must hold at most ${toolsMax} tools`, 'array_above_max_length')
    for (const [index, value] of tools.entries())
      names.add(checkTool(object(value, `tools[${index}]`), `tools[${index}]`))
    if (names.size < tools.length) rejectField('tools', 'tool names must be unique')
  }
  for (const key of ['tool_choice', 'parallel_tool_calls']) {
    if (isGiven(body[key]) && names.size === 0) rejectField(key, 'may only be given together with tools')
  }
  optionalBoolean(body['parallel_tool_calls'], 'parallel_tool_calls')
  const choice = body['tool_choice']
  if (!isGiven(choice)) return
  if (typeof choice === 'string') {
    oneOf(choice, 'tool_choice', ['none', 'auto', 'required'])
    return
  }
  const type = oneOf(object(choice, 'tool_choice')['type'], 'tool_choice.type', ['function', 'custom', 'allowed_tools'])
  const inner = object((choice as SimulatorJson)[type], `tool_choice.${type}`)
  if (type === 'allowed_tools') {
    oneOf(inner['mode'], 'tool_choice.allowed_tools.mode', ['auto', 'required'])
    array(inner['tools'], 'tool_choice.allowed_tools.tools')
  } else knownToolName(inner['name'], `tool_choice.${type}.name`, names, 'tool_choice')
}

function checkTool(tool: SimulatorJson, path: string): string {
  const type = oneOf(tool['type'], `${path}.type`, ['function', 'custom'])
  const inner = object(tool[type], `${path}.${type}`)
  const toolName = name(inner['name'], `${path}.${type}.name`, 64)
  functionParameters(inner['parameters'], inner['strict'] === true, `${path}.function.parameters`)
  return toolName
}

function checkMessage(message: SimulatorJson, path: string): void {
  const role = oneOf(message['role'], `${path}.role`, Object.keys(partsOf))
  const content = message['content']
  if (role === 'tool') string(message['tool_call_id'], `${path}.tool_call_id`)
  else if (isGiven(message['tool_call_id'])) rejectField(`${path}.tool_call_id`, 'belongs to messages of the role tool')
  if (role === 'assistant') {
    if (isGiven(message['tool_calls'])) checkCalls(message['tool_calls'], `${path}.tool_calls`)
    if (!isGiven(content)) {
      const isRefusal = typeof message['refusal'] === 'string'
      if (!isGiven(message['tool_calls']) && !isRefusal)
        rejectField(`${path}.content`, 'is required without tool_calls')
      return
    }
  } else if (isGiven(message['tool_calls']))
    rejectField(`${path}.tool_calls`, 'belongs to messages of the role assistant')
  if (typeof content === 'string') return
  const parts = array(content, `${path}.content`)
  if (parts.length === 0) rejectField(`${path}.content`, 'must not be an empty array', 'empty_array')
  for (const [index, value] of parts.entries()) {
    const place = `${path}.content[${index}]`
    const part = object(value, place)
    oneOf(part['type'], `${place}.type`, partsOf[role]!)
    checkPart(part, place)
  }
}

function checkPart(part: SimulatorJson, path: string): void {
  if (part['type'] === 'text') string(part['text'], `${path}.text`)
  if (part['type'] === 'refusal') string(part['refusal'], `${path}.refusal`)
  if (part['type'] === 'file') object(part['file'], `${path}.file`)
  if (part['type'] === 'input_audio') object(part['input_audio'], `${path}.input_audio`)
  if (part['type'] !== 'image_url') return
  imageUrl(object(part['image_url'], `${path}.image_url`)['url'], `${path}.image_url.url`, 'invalid_image_url')
}

function checkCalls(value: unknown, path: string): void {
  const calls = array(value, path)
  if (calls.length === 0) rejectField(path, 'must not be an empty array', 'empty_array')
  const ids = new Set<string>()
  for (const [index, one] of calls.entries()) {
    const call = object(one, `${path}[${index}]`)
    const id = string(call['id'], `${path}[${index}].id`)
    if (id === '' || ids.has(id)) rejectField(`${path}[${index}].id`, 'must be unique and not empty')
    ids.add(id)
    const type = oneOf(call['type'], `${path}[${index}].type`, ['function', 'custom'])
    const inner = object(call[type], `${path}[${index}].${type}`)
    name(inner['name'], `${path}[${index}].${type}.name`, 64)
    string(type === 'function' ? inner['arguments'] : inner['input'], `${path}[${index}].${type}.arguments`)
  }
}

/** Checks that every call has one tool message, directly after its assistant message. */
function checkPairs(conversation: SimulatorJson[]): void {
  let open = new Set<string>()
  for (const [index, message] of conversation.entries()) {
    const path = `messages[${index}]`
    if (message['role'] === 'tool') {
      const id = String(message['tool_call_id'])
      if (!open.delete(id))
        rejectField(path, `the tool message for "${id}" has no tool call in the assistant message before`)
      continue
    }
    rejectOpen(open, path)
    open = new Set(
      isGiven(message['tool_calls'])
        ? (message['tool_calls'] as SimulatorJson[]).map((call) => String(call['id']))
        : [],
    )
  }
  rejectOpen(open, 'messages')
}

function rejectOpen(open: Set<string>, path: string): void {
  if (open.size > 0) rejectField(path, `tool calls without a tool message right behind them: ${[...open].join(', ')}`)
}
