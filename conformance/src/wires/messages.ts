import type { Json } from '../case.ts'
import { compact, countOf, isObject, type JsonObject, listOf, objectOf, parse, textOf } from '../json.ts'
import { type ClientWire, readSharedError } from './wire.ts'

const stops: { [word: string]: string } = {
  end_turn: 'end',
  stop_sequence: 'end',
  max_tokens: 'length',
  tool_use: 'calls',
}

/** The members of a delta, with the member of the block that they add to. */
const pieces = { text: 'text', thinking: 'thinking', signature: 'signature', partial_json: 'json' } as const

export const messages: ClientWire = {
  path: '/v1/messages',
  keyHeaders: (key) => ({ 'x-api-key': key, 'anthropic-version': '2023-06-01' }),
  read(body) {
    const blocks = listOf(body['content'])
    const stop = body['stop_reason']
    return compact({
      id: body['id'] as string,
      model: body['model'] as string,
      text: joined(blocks, 'text'),
      reasoning: joined(blocks, 'thinking'),
      refusal: '',
      calls: blocks
        .filter(({ type }) => type === 'tool_use')
        .map(({ id, name, input }) => {
          const text = JSON.stringify(input ?? {})
          return compact({ id: textOf(id), name: textOf(name), arguments: text, input: input as Json })
        }),
      stop: typeof stop === 'string' ? (stops[stop] ?? stop) : null,
      usage: readUsage(body['usage']),
    })
  },
  readTurn: (body) => listOf(body['content']),
  collect(datas) {
    const blocks: JsonObject[] = []
    let whole: JsonObject = {}
    let usage: JsonObject = {}
    let isEnded = false
    for (const event of datas) {
      if (!isObject(event)) continue
      const at = Number(event['index'])
      const delta = objectOf(event['delta'])
      switch (event['type']) {
        case 'message_start':
          whole = { ...objectOf(event['message']) }
          usage = { ...objectOf(whole['usage']) }
          break
        case 'content_block_start':
          blocks[at] = { ...objectOf(event['content_block']) }
          break
        case 'content_block_delta':
          for (const [from, into] of Object.entries(pieces)) {
            const block = blocks[at]
            if (block && typeof delta[from] === 'string') block[into] = textOf(block[into]) + delta[from]
          }
          break
        case 'message_delta':
          whole = { ...whole, ...delta }
          usage = { ...usage, ...objectOf(event['usage']) }
          break
        case 'message_stop':
          isEnded = true
      }
    }
    const content = blocks
      .filter(Boolean)
      .map(({ json, ...block }) => (json ? { ...block, input: parse(String(json)) ?? null } : block))
    return { body: { ...whole, content, usage }, isEnded }
  },
  readError: readSharedError,
  findMissing: () => undefined,
  findDisorder(datas) {
    let [isBegun, hasDelta, isEnded] = [false, false, false]
    let started = 0
    let open: Json | undefined
    for (const event of datas) {
      if (!isObject(event)) return 'an event is not a JSON object'
      const { type, index } = event
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
  },
}

function joined(blocks: readonly JsonObject[], name: string): string {
  return blocks.map((block) => textOf(block[name])).join('')
}

/** The counters of this wire are disjoint. */
function readUsage(value: Json | undefined) {
  if (!isObject(value)) return undefined
  const [fresh, cached, cacheWrite] = ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'].map(
    (name) => countOf(value[name]),
  )
  return compact({
    input: fresh === undefined ? undefined : fresh + (cached ?? 0) + (cacheWrite ?? 0),
    output: countOf(value['output_tokens']),
    cached,
    cacheWrite,
    reasoning: countOf(objectOf(value['output_tokens_details'])['thinking_tokens']),
  })
}
