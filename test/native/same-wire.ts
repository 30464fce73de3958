import type { Model } from '../../src/catalog/model.ts'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { noUsage } from '../../src/inference/usage.ts'
import { wires } from '../../src/wires/wires.ts'
import { framesOf } from '../translation/grammar.ts'
import { modelOf } from './models.ts'

/** What a client is sent of a model's stream of its own wire, its end included. @param cut sizes of the first pieces */
export function playNatively(
  wire: ClientWire,
  script: string,
  cut: readonly number[] = [],
  model: Model = modelOf(wire),
): string {
  const head = { requestId: 'req_1', createdSeconds: 1_795_000_000, inputTokensEstimate: 11 }
  const relay = wires[wire].native.openStream({ ...head, model })
  const bytes = Buffer.from(script)
  let text = ''
  let at = 0
  const isOver = () => relay.state === 'finished' || relay.state === 'failed'
  for (const size of [...cut, bytes.length]) {
    if (!isOver()) text += relay.push(bytes.subarray(at, at + size))
    at += size
  }
  if (!isOver()) text += relay.end()
  const usage = { ...noUsage, inputTokens: 9, outputTokens: 7 }
  const facts = { status: 502, code: 'upstream_error', message: 'failed', param: null } as const
  text += relay.state === 'finished' ? relay.finish(usage) : relay.failure(facts, usage)
  return Buffer.from(text, relay.encoding).toString()
}

// biome-ignore lint/suspicious/noExplicitAny: a test reads JSON as a client does.
type Json = Record<string, any>

/**
 * A client that reads the messages wire strictly and empties every start, as agents do. It throws where the stream is
 * against the grammar of message-wire §9.
 * @returns what it has of the answer; undefined if the answer failed
 */
export function contentOfMessages(text: string): { content: Json[]; reason: string } | undefined {
  const content: Json[] = []
  let phase = 'before'
  let open: Json | undefined
  let input = ''
  let reason = ''
  const expect = (isRight: boolean, what: string) => {
    if (!isRight) throw new Error(`${what} in ${text}`)
  }
  for (const { event: line, data } of framesOf(text.replaceAll('\r\n', '\n'))) {
    const event: Json = JSON.parse(data)
    const { type, index } = event
    expect(line === type, `event ${line} of type ${type}`)
    if (type === 'error') return undefined
    if (type === 'ping') continue
    if (type === 'message_start') {
      expect(phase === 'before' && event['message'].content.length === 0, 'message_start')
      expect(event['message'].usage.input_tokens >= 0, 'usage')
      phase = 'blocks'
    } else if (type === 'content_block_start') {
      expect(phase === 'blocks' && open === undefined && index === content.length, `start of ${index}`)
      const { citations: _, ...block }: Json = event['content_block']
      for (const member of ['text', 'thinking', 'signature']) if (member in block) block[member] = ''
      open = block
      input = ''
      content.push(block)
    } else if (type === 'content_block_delta') {
      const { delta } = event
      expect(open !== undefined && index === content.length - 1, `delta of ${index}`)
      if (delta.type === 'text_delta') open!['text'] += delta.text
      else if (delta.type === 'thinking_delta') open!['thinking'] += delta.thinking
      else if (delta.type === 'signature_delta') open!['signature'] = delta.signature
      else if (delta.type === 'citations_delta') open!['citations'] = [...(open!['citations'] ?? []), delta.citation]
      else if (delta.type === 'input_json_delta') input += delta.partial_json
    } else if (type === 'content_block_stop') {
      expect(open !== undefined && index === content.length - 1, `stop of ${index}`)
      if (`${open!['type']}`.endsWith('tool_use')) {
        const { type } = open!
        content[index] = { type, input: JSON.parse(input || '{}') }
      }
      open = undefined
    } else if (type === 'message_delta') {
      expect(open === undefined, 'message_delta within a block')
      expect(Number.isInteger(event['usage'].output_tokens), 'usage')
      reason = event['delta'].stop_reason ?? reason
      phase = 'delta'
    } else if (type === 'message_stop') {
      expect(phase === 'delta' && reason !== '', 'message_stop')
      return { content, reason }
    }
  }
  throw new Error(`no end in ${text}`)
}
