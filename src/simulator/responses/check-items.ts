import { array, imageUrl, isGiven, name, object, oneOf, type SimulatorJson, string } from '../check.ts'
import { Rejection, rejectField } from '../prompt.ts'
import { isSealOf } from '../seal.ts'

/*
 * Checks the items of the input: the content of each, and that outputs follow their calls (wires/responses-wire §3).
 */

const inputParts = ['input_text', 'input_image', 'input_file']
const partsOf: Record<string, string[]> = {
  user: inputParts,
  system: inputParts,
  developer: inputParts,
  assistant: ['output_text', 'refusal'],
}
/** The prefixes of ids by item type. The vendor made the ids, and checks them. */
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

export function checkItem(item: SimulatorJson, path: string): void {
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

export function checkIds(items: SimulatorJson[]): void {
  const ids = new Set<unknown>()
  for (const { id } of items.filter((item) => isGiven(item['id']))) {
    if (ids.has(id)) rejectField('input', `the item id "${id}" is used twice`, 'invalid_value')
    ids.add(id)
  }
}

/** Every call has an output after it, and every output a call before it. */
export function checkPairs(items: SimulatorJson[]): void {
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

/** A reasoning item must be followed by the item that it led to. */
export function checkReasoningOrder(items: SimulatorJson[]): void {
  for (const [index, item] of items.entries()) {
    if (item['type'] !== 'reasoning') continue
    const next = items[index + 1]
    const isOutput =
      next && (next['role'] === 'assistant' || String(next['type']).endsWith('_call') || next['type'] === 'reasoning')
    if (!isOutput) rejectField(`input[${index}]`, 'a reasoning item must be followed by the item it belongs to')
  }
}
