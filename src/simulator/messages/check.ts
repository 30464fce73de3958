import {
  array,
  integer,
  isGiven,
  knownToolName,
  newToolName,
  numberWithin,
  object,
  oneOf,
  optionalBoolean,
  type SimulatorJson,
  string,
} from '../check.ts'
import { rejectField } from '../prompt.ts'
import { checkPairs, checkText, checkTurns, type RuledTurn } from './check-turns.ts'

/*
 * The requests that the vendor of the messages wire refuses (wires/message-wire §2–6). Unknown top-level fields pass. This file
 * checks the fields, and check-turns.ts the conversation.
 */

const cacheMarksMax = 4
const thinkingBudgetMin = 1024

/** @throws Rejection */
export function checkMessages(body: SimulatorJson): void {
  const outputMax = integer(body['max_tokens'], 'max_tokens', 1)
  const tools = checkTools(body)
  checkFields(body, outputMax)
  const turns = checkTurns(body)
  checkPairs(turns)
  if (tools.size === 0 && turns.some((turn) => turn.blocks.some((block) => block['type'] === 'tool_use'))) {
    rejectField('tools', 'must declare tools when the messages hold tool_use or tool_result blocks')
  }
  checkThinking(body, turns)
  if (cacheMarks(body) > cacheMarksMax) rejectField('cache_control', `at most ${cacheMarksMax} blocks may carry a mark`)
}

function checkFields(body: SimulatorJson, outputMax: number): void {
  optionalBoolean(body['stream'], 'stream')
  numberWithin(body['temperature'], 'temperature', 0, 1)
  numberWithin(body['top_p'], 'top_p', 0, 1)
  if (isGiven(body['stop_sequences'])) {
    for (const [index, stop] of array(body['stop_sequences'], 'stop_sequences').entries()) {
      if (string(stop, `stop_sequences.${index}`).trim() === '')
        rejectField(`stop_sequences.${index}`, 'must not be white space')
    }
  }
  if (isGiven(body['system']) && typeof body['system'] !== 'string') {
    for (const [index, block] of array(body['system'], 'system').entries())
      checkText(object(block, `system.${index}`), `system.${index}`)
  }
  if (isGiven(body['thinking'])) {
    const thinking = object(body['thinking'], 'thinking')
    const type = oneOf(thinking['type'], 'thinking.type', ['enabled', 'adaptive', 'disabled', 'between_tools'])
    if (type === 'enabled') {
      const budget = integer(thinking['budget_tokens'], 'thinking.enabled.budget_tokens', thinkingBudgetMin)
      if (budget >= outputMax) rejectField('max_tokens', 'must be greater than thinking.budget_tokens')
    }
  }
  if (isGiven(body['output_config'])) {
    const { effort, format } = object(body['output_config'], 'output_config')
    if (isGiven(effort)) oneOf(effort, 'output_config.effort', ['low', 'medium', 'high', 'xhigh', 'max'])
    if (isGiven(format)) {
      const { type, schema } = object(format, 'output_config.format')
      oneOf(type, 'output_config.format.type', ['json_schema'])
      object(schema, 'output_config.format.schema')
    }
  }
  if (isGiven(body['metadata'])) {
    const { user_id } = object(body['metadata'], 'metadata')
    if (isGiven(user_id)) string(user_id, 'metadata.user_id')
  }
}

function checkTools(body: SimulatorJson): Set<string> {
  const names = new Set<string>()
  const tools = isGiven(body['tools']) ? array(body['tools'], 'tools') : []
  for (const [index, value] of tools.entries()) {
    const path = `tools.${index}`
    const tool = object(value, path)
    newToolName(tool['name'], `${path}.name`, 128, names)
    // The schema of a tool with a type of the vendor's own is known to the vendor.
    if (isGiven(tool['type']) && tool['type'] !== 'custom') continue
    // A deferred tool may be declared by its name alone.
    if (tool['defer_loading'] === true && !isGiven(tool['input_schema'])) continue
    const schema = object(tool['input_schema'], `${path}.input_schema`)
    oneOf(schema['type'], `${path}.input_schema.type`, ['object'])
    for (const key of ['anyOf', 'oneOf', 'allOf']) {
      if (key in schema) rejectField(`${path}.input_schema`, `must not have ${key} at its top level`)
    }
  }
  if (isGiven(body['tool_choice'])) {
    const choice = object(body['tool_choice'], 'tool_choice')
    const type = oneOf(choice['type'], 'tool_choice.type', ['auto', 'any', 'tool', 'none'])
    if (names.size === 0) rejectField('tool_choice', 'may only be given together with tools')
    if (type === 'tool') knownToolName(choice['name'], 'tool_choice.name', names)
    optionalBoolean(choice['disable_parallel_tool_use'], 'tool_choice.disable_parallel_tool_use')
  }
  return names
}

function checkThinking(body: SimulatorJson, turns: RuledTurn[]): void {
  const type = (body['thinking'] as SimulatorJson | undefined | null)?.['type']
  if (type !== 'enabled' && type !== 'adaptive') return
  const choice = (body['tool_choice'] as SimulatorJson | undefined | null)?.['type']
  if (choice === 'any' || choice === 'tool') rejectField('tool_choice', 'a call cannot be forced while thinking is on')
  if (isGiven(body['temperature']) && body['temperature'] !== 1)
    rejectField('temperature', 'must be 1 while thinking is on')
  if (isGiven(body['top_k'])) rejectField('top_k', 'cannot be set while thinking is on')
  const lastAssistant = turns.findLast((turn) => turn.role === 'assistant')
  const isInLoop = turns
    .findLast((turn) => turn.role === 'user')
    ?.blocks.some((block) => block['type'] === 'tool_result')
  const first = String(lastAssistant?.blocks[0]?.['type'] ?? 'thinking')
  if (type === 'enabled' && isInLoop && !first.endsWith('thinking')) {
    rejectField('messages', `the assistant turn of a tool loop must begin with its thinking block, found ${first}`)
  }
}

function cacheMarks(value: unknown): number {
  if (Array.isArray(value)) return value.reduce<number>((sum, one) => sum + cacheMarks(one), 0)
  if (typeof value !== 'object' || value === null) return 0
  const node = value as SimulatorJson
  const own = isGiven(node['cache_control']) ? 1 : 0
  return ['tools', 'system', 'messages', 'content'].reduce((sum, key) => sum + cacheMarks(node[key]), own)
}
