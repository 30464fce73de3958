import { asObject, parseKeeping } from '../../bytes/json.ts'
import { type SseFrame, sseText } from '../../bytes/sse.ts'
import type { Step } from '../../bytes/step.ts'
import type { Profile } from '../../catalog/profile.ts'
import type { AnswerBlock, AnswerEvent, BilledEvent } from '../../inference/answer.ts'
import { mintId } from '../../inference/ids.ts'
import { createNarrator, type Narrator } from '../../inference/narrator.ts'
import { factsOfFault, faultOfError, truncatedFault } from '../answers/faults.ts'
import { readFrame, stringOf, unreadable } from '../answers/read-answer.ts'
import type { AnswerHead } from '../wire.ts'
import { envelope } from './envelope.ts'
import { decodeStopReason, encodeStopReason } from './stop-reasons.ts'
import { decodeStartUsage, decodeUsage, encodeUsage } from './usage.ts'

/** A block of the upstream while it is read. */
type Incoming = {
  index: number
  kind: 'text' | 'reasoning' | 'tool_call'
  /** Arguments that stood in the start event; deltas replace them, since some models send both. */
  initial: string
  signature: string
}

/**
 * A model's stream. Complete is `message_stop`, or a stop reason and then a clean end. Blocks go by their number. A
 * stop is told only when the next thing comes: text right behind text is the same block, and which block a cap has cut
 * is known only afterwards.
 */
export function createDecoder(profile: Profile): Step<SseFrame, AnswerEvent> {
  const narrator = createNarrator()
  const read = createReader(narrator, profile)
  return {
    push(frame) {
      if (narrator.isOver) return []
      const object = readFrame(frame, narrator)
      if (object === 'done') read.end()
      else if (object) read.event(stringOf(object['type']) ?? frame.event ?? '', object, frame.data)
      return narrator.take()
    },
    end() {
      read.end()
      return narrator.take()
    },
  }
}

/** Shared with the whole JSON answer, whose blocks are read as if they had been streamed. */
export function createReader(narrator: Narrator, profile: Profile) {
  /** By the upstream's number; `ignored` are kinds we do not know. */
  const blocks = new Map<unknown, Incoming | 'ignored'>()
  /** Stopped upstream, and not yet told. */
  let last: Incoming | undefined
  let stopReason: string | undefined
  let stopSequence: string | undefined
  return { event, startBlock, stopBlock, end, finish, usage, reason }

  function event(type: string, object: Record<string, unknown>, text: string) {
    switch (type) {
      case 'message_start':
        narrator.start()
        return narrator.usage(decodeStartUsage(asObject(object['message'])?.['usage'], profile.usageQuirk))
      case 'content_block_start':
        return startBlock(object['index'], asObject(object['content_block']) ?? {}, () =>
          keptInput(text, (root) => asObject(root['content_block'])),
        )
      case 'content_block_delta':
        return delta(object['index'], asObject(object['delta']) ?? {})
      case 'content_block_stop':
        return stopBlock(object['index'])
      case 'message_delta':
        reason(asObject(object['delta']) ?? {})
        return usage(object['usage'])
      case 'message_stop':
        return finish()
      case 'error':
        return narrator.fail(faultOfError(object['error'] ?? object))
      default:
        return narrator.alive()
    }
  }

  function startBlock(number: unknown, block: Record<string, unknown>, input: () => string) {
    if (blocks.has(number)) return narrator.fail(unreadable())
    const known = blockOf(block)
    if (!known) {
      blocks.set(number, 'ignored')
      return
    }
    const isContinued = known.kind === 'text' && last?.kind === 'text'
    if (!isContinued) stopLast()
    if (known.kind !== 'tool_call') breakOpen()
    const incoming: Incoming = isContinued
      ? last!
      : { index: narrator.open(known), kind: known.kind as Incoming['kind'], initial: '', signature: '' }
    last = undefined
    blocks.set(number, incoming)
    if (incoming.kind === 'text') narrator.delta(incoming.index, stringOf(block['text']) ?? '')
    else if (incoming.kind === 'tool_call') incoming.initial = isEmptyObject(block['input']) ? '' : input()
    else if (block['type'] === 'redacted_thinking') {
      const data = stringOf(block['data'])
      if (data) narrator.seal(incoming.index, { kind: 'redacted', data })
    } else {
      narrator.delta(incoming.index, stringOf(block['thinking']) ?? '')
      incoming.signature = stringOf(block['signature']) ?? ''
    }
  }

  function delta(number: unknown, piece: Record<string, unknown>) {
    const incoming = blocks.get(number)
    if (incoming === 'ignored') return
    if (!incoming) return narrator.fail(unreadable())
    switch (piece['type']) {
      case 'text_delta':
        return write(incoming, 'text', piece['text'])
      case 'thinking_delta':
        return write(incoming, 'reasoning', piece['thinking'])
      case 'input_json_delta':
        if (stringOf(piece['partial_json'])) incoming.initial = ''
        return write(incoming, 'tool_call', piece['partial_json'])
      case 'signature_delta':
        incoming.signature += stringOf(piece['signature']) ?? ''
    }
  }

  function write(incoming: Incoming, kind: Incoming['kind'], text: unknown) {
    const words = stringOf(text)
    if (!words) return
    if (incoming.kind === kind) narrator.delta(incoming.index, words)
    else narrator.fail(unreadable())
  }

  function stopBlock(number: unknown) {
    const incoming = blocks.get(number)
    blocks.delete(number)
    if (!incoming || incoming === 'ignored') return
    stopLast()
    last = incoming
    complete(incoming)
  }

  /** What is withheld of a block until its end. */
  function complete(incoming: Incoming) {
    narrator.delta(incoming.index, incoming.initial)
    incoming.initial = ''
    if (incoming.signature && incoming.kind === 'reasoning') {
      narrator.seal(incoming.index, { kind: 'signature', data: incoming.signature })
    }
    incoming.signature = ''
  }

  /** The hub has one text or reasoning open at a time (I4): one that was never stopped ends here. */
  function breakOpen() {
    for (const [number, incoming] of blocks) {
      if (incoming === 'ignored' || incoming.kind === 'tool_call') continue
      complete(incoming)
      narrator.stop(incoming.index)
      blocks.delete(number)
    }
  }

  function stopLast() {
    if (last) narrator.stop(last.index)
    last = undefined
  }

  function usage(raw: unknown) {
    narrator.usage(decodeUsage(raw, profile.usageQuirk))
  }

  function reason(delta: Record<string, unknown>) {
    stopReason = stringOf(delta['stop_reason']) ?? stopReason
    stopSequence = stringOf(delta['stop_sequence']) ?? stopSequence
  }

  function end() {
    if (stopReason === undefined) narrator.fail(truncatedFault())
    else finish()
  }

  function finish() {
    for (const incoming of blocks.values()) if (incoming !== 'ignored') complete(incoming)
    narrator.finish(decodeStopReason(stopReason), stopSequence)
  }
}

/** What a block becomes; undefined for kinds that are not translated, and for calls that no tool could answer. */
function blockOf(block: Record<string, unknown>): AnswerBlock | undefined {
  switch (block['type']) {
    case 'text':
      return { kind: 'text' }
    case 'thinking':
    case 'redacted_thinking':
      return { kind: 'reasoning' }
    case 'tool_use': {
      const name = stringOf(block['name'])
      return name?.trim() ? { kind: 'tool_call', callId: stringOf(block['id']) ?? '', name } : undefined
    }
    default:
      return undefined
  }
}

function isEmptyObject(value: unknown): boolean {
  const object = asObject(value)
  return !object || Object.keys(object).length === 0
}

/** The source text of a block's input: parsing would lose digits (ruling T16). */
export function keptInput(
  text: string,
  find: (root: Record<string, unknown>) => Record<string, unknown> | undefined,
): string {
  const kept = parseKeeping(text, ['input'])
  return kept.raw(find(kept.value as Record<string, unknown>)?.['input']).source
}

/** A block that has started while another was open, with what has come for it. */
type Waiting = { block: AnswerBlock; text: string; isStopped: boolean }

/**
 * The stream for a client. This wire has one open block at a time: clients take a stop to mean the last block they
 * have seen. The front block is written as it comes; blocks that start meanwhile wait with their text.
 */
export function createEncoder(head: AnswerHead): Step<BilledEvent, string> {
  let hasStarted = false
  let refuses = false
  let front: number | undefined
  /** The front block was cut: it is stopped once a `finish` follows, and never before an error (translation 4.3). */
  let isCut = false
  /** Wire number of the front block. */
  let number = -1
  let deltaStart = ''
  let deltaEnd = ''
  const waiting = new Map<number, Waiting>()
  return {
    push(event) {
      const text = encode(event)
      return text === '' ? [] : [text]
    },
    end: () => [],
  }

  function encode(event: BilledEvent): string {
    switch (event.type) {
      case 'start':
      case 'block_seal':
      case 'usage':
        return ''
      case 'block_start':
        if (event.block.kind === 'refusal') refuses = true
        if (front === undefined) return begin() + start(event.index, event.block)
        waiting.set(event.index, { block: event.block, text: '', isStopped: false })
        return ''
      case 'block_delta': {
        if (event.index === front) return deltaStart + JSON.stringify(event.text) + deltaEnd
        const block = waiting.get(event.index)
        if (block) block.text += event.text
        return ''
      }
      case 'block_stop': {
        if (event.index === front) {
          isCut = event.cut
          return isCut ? '' : stop() + advance()
        }
        const block = waiting.get(event.index)
        if (block) block.isStopped = true
        return ''
      }
      case 'alive':
        return `${begin()}event: ping\ndata: {"type":"ping"}\n\n`
      case 'finish': {
        const stopReason = encodeStopReason(event.reason, refuses)
        const delta = { stop_reason: stopReason, stop_sequence: stopSequenceOf(event) }
        const usage = encodeUsage(event.usage)
        return (
          begin() +
          (isCut ? stop() + advance() : '') +
          sseText('message_delta', JSON.stringify({ type: 'message_delta', delta, usage })) +
          sseText('message_stop', '{"type":"message_stop"}')
        )
      }
      case 'fail':
        // The stream has begun: an error frame and no terminator is how the client learns of the failure (ruling T4).
        return sseText('error', envelope(factsOfFault(event.fault), head.requestId))
    }
  }

  function begin(): string {
    if (hasStarted) return ''
    hasStarted = true
    const message = {
      id: mintId('msg_', head.requestId, ''),
      type: 'message',
      role: 'assistant',
      model: head.modelId,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      // The true figures follow in message_delta; a zero here would blind the context meters of agents (ruling T1).
      usage: {
        input_tokens: head.inputTokensEstimate,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
        output_tokens: 0,
      },
    }
    return sseText('message_start', JSON.stringify({ type: 'message_start', message }))
  }

  function start(index: number, block: AnswerBlock): string {
    front = index
    number++
    const [type, field] = deltaNames[block.kind]
    deltaStart = `event: content_block_delta\ndata: {"type":"content_block_delta","index":${number},"delta":{"type":"${type}","${field}":`
    deltaEnd = '}}\n\n'
    const content_block = startOf(block)
    return sseText('content_block_start', JSON.stringify({ type: 'content_block_start', index: number, content_block }))
  }

  function stop(): string {
    front = undefined
    return sseText('content_block_stop', `{"type":"content_block_stop","index":${number}}`)
  }

  function advance(): string {
    let text = ''
    for (const [index, block] of waiting) {
      waiting.delete(index)
      text += start(index, block.block)
      if (block.text !== '') text += deltaStart + JSON.stringify(block.text) + deltaEnd
      if (!block.isStopped) break
      text += stop()
    }
    return text
  }
}

/** Type of a block's deltas, and the field that holds the text. */
const deltaNames = {
  text: ['text_delta', 'text'],
  refusal: ['text_delta', 'text'],
  reasoning: ['thinking_delta', 'thinking'],
  tool_call: ['input_json_delta', 'partial_json'],
} as const

/** Thinking carries an empty signature: that is how "without one" is told to SDKs that insist on the key (ruling T10). */
function startOf(block: AnswerBlock): object {
  if (block.kind === 'reasoning') return { type: 'thinking', thinking: '', signature: '' }
  if (block.kind === 'tool_call') return { type: 'tool_use', id: block.callId, name: block.name, input: {} }
  return { type: 'text', text: '' }
}

function stopSequenceOf(event: { reason: string; stopSequence?: string }): string | null {
  return event.reason === 'stop_sequence' ? (event.stopSequence ?? null) : null
}
