import { createHash } from 'node:crypto'
import { asObject } from '../../bytes/json.ts'
import { isGiven, list, type SimulatorJson } from '../check.ts'
import type { Prompt, PromptTurn, Segment } from '../prompt.ts'
import { mediaTokens } from '../tokens.ts'

export function read(body: SimulatorJson): Prompt {
  const tools = list(body['tools']).filter((tool) => !isGiven(tool['type']) || tool['type'] === 'custom')
  const toolSegments = list(body['tools']).map((tool) =>
    segment(JSON.stringify({ ...tool, cache_control: undefined }), tool),
  )
  const systemSegments = blocksOf(body['system']).map((block) => segment(`system: ${block['text']}`, block))
  const turns: PromptTurn[] = []
  const turnSegments: Segment[] = []
  for (const message of list(body['messages'])) {
    const turn = emptyTurn(String(message['role']))
    for (const block of blocksOf(message['content'])) turnSegments.push(readBlock(block, turn))
    turns.push(turn)
  }
  const segments = [...toolSegments, ...systemSegments, ...turnSegments]
  if (isGiven(body['cache_control'])) {
    const last = segments.at(-1)
    if (last) last.mark = markOf(body)!
  }
  const thinking = asObject(body['thinking'])
  const isThinking = thinking?.['type'] === 'enabled' || thinking?.['type'] === 'adaptive'
  const choice = asObject(body['tool_choice'])
  const format = asObject(asObject(body['output_config'])?.['format'])
  return {
    model: String(body['model']),
    isStream: body['stream'] === true,
    segments,
    turns,
    tools: tools.map((tool) => ({ name: String(tool['name']), schema: tool['input_schema'] })),
    choice: readChoice(choice),
    isParallel: choice?.['disable_parallel_tool_use'] !== true,
    format: format ? { schema: format['schema'] } : undefined,
    reasoning: isThinking ? (thinking['display'] === 'omitted' ? 'hidden' : 'shown') : 'none',
    stops: Array.isArray(body['stop_sequences']) ? body['stop_sequences'].map(String) : [],
    outputTokensMax: Number(body['max_tokens'] ?? Number.POSITIVE_INFINITY),
    cacheKey: '',
  }
}

function readChoice(choice: SimulatorJson | undefined): Prompt['choice'] {
  switch (choice?.['type']) {
    case 'any':
      return { mode: 'required' }
    case 'tool':
      return { mode: 'required', name: String(choice['name']) }
    case 'none':
      return { mode: 'none' }
    default:
      return { mode: 'auto' }
  }
}

/** Adds a block to its turn, and renders it for the prompt. */
function readBlock(block: SimulatorJson, turn: PromptTurn): Segment {
  const type = block['type']
  if (type === 'text') turn.texts.push(String(block['text']))
  if (type === 'image') turn.images++
  if (type === 'document') turn.files++
  if (type === 'tool_use') turn.calls.push({ id: String(block['id']), name: String(block['name']) })
  let extraTokens = type === 'image' || type === 'document' ? mediaTokens : 0
  if (type === 'tool_result') {
    const inner = blocksOf(block['content'])
    const countOf = (kind: string) => inner.filter((one) => one['type'] === kind).length
    const [images, files] = [countOf('image'), countOf('document')]
    turn.images += images
    turn.files += files
    extraTokens += (images + files) * mediaTokens
    const text = inner
      .filter((one) => one['type'] === 'text')
      .map((one) => one['text'])
      .join('\n')
    turn.results.push({ callId: String(block['tool_use_id']), text })
  }
  return { ...segment(`${turn.side}: ${render(block)}`, block), extraTokens }
}

/**
 * Renders a block for the prompt: a text unchanged, any other block as JSON. In the JSON, the data of images and files
 * become hashes. Cache marks and signatures are left out.
 */
function render(block: SimulatorJson): string {
  if (block['type'] === 'text') return String(block['text'])
  return JSON.stringify(block, (key, value: unknown) => {
    if (key === 'cache_control' || key === 'signature') return undefined
    return key === 'data' && typeof value === 'string'
      ? createHash('sha256').update(value).digest('hex').slice(0, 8)
      : value
  })
}

function segment(text: string, marked: SimulatorJson): Segment {
  const mark = markOf(marked)
  return mark ? { text, mark } : { text }
}

function markOf(marked: SimulatorJson): '5m' | '1h' | undefined {
  const control = asObject(marked['cache_control'])
  return control ? (control['ttl'] === '1h' ? '1h' : '5m') : undefined
}

function emptyTurn(role: string): PromptTurn {
  const side = role === 'system' ? 'operator' : role === 'assistant' ? 'assistant' : 'user'
  return { side, texts: [], images: 0, files: 0, results: [], calls: [] }
}

function blocksOf(content: unknown): SimulatorJson[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : list(content)
}
