import type { ClientWire } from '../../src/catalog/wire-names.ts'
import * as up from '../translation/upstreams.ts'

/** What a model says: the kinds of blocks that all wires have, in the order in which all can tell them. */
export type Said = { reasoning?: string; text: string; call?: { name: string; args: string } }

/** The texts of its blocks, one behind the other: what is estimated (ruling C10). */
export function textOf({ reasoning = '', text, call }: Said): string {
  return reasoning + text + (call ? call.name + call.args : '')
}

/** The stream of a model that says this in pieces of these sizes, in turn, and never reports its usage. */
export const streams: Record<ClientWire, (said: Said, sizes: readonly number[]) => string> = {
  chat({ reasoning = '', text, call }, sizes) {
    const calls = call
      ? up.call([0, 'call_hosted', call.name, '']) +
        cut(call.args, sizes)
          .map((piece) => up.call([0, undefined, undefined, piece]))
          .join('')
      : ''
    return (
      up.delta({ role: 'assistant', content: '' }) +
      cut(reasoning, sizes).map(up.reasoning).join('') +
      cut(text, sizes).map(up.text).join('') +
      calls +
      up.reason(call ? 'tool_calls' : 'stop') +
      up.done
    )
  },
  messages({ reasoning = '', text, call }, sizes) {
    const thinking = cut(reasoning, sizes).map((piece) => up.blockDelta(0, { type: 'thinking_delta', thinking: piece }))
    return (
      up.messageStart({}) +
      up.blockStart(0, { type: 'thinking', thinking: '', signature: '' }) +
      thinking.join('') +
      up.blockDelta(0, { type: 'signature_delta', signature: 'hosted' }) +
      up.blockStop(0) +
      up.textBlock(1, ...cut(text, sizes)) +
      (call ? up.toolBlock(2, call.name, ...cut(call.args, sizes)) : '') +
      up.messageDelta(call ? 'tool_use' : 'end_turn', {}) +
      up.messageStop
    )
  },
  responses(said, sizes) {
    const { reasoning = '', text, call } = said
    return up.events(
      up.created,
      up.added(0, { ...up.summary(0), summary: [] }),
      ...cut(reasoning, sizes).map((piece) => up.summaryDelta(0, 0, piece)),
      up.itemDone(0, up.summary(0, ...(reasoning ? [reasoning] : []))),
      ...up.wholeMessage(1, ...cut(text, sizes)),
      ...(call ? up.wholeCall(2, call.name, ...cut(call.args, sizes)) : []),
      up.terminal('completed', outputOf(said), { usage: null }),
    )
  },
}

/** The same as one JSON body. */
export const bodies: Record<ClientWire, (said: Said) => string> = {
  chat({ reasoning = '', text, call }) {
    const fn = call && { name: call.name, arguments: call.args }
    const calls = fn && { tool_calls: [{ id: 'call_hosted', type: 'function', function: fn }] }
    const message = { content: text, ...(reasoning && { reasoning_content: reasoning }), ...calls }
    return up.completion(message, call ? 'tool_calls' : 'stop', { usage: undefined })
  },
  messages({ reasoning = '', text, call }) {
    const content = [
      { type: 'thinking', thinking: reasoning, signature: 'hosted' },
      { type: 'text', text },
      ...(call ? [{ type: 'tool_use', id: 'toolu_hosted', name: call.name, input: 'INPUT' }] : []),
    ]
    const body = {
      id: 'msg_hosted',
      type: 'message',
      role: 'assistant',
      model: 'hosted',
      content,
      stop_reason: 'end_turn',
    }
    // The input stands in the body as the model wrote it, blanks included.
    return JSON.stringify(body).replace('"INPUT"', () => call?.args ?? '')
  },
  responses: (said) =>
    JSON.stringify({ id: 'resp_hosted', object: 'response', status: 'completed', output: outputOf(said), usage: null }),
}

/** The same JSON in ASCII, as some servers write it. */
export function escaped(json: string): string {
  return json.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

function outputOf({ reasoning = '', text, call }: Said): Record<string, unknown>[] {
  return [
    up.summary(0, ...(reasoning ? [reasoning] : [])),
    up.message(1, text),
    ...(call ? [up.functionCall(2, call.name, call.args)] : []),
  ]
}

function cut(text: string, sizes: readonly number[]): string[] {
  const pieces: string[] = []
  for (let at = 0, turn = 0; at < text.length; turn++) {
    const size = sizes[turn % sizes.length]!
    pieces.push(text.slice(at, at + size))
    at += size
  }
  return pieces
}
