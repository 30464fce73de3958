import {
  array,
  efforts,
  functionParameters,
  imageUrl,
  integer,
  isGiven,
  knownToolName,
  name,
  newToolName,
  numberWithin,
  object,
  oneOf,
  optionalBoolean,
  type SimulatorJson,
  strictSchema,
  string,
} from '../check.ts'
import { Rejection, rejectField } from '../prompt.ts'
import { isSealOf } from '../seal.ts'

/*
 * Refuses the requests that the vendor of the responses wire refuses (wires/responses-wire §2–6). Nothing is stored.
 * Unknown top-level fields pass.
 */

const outputTokensMin = 16

/** Checks the body of a request of the responses wire. @throws Rejection */
export function checkResponses(body: SimulatorJson): void {
  checkStateless(body)
  checkFields(body)
  checkTools(body)
  if (typeof body['input'] === 'string') return
  const input = array(body['input'], 'input')
  if (input.length === 0) rejectField('input', 'must hold at least one item', 'empty_array')
  const items = input.map((value, index) => {
    const item = object(value, `input[${index}]`)
    checkItem(item, `input[${index}]`)
    return item
  })
  checkIds(items)
  checkPairs(items)
  checkReasoningOrder(items)
}

/** Refuses references to stored objects, because nothing is stored. */
function checkStateless(body: SimulatorJson): void {
  if (isGiven(body['previous_response_id'])) {
    rejectField('previous_response_id', 'no response is stored under this id', 'previous_response_not_found')
  }
  if (isGiven(body['conversation']))
    rejectField('conversation', 'no conversation is stored under this id', 'conversation_not_found')
  if (body['background'] === true) rejectField('background', 'needs stored responses', 'unsupported_parameter')
}

function checkFields(body: SimulatorJson): void {
  optionalBoolean(body['stream'], 'stream')
  optionalBoolean(body['store'], 'store')
  optionalBoolean(body['parallel_tool_calls'], 'parallel_tool_calls')
  if (isGiven(body['instructions'])) string(body['instructions'], 'instructions')
  if (isGiven(body['max_output_tokens'])) integer(body['max_output_tokens'], 'max_output_tokens', outputTokensMin)
  numberWithin(body['temperature'], 'temperature', 0, 2)
  numberWithin(body['top_p'], 'top_p', 0, 1)
  if (isGiven(body['include'])) {
    for (const [index, one] of array(body['include'], 'include').entries()) string(one, `include[${index}]`)
  }
  if (isGiven(body['reasoning'])) {
    const { effort, summary } = object(body['reasoning'], 'reasoning')
    if (isGiven(effort)) oneOf(effort, 'reasoning.effort', efforts)
    if (isGiven(summary)) oneOf(summary, 'reasoning.summary', ['auto', 'concise', 'detailed'])
  }
  if (!isGiven(body['text'])) return
  const { format, verbosity } = object(body['text'], 'text')
  if (isGiven(verbosity)) oneOf(verbosity, 'text.verbosity', ['low', 'medium', 'high'])
  if (!isGiven(format)) return
  const type = oneOf(object(format, 'text.format')['type'], 'text.format.type', ['text', 'json_object', 'json_schema'])
  if (type !== 'json_schema') return
  const { name: formatName, schema, strict } = format as SimulatorJson
  name(formatName, 'text.format.name', 64)
  object(schema, 'text.format.schema')
  if (strict === true) strictSchema(schema, 'text.format.schema')
}

function checkTools(body: SimulatorJson): void {
  const names = new Set<string>()
  const tools = isGiven(body['tools']) ? array(body['tools'], 'tools') : []
  for (const [index, value] of tools.entries()) checkTool(object(value, `tools[${index}]`), `tools[${index}]`, names)
  const choice = body['tool_choice']
  if (!isGiven(choice)) return
  if (typeof choice === 'string') {
    oneOf(choice, 'tool_choice', ['none', 'auto', 'required'])
    if (choice === 'required' && tools.length === 0) rejectField('tool_choice', 'required needs tools')
    return
  }
  const { type, name: chosen } = object(choice, 'tool_choice')
  string(type, 'tool_choice.type')
  if (type === 'function' || type === 'custom') knownToolName(chosen, 'tool_choice.name', names, 'tool_choice')
}

function checkTool(tool: SimulatorJson, path: string, names: Set<string>): void {
  const type = name(tool['type'], `${path}.type`, 64)
  if (type === 'namespace') {
    name(tool['name'], `${path}.name`, 64)
    // Names must be unique only within a namespace.
    for (const [index, value] of array(tool['tools'], `${path}.tools`).entries()) {
      checkTool(object(value, `${path}.tools[${index}]`), `${path}.tools[${index}]`, new Set())
    }
    return
  }
  if (type !== 'function' && type !== 'custom') return
  newToolName(tool['name'], `${path}.name`, 64, names)
  functionParameters(tool['parameters'], tool['strict'] === true, `${path}.parameters`)
}

/* Rules of the input: the content of each item, and the order of calls and outputs (wires/responses-wire §3). */

const inputParts = ['input_text', 'input_image', 'input_file']
const partsOf: Record<string, string[]> = {
  user: inputParts,
  system: inputParts,
  developer: inputParts,
  assistant: ['output_text', 'refusal'],
}
/** The prefixes of ids, by item type. The vendor makes these ids and checks them. */
const idPrefixes: Record<string, string> = {
  message: 'msg',
  function_call: 'fc',
  reasoning: 'rs',
  custom_tool_call: 'ctc',
}
// biome-ignore format: a list of words
const passedItems = [
  'custom_tool_call', 'custom_tool_call_output', 'web_search_call', 'file_search_call', 'code_interpreter_call',
  'computer_call', 'computer_call_output', 'image_generation_call', 'local_shell_call', 'local_shell_call_output',
  'shell_call', 'shell_call_output', 'apply_patch_call', 'apply_patch_call_output', 'mcp_call', 'mcp_list_tools',
  'mcp_approval_request', 'mcp_approval_response', 'tool_search_call', 'tool_search_output', 'additional_tools',
  'configuration_update', 'compaction', 'compaction_trigger', 'program', 'program_output',
]
const callIdLengthMax = 64

function checkItem(item: SimulatorJson, path: string): void {
  const type = item['type'] ?? (isGiven(item['role']) ? 'message' : 'item_reference')
  const prefix = idPrefixes[String(type)]
  if (isGiven(item['id']) && prefix && !string(item['id'], `${path}.id`).startsWith(prefix)) {
    rejectField(`${path}.id`, `the id of this kind of item begins with "${prefix}"`, 'invalid_value')
  }
  switch (type) {
    case 'message':
      checkMessage(item, path)
      return
    case 'function_call':
      checkCallId(item, path)
      name(item['name'], `${path}.name`, 64)
      string(item['arguments'], `${path}.arguments`)
      return
    case 'function_call_output':
      checkCallId(item, path)
      if (typeof item['output'] !== 'string') checkParts(item['output'], inputParts, `${path}.output`)
      return
    case 'reasoning':
      checkReasoning(item, path)
      return
    case 'item_reference':
      throw notStored(path, String(item['id']))
    default:
      oneOf(type, `${path}.type`, ['message', 'function_call', 'function_call_output', 'reasoning', ...passedItems])
  }
}

function checkMessage(item: SimulatorJson, path: string): void {
  const role = oneOf(item['role'], `${path}.role`, Object.keys(partsOf))
  if (typeof item['content'] !== 'string') checkParts(item['content'], partsOf[role]!, `${path}.content`)
}

function checkParts(value: unknown, types: string[], path: string): void {
  for (const [index, one] of array(value, path).entries()) {
    const place = `${path}[${index}]`
    const part = object(one, place)
    const type = oneOf(part['type'], `${place}.type`, types)
    if (type === 'input_text' || type === 'output_text') string(part['text'], `${place}.text`)
    if (type === 'refusal') string(part['refusal'], `${place}.refusal`)
    if (type === 'input_image' && !isGiven(part['file_id']))
      imageUrl(part['image_url'], `${place}.image_url`, 'invalid_value')
    if (type === 'input_file' && !['file_data', 'file_id', 'file_url'].some((key) => isGiven(part[key]))) {
      rejectField(place, 'needs file_data, file_id or file_url', 'missing_required_parameter')
    }
  }
}

function checkCallId(item: SimulatorJson, path: string): void {
  const id = string(item['call_id'], `${path}.call_id`)
  if (id === '' || id.length > callIdLengthMax) {
    rejectField(`${path}.call_id`, `must have 1 to ${callIdLengthMax} characters`, 'string_above_max_length')
  }
}

function checkReasoning(item: SimulatorJson, path: string): void {
  const { id } = item
  if (isGiven(id)) string(id, `${path}.id`)
  const parts = array(item['summary'], `${path}.summary`)
  const texts = parts.map((part, index) =>
    string(object(part, `${path}.summary[${index}]`)['text'], `${path}.summary[${index}].text`),
  )
  // Nothing is stored, so a reasoning item must bring its encrypted content.
  if (!isGiven(item['encrypted_content'])) throw notStored(path, String(id))
  const sealed = string(item['encrypted_content'], `${path}.encrypted_content`)
  if (!isSealOf(sealed, texts.join('\n\n'))) {
    rejectField(`${path}.encrypted_content`, 'was not made by this model', 'invalid_encrypted_content')
  }
}

function notStored(path: string, id: string): Rejection {
  const message = `${path}: no item is stored under "${id}"; send the whole item`
  return new Rejection({ status: 404, message, param: 'input', code: 'item_not_found' })
}

function checkIds(items: SimulatorJson[]): void {
  const ids = new Set<unknown>()
  for (const { id } of items.filter((item) => isGiven(item['id']))) {
    if (ids.has(id)) rejectField('input', `the item id "${id}" is used twice`, 'invalid_value')
    ids.add(id)
  }
}

/** Checks that every call has a later output, and every output an earlier call. */
function checkPairs(items: SimulatorJson[]): void {
  const open = new Set<string>()
  for (const item of items) {
    const id = String(item['call_id'])
    if (item['type'] === 'function_call') {
      if (open.has(id)) rejectField('input', `the call id "${id}" is used again before its output`)
      open.add(id)
    }
    if (item['type'] === 'function_call_output' && !open.delete(id))
      rejectField('input', `no function call found for the output of "${id}"`)
  }
  if (open.size > 0) rejectField('input', `no output found for the function calls ${[...open].join(', ')}`)
}

/** Checks that each reasoning item is followed by an item of the assistant. */
function checkReasoningOrder(items: SimulatorJson[]): void {
  for (const [index, item] of items.entries()) {
    if (item['type'] !== 'reasoning') continue
    const next = items[index + 1]
    const isOutput =
      next && (next['role'] === 'assistant' || String(next['type']).endsWith('_call') || next['type'] === 'reasoning')
    if (!isOutput) rejectField(`input[${index}]`, 'a reasoning item must be followed by the item it belongs to')
  }
}
