import { createHash } from 'node:crypto'
import { asObject } from '../../bytes/json.ts'
import { isGiven, list, type SimulatorJson } from '../check.ts'
import type { OfferedTool, Prompt, PromptTurn, Segment } from '../prompt.ts'
import { mediaTokens } from '../tokens.ts'

export function read(body: SimulatorJson): Prompt {
  const tools = readTools(body['tools'])
  const instructions = isGiven(body['instructions']) ? [String(body['instructions'])] : []
  const toolSegments = list(body['tools']).map((tool) => ({ text: JSON.stringify(tool) }))
  const segments: Segment[] = [...toolSegments, ...instructions.map((text) => ({ text: `developer: ${text}` }))]
  const turns: PromptTurn[] = []
  for (const item of itemsOf(body['input'])) {
    const turn = readItem(item, turns.at(-1))
    if (turn !== turns.at(-1)) turns.push(turn)
    segments.push(segmentOf(item))
  }
  const reasoning = asObject(body['reasoning'])
  const isSealed = isSealAsked(body)
  const isThinking =
    reasoning?.['effort'] !== 'none' && (isGiven(reasoning?.['effort']) || isGiven(reasoning?.['summary']) || isSealed)
  const { choice, offered } = readChoice(body['tool_choice'], tools)
  return {
    model: String(body['model']),
    isStream: body['stream'] === true,
    segments,
    turns,
    tools: offered,
    choice,
    isParallel: body['parallel_tool_calls'] !== false,
    format: readFormat(asObject(asObject(body['text'])?.['format'])),
    reasoning: isThinking ? (isGiven(reasoning?.['summary']) ? 'shown' : 'hidden') : 'none',
    stops: [],
    outputTokensMax: Number(body['max_output_tokens'] ?? Number.POSITIVE_INFINITY),
    cacheKey: String(body['prompt_cache_key'] ?? ''),
  }
}

export function isSealAsked(body: SimulatorJson): boolean {
  return Array.isArray(body['include']) && body['include'].includes('reasoning.encrypted_content')
}

/** Returns function tools, including those in namespaces. Custom and hosted tools only count as prompt text. */
function readTools(value: unknown, namespace?: string): OfferedTool[] {
  return list(value).flatMap((tool) => {
    if (tool['type'] === 'namespace') return readTools(tool['tools'], String(tool['name']))
    if (tool['type'] !== 'function') return []
    const schema = tool['parameters'] ?? { type: 'object' }
    return [{ name: String(tool['name']), schema, ...(namespace === undefined ? {} : { namespace }) }]
  })
}

function readChoice(value: unknown, offered: OfferedTool[]): { choice: Prompt['choice']; offered: OfferedTool[] } {
  if (value === 'none') return { choice: { mode: 'none' }, offered }
  if (value === 'required') return { choice: { mode: 'required' }, offered }
  const choice = asObject(value)
  if (choice?.['type'] === 'function') return { choice: { mode: 'required', name: String(choice['name']) }, offered }
  if (choice?.['type'] !== 'allowed_tools') return { choice: { mode: 'auto' }, offered }
  const names = list(choice['tools']).map((tool) => tool['name'])
  const mode = choice['mode'] === 'required' ? 'required' : 'auto'
  return { choice: { mode }, offered: offered.filter((tool) => names.includes(tool.name)) }
}

function readFormat(format: SimulatorJson | undefined): Prompt['format'] {
  if (format?.['type'] === 'json_object')
    return { schema: { type: 'object', properties: { answer: { type: 'string' } } } }
  return format?.['type'] === 'json_schema' ? { schema: format['schema'] } : undefined
}

function itemsOf(input: unknown): SimulatorJson[] {
  return typeof input === 'string' ? [{ role: 'user', content: input }] : list(input)
}

/**
 * Adds an item to a turn. Consecutive items of the assistant form one turn. Consecutive outputs of tools form one turn
 * too.
 */
function readItem(item: SimulatorJson, last: PromptTurn | undefined): PromptTurn {
  const type = item['type'] ?? 'message'
  const role = item['role']
  const isOperator = type === 'message' && (role === 'system' || role === 'developer')
  const isResult = String(type).endsWith('_output')
  const side = isOperator ? 'operator' : isResult || role === 'user' ? 'user' : 'assistant'
  const isContinued = last?.side === side && (side === 'assistant' || (isResult && last.results.length > 0))
  const turn: PromptTurn = isContinued ? last : { side, texts: [], images: 0, files: 0, results: [], calls: [] }
  const parts = partsOf(type === 'message' ? item['content'] : item['output'])
  const texts = parts.filter((part) => 'text' in part).map((part) => String(part['text']))
  turn.images += parts.filter((part) => part['type'] === 'input_image').length
  turn.files += parts.filter((part) => part['type'] === 'input_file').length
  if (isResult) turn.results.push({ callId: String(item['call_id']), text: texts.join('\n') })
  else turn.texts.push(...texts)
  if (type === 'function_call') turn.calls.push({ id: String(item['call_id']), name: String(item['name']) })
  return turn
}

/**
 * Renders an item for the prompt, without ids and states. A string is rendered like one text part, an image as a hash.
 */
function segmentOf(item: SimulatorJson): Segment {
  const { id: _id, status: _status, type = 'message', content, output, ...rest } = item
  const parts = partsOf(content ?? output)
  const media = parts.filter(({ type }) => type === 'input_image' || type === 'input_file')
  const words = parts.map((part) =>
    'text' in part ? String(part['text']) : createHash('sha256').update(JSON.stringify(part)).digest('hex').slice(0, 8),
  )
  const head = type === 'message' ? `${item['role']}: ` : `${type}: ${JSON.stringify(rest)} `
  return { text: head + words.join('\n'), extraTokens: media.length * mediaTokens }
}

function partsOf(content: unknown): SimulatorJson[] {
  return typeof content === 'string' ? [{ text: content }] : list(content)
}
