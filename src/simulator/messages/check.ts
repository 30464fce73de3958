import {
  array,
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
  string,
} from '../check.ts'
import { rejectField } from '../prompt.ts'
import { isSealOf } from '../seal.ts'

/* Refuses what the vendor of the messages wire refuses (wires/message-wire §2–6). Unknown top-level fields pass. */

const cacheMarksMax = 4
const thinkingBudgetMin = 1024

/** Checks the body of a request on the messages wire. @throws Rejection */
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
    // A tool of one of the vendor's own types needs no schema.
    if (isGiven(tool['type']) && tool['type'] !== 'custom') continue
    // A deferred tool may be declared with its name only.
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

/* Rules of the conversation: the blocks of each turn, and the order of calls and results (wires/message-wire §3). */

const userBlocks = ['text', 'image', 'document', 'search_result', 'tool_result', 'container_upload']
// biome-ignore format: a list of words
const assistantBlocks = [
  'text', 'thinking', 'redacted_thinking', 'tool_use', 'server_tool_use', 'web_search_tool_result',
  'web_fetch_tool_result', 'code_execution_tool_result', 'bash_code_execution_tool_result',
  'text_editor_code_execution_tool_result', 'tool_search_tool_result', 'mcp_tool_use', 'mcp_tool_result',
  'compaction',
]
const resultBlocks = ['text', 'image', 'document', 'search_result', 'tool_reference']
const blocksOf: Record<string, string[]> = { user: userBlocks, assistant: assistantBlocks, system: ['text'] }
const imageTypes = ['image/jpeg', 'image/png', 'image/gif', 'image/webp']

/** A turn. The vendor combines consecutive messages of the same role. */
type RuledTurn = { role: string; blocks: SimulatorJson[]; path: string }

function checkTurns(body: SimulatorJson): RuledTurn[] {
  const messages = array(body['messages'], 'messages')
  if (messages.length === 0) rejectField('messages', 'must hold at least one message')
  const turns: RuledTurn[] = []
  for (const [index, value] of messages.entries()) {
    const path = `messages.${index}`
    const message = object(value, path)
    const role = oneOf(message['role'], `${path}.role`, ['user', 'assistant', 'system'])
    const blocks = checkContent(message['content'], role, path, index === messages.length - 1)
    if (role === 'system') {
      const before = turns.at(-1)?.role
      const after = (messages[index + 1] as SimulatorJson | undefined)?.['role']
      const isEnd = after === undefined || after === 'assistant' || after === 'system'
      if ((before !== 'user' && before !== 'system') || !isEnd) {
        rejectField(
          path,
          'a system message must follow a user message and be the last or followed by an assistant message',
        )
      }
    }
    const last = turns.at(-1)
    if (last?.role === role) last.blocks.push(...blocks)
    else turns.push({ role, blocks: [...blocks], path })
  }
  return turns
}

function checkContent(content: unknown, role: string, path: string, isLast: boolean): SimulatorJson[] {
  const isPrefill = role === 'assistant' && isLast
  if (typeof content === 'string') {
    if (content === '' && !isPrefill) rejectField(`${path}.content`, 'must not be empty')
    if (isPrefill && content !== content.trimEnd())
      rejectField(path, 'a final assistant message must not end with white space')
    return [{ type: 'text', text: content }]
  }
  const blocks = array(content, `${path}.content`).map((value, index) => {
    const place = `${path}.content.${index}`
    const block = object(value, place)
    oneOf(block['type'], `${place}.type`, blocksOf[role]!)
    checkBlock(block, place)
    return block
  })
  if (blocks.length === 0 && !isPrefill) rejectField(`${path}.content`, 'must not be empty')
  const end = blocks.at(-1)?.['text']
  if (isPrefill && typeof end === 'string' && end !== end.trimEnd()) {
    rejectField(path, 'a final assistant message must not end with white space')
  }
  return blocks
}

function checkBlock(block: SimulatorJson, path: string): void {
  switch (block['type']) {
    case 'text':
      checkText(block, path)
      return
    case 'image':
      checkImage(object(block['source'], `${path}.source`), path)
      return
    case 'document': {
      const source = object(block['source'], `${path}.source`)
      const type = oneOf(source['type'], `${path}.source.type`, ['base64', 'text', 'content', 'url', 'file'])
      if (type === 'base64') oneOf(source['media_type'], `${path}.source.media_type`, ['application/pdf'])
      if (type === 'text') oneOf(source['media_type'], `${path}.source.media_type`, ['text/plain'])
      if (type === 'base64' || type === 'text') string(source['data'], `${path}.source.data`)
      return
    }
    case 'thinking': {
      const thinking = string(block['thinking'], `${path}.thinking`)
      const signature = string(block['signature'], `${path}.signature`)
      if (!isSealOf(signature, thinking))
        rejectField(`${path}.signature`, 'this thinking block was not made by this model')
      if (isGiven(block['cache_control'])) rejectField(`${path}.cache_control`, 'must not stand on a thinking block')
      return
    }
    case 'redacted_thinking':
      if (string(block['data'], `${path}.data`) === '') rejectField(`${path}.data`, 'must not be empty')
      return
    case 'tool_use':
      name(block['id'], `${path}.id`, 256)
      name(block['name'], `${path}.name`, 200)
      object(block['input'], `${path}.input`)
      return
    case 'tool_result':
      string(block['tool_use_id'], `${path}.tool_use_id`)
      optionalBoolean(block['is_error'], `${path}.is_error`)
      if (isGiven(block['content']) && typeof block['content'] !== 'string') {
        for (const [index, value] of array(block['content'], `${path}.content`).entries()) {
          const inner = object(value, `${path}.content.${index}`)
          oneOf(inner['type'], `${path}.content.${index}.type`, resultBlocks)
          checkBlock(inner, `${path}.content.${index}`)
        }
      }
      return
    default:
  }
}

function checkText(block: SimulatorJson, path: string): void {
  oneOf(block['type'], `${path}.type`, ['text'])
  if (string(block['text'], `${path}.text`) === '') rejectField(`${path}.text`, 'text blocks must not be empty')
}

function checkImage(source: SimulatorJson, path: string): void {
  const type = oneOf(source['type'], `${path}.source.type`, ['base64', 'url', 'file'])
  if (type === 'url') string(source['url'], `${path}.source.url`)
  if (type !== 'base64') return
  oneOf(source['media_type'], `${path}.source.media_type`, imageTypes)
  const data = string(source['data'], `${path}.source.data`)
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(data)) rejectField(`${path}.source.data`, 'must be base64')
}

/** Checks that the next user turn begins with a result for each call, and that there are no other results. */
function checkPairs(turns: RuledTurn[]): void {
  const used = new Set<string>()
  let open = new Set<string>()
  // System messages have neither calls nor results.
  for (const turn of turns.filter((one) => one.role !== 'system')) {
    if (turn.role === 'assistant') {
      open = new Set()
      for (const block of turn.blocks.filter((one) => one['type'] === 'tool_use')) {
        const id = String(block['id'])
        if (used.has(id)) rejectField(turn.path, `tool_use ids must be unique; "${id}" is used twice`)
        used.add(id)
        open.add(id)
      }
      continue
    }
    let isBehindOther = false
    for (const block of turn.blocks) {
      if (block['type'] !== 'tool_result') {
        isBehindOther = true
        continue
      }
      const id = String(block['tool_use_id'])
      if (!open.delete(id)) rejectField(turn.path, `the tool_result for "${id}" has no tool_use in the message before`)
      if (isBehindOther) rejectField(turn.path, 'tool_result blocks must come before all other blocks of their message')
    }
    if (open.size > 0) rejectField(turn.path, `tool_use without a tool_result right after it: ${[...open].join(', ')}`)
  }
  if (open.size > 0 && turns.at(-1)?.role !== 'assistant') rejectField('messages', 'a tool_use is not answered')
}
