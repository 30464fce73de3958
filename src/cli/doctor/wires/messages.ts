import { asObject, parseObject } from '../../../bytes/json.ts'
import {
  asked,
  count,
  findInEvents,
  join,
  list,
  type ProbedWire,
  type ProbeJson,
  refusals,
  sum,
} from '../client-wire.ts'

export const messages: ProbedWire = {
  path: '/v1/messages',
  keyHeaders: (key) => ({ 'x-api-key': key, 'anthropic-version': '2023-06-01' }),
  body: ({ model, text, stream, isCall, called, isReasoning, cached }) => ({
    model,
    max_tokens: asked.outputTokens,
    messages: [
      { role: 'user', content: text },
      ...(called
        ? [
            { role: 'assistant', content: called.turn },
            {
              role: 'user',
              content: called.calls.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: asked.result })),
            },
          ]
        : []),
    ],
    stream,
    ...(isCall || called
      ? { tools: [{ name: 'report', description: asked.description, input_schema: asked.parameters }] }
      : {}),
    ...(isCall ? { tool_choice: { type: 'tool', name: 'report' } } : {}),
    ...(isReasoning ? { thinking: { type: 'enabled', budget_tokens: asked.thinkingTokens } } : {}),
    ...(cached ? { system: [{ type: 'text', text: cached.text, cache_control: { type: 'ephemeral' } }] } : {}),
  }),
  cacheHeaders: ({ cached }): Record<string, string> => (cached ? { 'x-session-id': cached.key } : {}),
  read(body) {
    const blocks = list(body['content'])
    const usage = asObject(body['usage']) ?? {}
    return {
      text: join(blocks, 'text'),
      reasoning: join(blocks, 'thinking'),
      calls: blocks
        .filter((block) => block['type'] === 'tool_use' && block['name'] === 'report')
        .map((block) => ({ id: String(block['id']), arguments: JSON.stringify(block['input']) })),
      turn: blocks,
      // The counters of this wire are disjoint.
      inputTokens: sum(usage, ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens']),
      outputTokens: count(usage['output_tokens']),
      cachedTokens: count(usage['cache_read_input_tokens']),
    }
  },
  findDisorder: (datas) => findInEvents(datas, findMessagesDisorder),
  collect(frames) {
    const blocks: ProbeJson[] = []
    const whole: ProbeJson = {}
    let usage: ProbeJson = {}
    for (const { data } of frames) {
      const event = parseObject(data) ?? {}
      const at = Number(event['index'])
      const delta = asObject(event['delta']) ?? {}
      if (event['type'] === 'message_start') {
        Object.assign(whole, asObject(event['message']))
        usage = { ...asObject(whole['usage']) }
      } else if (event['type'] === 'content_block_start') blocks[at] = { ...asObject(event['content_block']), json: '' }
      else if (event['type'] === 'content_block_delta') {
        for (const [field, into] of [
          ['text', 'text'],
          ['thinking', 'thinking'],
          ['signature', 'signature'],
          ['partial_json', 'json'],
        ] as const) {
          const block = blocks[at]
          if (block && typeof delta[field] === 'string') block[into] = `${block[into] ?? ''}${delta[field]}`
        }
      } else if (event['type'] === 'message_delta') usage = { ...usage, ...asObject(event['usage']) }
      else if (event['type'] === 'message_stop') {
        const content = blocks.map(({ json, ...block }) =>
          json ? { ...block, input: parseObject(String(json)) ?? {} } : block,
        )
        return { ...whole, content, usage }
      }
    }
    return undefined
  },
  findMistake(body, status, requestId) {
    const error = asObject(body['error']) ?? {}
    if (body['type'] !== 'error' || typeof error['message'] !== 'string') return 'it is not {type, error: {…}}'
    if (body['request_id'] !== requestId) return 'its request_id is not the x-request-id of its header'
    const { type } = refusals[status]!
    return error['type'] === type ? undefined : `error.type is ${error['type']} and not ${type}`
  },
}

function findMessagesDisorder(events: readonly ProbeJson[]): string | undefined {
  let [isBegun, hasDelta, isEnded] = [false, false, false]
  let started = 0
  let open: number | undefined
  for (const { type, index } of events) {
    if (type === 'ping' || type === 'error') continue
    if (isEnded) return `${type} comes after message_stop`
    if (isBegun === (type === 'message_start')) {
      return isBegun ? 'message_start comes twice' : `${type} comes before message_start`
    }
    isBegun = true
    switch (type) {
      case 'content_block_start':
        if (open !== undefined) return `block ${index} starts while block ${open} is open`
        if (index !== started) return `block ${index} starts where block ${started} is due`
        open = started++
        break
      case 'content_block_delta':
      case 'content_block_stop':
        if (index !== open) return `${type} comes for block ${index}, which is not open`
        if (type === 'content_block_stop') open = undefined
        break
      case 'message_delta':
        if (open !== undefined) return `message_delta comes while block ${open} is open`
        hasDelta = true
        break
      case 'message_stop':
        if (!hasDelta) return 'message_stop comes without message_delta'
        isEnded = true
    }
  }
  return undefined
}
