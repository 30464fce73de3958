import { createHash } from 'node:crypto'
import { asObject } from '../../bytes/json.ts'
import { isGiven, list, type SimulatorJson } from '../check.ts'
import type { OfferedTool, Prompt, PromptTurn, Segment } from '../prompt.ts'
import { mediaTokens } from '../tokens.ts'

export function read(body: SimulatorJson): Prompt {
  const tools = list(body['tools'])
  const toolSegments = tools.map((tool) => ({ text: JSON.stringify(tool) }))
  const turns: PromptTurn[] = []
  const segments: Segment[] = [...toolSegments]
  for (const message of list(body['messages'])) {
    const turn = readMessage(message)
    segments.push(segmentOf(message, turn))
    turns.push(turn)
  }
  const effort = body['reasoning_effort']
  const { choice, offered } = readChoice(body['tool_choice'], tools)
  const caps = [body['max_tokens'], body['max_completion_tokens']].filter(isGiven).map(Number)
  return {
    model: String(body['model']),
    isStream: body['stream'] === true,
    segments,
    turns,
    tools: offered,
    choice,
    isParallel: body['parallel_tool_calls'] !== false,
    format: readFormat(asObject(body['response_format'])),
    reasoning: isGiven(effort) && effort !== 'none' ? 'shown' : 'none',
    stops: isGiven(body['stop']) ? [body['stop']].flat().map(String) : [],
    outputTokensMax: Math.min(...caps, Number.POSITIVE_INFINITY),
    cacheKey: String(body['prompt_cache_key'] ?? ''),
  }
}

function readChoice(value: unknown, tools: SimulatorJson[]): { choice: Prompt['choice']; offered: OfferedTool[] } {
  // Custom tools, which take free text, are counted but never called.
  const offered = tools
    .filter((tool) => tool['type'] === 'function')
    .map((tool) => asObject(tool['function']) ?? {})
    .map((inner) => ({ name: String(inner['name']), schema: inner['parameters'] ?? { type: 'object' } }))
  if (value === 'none') return { choice: { mode: 'none' }, offered }
  if (value === 'required') return { choice: { mode: 'required' }, offered }
  const named = asObject(asObject(value)?.['function'])
  if (named) return { choice: { mode: 'required', name: String(named['name']) }, offered }
  const allowed = asObject(asObject(value)?.['allowed_tools'])
  if (!allowed) return { choice: { mode: 'auto' }, offered }
  const names = list(allowed['tools']).map((one) => asObject(one['function'])?.['name'])
  const mode = allowed['mode'] === 'required' ? 'required' : 'auto'
  return { choice: { mode }, offered: offered.filter((tool) => names.includes(tool.name)) }
}

function readFormat(format: SimulatorJson | undefined): Prompt['format'] {
  if (format?.['type'] === 'json_object')
    return { schema: { type: 'object', properties: { answer: { type: 'string' } } } }
  if (format?.['type'] !== 'json_schema') return undefined
  return { schema: asObject(format['json_schema'])?.['schema'] }
}

function readMessage(message: SimulatorJson): PromptTurn {
  const role = String(message['role'])
  const side = role === 'assistant' ? 'assistant' : role === 'system' || role === 'developer' ? 'operator' : 'user'
  const turn: PromptTurn = { side, texts: [], images: 0, files: 0, results: [], calls: [] }
  const parts = partsOf(message['content'])
  const texts = parts.filter((part) => part['type'] === 'text').map((part) => String(part['text']))
  if (role === 'tool') turn.results.push({ callId: String(message['tool_call_id']), text: texts.join('\n') })
  else turn.texts = texts
  turn.images = parts.filter((part) => part['type'] === 'image_url').length
  turn.files = parts.filter((part) => part['type'] === 'file').length
  turn.calls = list(message['tool_calls']).map((call) => ({
    id: String(call['id']),
    name: String(asObject(call['function'])?.['name'] ?? ''),
  }))
  return turn
}

/** Renders a message for the prompt. A string is rendered like a single text part. Images and files become hashes. */
function segmentOf(message: SimulatorJson, turn: PromptTurn): Segment {
  const parts = partsOf(message['content']).map((part) => {
    if (part['type'] === 'text') return String(part['text'])
    return createHash('sha256').update(JSON.stringify(part)).digest('hex').slice(0, 8)
  })
  const calls = isGiven(message['tool_calls']) ? JSON.stringify(message['tool_calls']) : ''
  const text = `${message['role']}: ${parts.join('\n')}${calls}${message['tool_call_id'] ?? ''}`
  return { text, extraTokens: (turn.images + turn.files) * mediaTokens }
}

function partsOf(content: unknown): SimulatorJson[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : list(content)
}
