/*
 * What a stream of each wire must look like (translation 4.6), checked on its text. Each checker returns what is wrong,
 * in words; an empty list means that the stream obeys. A stream that was cut obeys up to its error frame.
 */

// biome-ignore lint/suspicious/noExplicitAny: a test reaches into JSON it has just checked.
type Json = Record<string, any>
type Frame = { event: string | undefined; data: string }

/** Frames of a text, comments left out. A text that does not end with a blank line has a half frame. */
export function framesOf(text: string, violations: string[] = []): Frame[] {
  const frames: Frame[] = []
  const pieces = text.split('\n\n')
  if (pieces.pop() !== '') violations.push('the stream ends inside a frame')
  for (const piece of pieces) {
    let event: string | undefined
    const data: string[] = []
    for (const line of piece.split('\n')) {
      if (line.startsWith('event: ')) event = line.slice(7)
      else if (line.startsWith('data: ')) data.push(line.slice(6))
      else if (!line.startsWith(':')) violations.push(`not a field: ${line}`)
    }
    if (data.length > 0) frames.push({ event, data: data.join('\n') })
  }
  return frames
}

function objectsOf(text: string, violations: string[], isNamed: boolean): Json[] {
  const objects: Json[] = []
  for (const { event, data } of framesOf(text, violations)) {
    let object: Json
    try {
      object = JSON.parse(data)
    } catch {
      violations.push(`not JSON: ${data}`)
      continue
    }
    if (isNamed && event !== object['type']) violations.push(`event ${event} carries type ${object['type']}`)
    objects.push(object)
  }
  return objects
}

/** `message_start (ping)* block* message_delta message_stop`; or the same cut anywhere, then one `error`. */
export function checkMessagesStream(text: string): string[] {
  const violations: string[] = []
  const objects = objectsOf(text, violations, true)
  const last = objects.at(-1)?.['type']
  const isCut = last === 'error'
  if (!isCut && last !== 'message_stop') violations.push(`ends with ${last}`)
  let phase: 'before' | 'blocks' | 'delta' | 'over' = 'before'
  let open: { index: number; type: string } | undefined
  let next = 0
  for (const event of objects) {
    const type: string = event['type']
    if (phase === 'over') violations.push(`${type} after the end`)
    else if (type === 'error') phase = 'over'
    else if (type === 'message_start') {
      if (phase !== 'before') violations.push('a second message_start')
      const message: Json = event['message']
      if (!message['id'].startsWith('msg_')) violations.push('message id without msg_')
      if (message['stop_reason'] !== null || message['content'].length > 0)
        violations.push('message_start is not empty')
      if (message['usage']['output_tokens'] !== 0) violations.push('output_tokens at the start')
      checkCounters(message['usage'], violations)
      phase = 'blocks'
    } else if (phase === 'before') violations.push(`${type} before message_start`)
    else if (type === 'ping') continue
    else if (type === 'content_block_start') {
      if (phase !== 'blocks' || open) violations.push('a block starts where none may')
      if (event['index'] !== next) violations.push(`block ${event['index']} instead of ${next}`)
      open = { index: next++, type: event['content_block']['type'] }
      if (!['text', 'thinking', 'tool_use'].includes(open.type)) violations.push(`block of type ${open.type}`)
    } else if (type === 'content_block_delta') {
      const fits: Json = { text: 'text_delta', thinking: 'thinking_delta', tool_use: 'input_json_delta' }
      if (open?.index !== event['index']) violations.push(`delta for block ${event['index']}, which is not open`)
      else if (fits[open!.type] !== event['delta']['type'])
        violations.push(`${event['delta']['type']} in ${open!.type}`)
    } else if (type === 'content_block_stop') {
      if (open?.index !== event['index']) violations.push(`stop of block ${event['index']}, which is not open`)
      open = undefined
    } else if (type === 'message_delta') {
      if (phase !== 'blocks' || open) violations.push('message_delta while a block is open, or twice')
      if (typeof event['delta']['stop_reason'] !== 'string') violations.push('no stop_reason')
      checkCounters(event['usage'], violations)
      phase = 'delta'
    } else if (type === 'message_stop') {
      if (phase !== 'delta') violations.push('message_stop without message_delta')
      phase = 'over'
    } else violations.push(`unknown event ${type}`)
  }
  return violations
}

function checkCounters(usage: Json, violations: string[]): void {
  for (const name of ['input_tokens', 'output_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens']) {
    if (!Number.isInteger(usage?.[name]) || usage[name] < 0) violations.push(`counter ${name} is ${usage?.[name]}`)
  }
}

/** `chunk(role) chunk* chunk(finish) chunk(usage) [DONE]`; or the same cut anywhere, then an error frame. */
export function checkChatStream(text: string): string[] {
  const violations: string[] = []
  const frames = framesOf(text, violations)
  const isComplete = frames.at(-1)?.data === '[DONE]'
  if (isComplete) frames.pop()
  const chunks = frames.map(({ data }): Json => {
    try {
      return JSON.parse(data)
    } catch {
      violations.push(`not JSON: ${data}`)
      return {}
    }
  })
  const error = chunks.at(-1)?.['error']
  if (error) chunks.pop()
  if (isComplete === (error !== undefined))
    violations.push(isComplete ? '[DONE] after an error' : 'no [DONE], no error')
  if (error && ['message', 'type', 'param', 'code'].some((key) => !(key in error))) violations.push('error lacks a key')

  let reasons = 0
  let usages = 0
  let calls = 0
  for (const [position, chunk] of chunks.entries()) {
    if (!Array.isArray(chunk['choices'])) {
      violations.push('a chunk without choices')
      continue
    }
    for (const key of ['id', 'created', 'model']) {
      if (chunk[key] !== chunks[0]![key]) violations.push(`${key} changes`)
    }
    if (chunk['object'] !== 'chat.completion.chunk') violations.push(`object ${chunk['object']}`)
    if (!`${chunk['id']}`.startsWith('chatcmpl-')) violations.push('id without chatcmpl-')
    if (usages > 0) violations.push('a chunk after the usage')
    if (chunk['choices'].length === 0) {
      usages++
      if (reasons === 0) violations.push('usage before the reason')
      const { prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details } = chunk['usage']
      if (total_tokens !== prompt_tokens + completion_tokens) violations.push('total is not the sum')
      if (!(prompt_tokens_details['cached_tokens'] <= prompt_tokens)) violations.push('more cached than read')
      continue
    }
    const choice: Json = chunk['choices'][0]
    if (choice['index'] !== 0) violations.push('choice without index 0')
    if ((position === 0) !== (choice['delta']['role'] === 'assistant')) violations.push('role not in the first chunk')
    if (reasons > 0) violations.push('a choice after the reason')
    if (choice['finish_reason'] !== null) {
      reasons++
      if (!['stop', 'length', 'tool_calls', 'content_filter'].includes(choice['finish_reason'])) {
        violations.push(`reason ${choice['finish_reason']}`)
      }
    }
    for (const call of choice['delta']['tool_calls'] ?? []) {
      if (call['id'] === undefined) {
        if (!(call['index'] >= 0 && call['index'] < calls)) violations.push(`call ${call['index']} was not announced`)
      } else {
        if (call['index'] !== calls++) violations.push('call indexes have gaps')
        if (!call['function']['name'] || call['type'] !== 'function') violations.push('call without name or type')
      }
    }
  }
  if (isComplete && (reasons !== 1 || usages !== 1)) violations.push(`${reasons} reasons, ${usages} usages`)
  if (!isComplete && (reasons > 0 || usages > 0)) violations.push('a cut stream looks finished')
  return violations
}

const terminals = ['response.completed', 'response.incomplete', 'response.failed']

/** Numbered events; `created` first; items bracketed and dense; parts bracket their deltas; nothing after the end. */
export function checkResponsesStream(text: string): string[] {
  const violations: string[] = []
  const events = objectsOf(text, violations, true)
  const items: { item: Json; isDone: boolean; part: string | undefined; text: string }[] = []
  const ids = new Set<string>()
  let isOver = false
  if (events[0]?.['type'] !== 'response.created') violations.push(`begins with ${events[0]?.['type']}`)
  for (const [position, event] of events.entries()) {
    const type: string = event['type']
    if (event['sequence_number'] !== position) violations.push(`number ${event['sequence_number']} at ${position}`)
    if (isOver) violations.push(`${type} after the end`)
    if (type === 'response.created' || type === 'response.in_progress') {
      if (event['response']['status'] !== 'in_progress') violations.push('not in progress at the start')
      continue
    }
    if (terminals.includes(type)) {
      isOver = true
      checkTerminal(type, event['response'], items, violations)
      continue
    }
    const entry = items[event['output_index']]
    if (type === 'response.output_item.added') {
      if (event['output_index'] !== items.length) violations.push(`item at ${event['output_index']}`)
      if (!event['item']['id'] || ids.has(event['item']['id'])) violations.push('item id missing or used twice')
      ids.add(event['item']['id'])
      items.push({ item: event['item'], isDone: false, part: undefined, text: '' })
    } else if (!entry || entry.isDone) violations.push(`${type} for an item that is not open`)
    else if (type === 'response.output_item.done') {
      if (entry.part !== undefined) violations.push('item done while a part is open')
      for (const key of ['id', 'type', 'call_id']) {
        if (event['item'][key] !== entry.item[key]) violations.push(`item changes its ${key}`)
      }
      if (wordsOf(event['item']) !== entry.text) violations.push('item text differs from its deltas')
      entry.item = event['item']
      entry.isDone = true
    } else {
      if (event['item_id'] !== entry.item['id']) violations.push(`${type} with another item_id`)
      checkPart(type, event, entry, violations)
    }
  }
  if (!isOver) violations.push('no terminal event')
  return violations
}

/** Which part a delta needs to be open; calls have none. */
const partTypes: Json = {
  'response.output_text': ['message', 'output_text'],
  'response.refusal': ['message', 'refusal'],
  'response.reasoning_summary_text': ['reasoning', 'summary_text'],
  'response.function_call_arguments': ['function_call', undefined],
}

function checkPart(
  type: string,
  event: Json,
  entry: { item: Json; part: string | undefined; text: string },
  violations: string[],
): void {
  if (type.endsWith('_part.added')) {
    if (entry.part !== undefined) violations.push('a part inside a part')
    entry.part = event['part']['type']
  } else if (type.endsWith('_part.done')) {
    if (entry.part !== event['part']['type']) violations.push('another part is done')
    entry.part = undefined
  } else {
    const fits = partTypes[type.replace(/\.(delta|done)$/, '')]
    if (!fits) return void violations.push(`unknown event ${type}`)
    if (fits[0] !== entry.item['type'] || fits[1] !== entry.part) violations.push(`${type} outside its part`)
    if (type.endsWith('.delta')) entry.text += event['delta']
    else if ((event['text'] ?? event['refusal'] ?? event['arguments']) !== entry.text) {
      violations.push('done value differs from the deltas')
    }
  }
}

function wordsOf(item: Json): string {
  if (item['type'] === 'function_call') return item['arguments']
  return (item['content'] ?? item['summary']).map((part: Json) => part['text'] ?? part['refusal']).join('')
}

function checkTerminal(
  type: string,
  response: Json,
  items: readonly { item: Json; isDone: boolean; text: string }[],
  violations: string[],
): void {
  if (response['status'] !== type.slice('response.'.length)) violations.push(`${type} has status ${response['status']}`)
  const output: Json[] = response['output']
  if (output.length !== items.length) violations.push('the output has other items than were told')
  for (const [index, { item, isDone, text }] of items.entries()) {
    const ended = output[index] ?? {}
    if (isDone) {
      if (JSON.stringify(ended) !== JSON.stringify(item)) violations.push('the output differs from the done items')
    } else if (type !== 'response.failed') violations.push('an item was never done')
    else if (ended['id'] !== item['id'] || ended['status'] !== 'incomplete' || wordsOf(ended) !== text) {
      // Ruling T24: what a failure cuts is told in the output alone.
      violations.push('a cut item is not incomplete in the output')
    }
  }
  if (response['store'] !== false) violations.push('store is not false')
  if (type === 'response.failed' ? !response['error'] : response['error'] !== null) violations.push('error')
  if ((type === 'response.incomplete') !== (response['incomplete_details'] !== null))
    violations.push('incomplete_details')
  const usage = response['usage']
  if (type !== 'response.failed' || usage) {
    if (usage['total_tokens'] !== usage['input_tokens'] + usage['output_tokens'])
      violations.push('total is not the sum')
    if (!Number.isInteger(usage['input_tokens_details']['cached_tokens'])) violations.push('no cached_tokens')
    if (!Number.isInteger(usage['output_tokens_details']['reasoning_tokens'])) violations.push('no reasoning_tokens')
  }
}
