import {
  array,
  efforts,
  functionParameters,
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
import { rejectField } from '../prompt.ts'
import { checkIds, checkItem, checkPairs, checkReasoningOrder } from './check-items.ts'

/*
 * The requests that the vendor of the responses wire refuses (wires/responses-wire §2–6), without stored responses. Unknown
 * top-level fields pass. This file checks the fields, and check-items.ts the items.
 */

const outputTokensMin = 16

/** @throws Rejection */
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
    // Names must be unique within a namespace only.
    for (const [index, value] of array(tool['tools'], `${path}.tools`).entries()) {
      checkTool(object(value, `${path}.tools[${index}]`), `${path}.tools[${index}]`, new Set())
    }
    return
  }
  if (type !== 'function' && type !== 'custom') return
  newToolName(tool['name'], `${path}.name`, 64, names)
  functionParameters(tool['parameters'], tool['strict'] === true, `${path}.parameters`)
}
