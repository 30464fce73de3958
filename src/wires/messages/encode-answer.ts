import { sseText } from '../../bytes/sse.ts'
import type { Answer, AnswerBlock, BilledEvent, FoldedBlock } from '../../inference/answer.ts'
import { mintId } from '../../inference/ids.ts'
import { objectOfArguments } from '../../inference/raw-arguments.ts'
import { noUsage, type Usage } from '../../inference/usage.ts'
import { factsOfFault } from '../answers/faults.ts'
import type { AnswerHead, Encoder } from '../wire.ts'
import { envelope } from './envelope.ts'
import { encodeStopReason } from './stop-reasons.ts'
import { encodeUsage } from './usage.ts'

/** A block that started while another was open, with the text received for it. */
type QueuedBlock = { block: AnswerBlock; text: string; isStopped: boolean }

/**
 * The stream for a client. Clients apply a stop event to the block that began last. So only one block, the front block,
 * is open at a time. Its text is written at once. Later blocks wait with their text until the front block has ended.
 */
export class MessagesEncoder implements Encoder {
  readonly #head: AnswerHead
  #hasStarted = false
  #refuses = false
  #front: number | undefined
  /**
   * Whether the front block (the only open block) was cut. Its stop event waits, and is not sent if an error comes
   * (translation 4.3).
   */
  #isCut = false
  /** The front block's number in the client's stream. */
  #number = -1
  #deltaStart = ''
  #deltaEnd = ''
  readonly #waiting = new Map<number, QueuedBlock>()

  constructor(head: AnswerHead) {
    this.#head = head
  }

  write(event: BilledEvent): string {
    const goesOn = this.#isCut && event.type !== 'fail' && event.type !== 'block_stop'
    return goesOn ? this.#stop() + this.#advance() + this.#writeNext(event) : this.#writeNext(event)
  }

  #writeNext(event: BilledEvent): string {
    switch (event.type) {
      case 'start':
      case 'block_seal':
      case 'usage':
        return ''
      case 'block_start':
        return this.#startBlock(event.index, event.block)
      case 'block_delta':
        return this.#delta(event.index, event.text)
      case 'block_stop':
        return this.#stopBlock(event.index, event.cut)
      case 'alive':
        return `${this.#begin()}event: ping\ndata: {"type":"ping"}\n\n`
      case 'finish':
        return this.#finish(event)
      case 'fail':
        // The stream has begun, so a failure is reported by an error frame without a terminator (ruling T4).
        return sseText('error', envelope(factsOfFault(event.fault), this.#head.requestId))
    }
  }

  #begin(): string {
    if (this.#hasStarted) return ''
    this.#hasStarted = true
    const message = {
      ...startOfMessage(this.#head),
      content: [],
      stop_reason: null,
      stop_sequence: null,
      ...messageMembers,
      // The true figures follow in message_delta. A zero here would make agents' context meters show nothing (ruling
      // T1).
      usage: encodeWholeUsage({ ...noUsage, inputTokens: this.#head.inputTokensEstimate }, this.#head),
    }
    return sseText('message_start', JSON.stringify({ type: 'message_start', message }))
  }

  #startBlock(index: number, block: AnswerBlock): string {
    if (block.kind === 'refusal') this.#refuses = true
    if (this.#front === undefined) return this.#begin() + this.#start(index, block)
    this.#waiting.set(index, { block, text: '', isStopped: false })
    return ''
  }

  #delta(index: number, text: string): string {
    if (index === this.#front) return this.#deltaStart + JSON.stringify(text) + this.#deltaEnd
    const block = this.#waiting.get(index)
    if (block) block.text += text
    return ''
  }

  #stopBlock(index: number, cut: boolean): string {
    if (index === this.#front) {
      this.#isCut = cut
      return cut ? '' : this.#stop() + this.#advance()
    }
    const block = this.#waiting.get(index)
    if (block) block.isStopped = true
    return ''
  }

  #finish(event: Extract<BilledEvent, { type: 'finish' }>): string {
    const stopReason = encodeStopReason(event.reason, this.#refuses)
    const delta = { ...deltaMembers, stop_reason: stopReason, stop_sequence: stopSequenceOf(event) }
    const usage = encodeWholeUsage(event.usage, this.#head)
    return (
      this.#begin() +
      sseText('message_delta', JSON.stringify({ type: 'message_delta', delta, usage })) +
      sseText('message_stop', '{"type":"message_stop"}')
    )
  }

  #start(index: number, block: AnswerBlock): string {
    this.#front = index
    this.#number++
    const number = this.#number
    const [type, field] = deltaNames[block.kind]
    this.#deltaStart = `event: content_block_delta\ndata: {"type":"content_block_delta","index":${number},"delta":{"type":"${type}","${field}":`
    this.#deltaEnd = '}}\n\n'
    const content_block = startOf(block)
    return sseText('content_block_start', JSON.stringify({ type: 'content_block_start', index: number, content_block }))
  }

  #stop(): string {
    this.#front = undefined
    this.#isCut = false
    return sseText('content_block_stop', `{"type":"content_block_stop","index":${this.#number}}`)
  }

  /** Writes the waiting blocks in order. Stops after the first block that is still open. */
  #advance(): string {
    let text = ''
    for (const [index, block] of this.#waiting) {
      this.#waiting.delete(index)
      text += this.#start(index, block.block)
      if (block.text !== '') text += this.#deltaStart + JSON.stringify(block.text) + this.#deltaEnd
      if (!block.isStopped) break
      text += this.#stop()
    }
    return text
  }
}

/** For each kind of block, the type of its deltas and the member with the text. */
const deltaNames = {
  text: ['text_delta', 'text'],
  refusal: ['text_delta', 'text'],
  reasoning: ['thinking_delta', 'thinking'],
  tool_call: ['input_json_delta', 'partial_json'],
} as const

/**
 * Returns the block for its start event. A thinking block gets an empty signature, because some SDKs require one. They
 * read it as "unsigned" (ruling T10).
 */
function startOf(block: AnswerBlock): object {
  if (block.kind === 'reasoning') return { type: 'thinking', thinking: '', signature: '' }
  if (block.kind === 'tool_call') {
    return { type: 'tool_use', id: block.callId, name: block.name, input: {}, ...callMembers }
  }
  return { type: 'text', text: '', ...textMembers }
}

function stopSequenceOf(event: { reason: string; stopSequence?: string }): string | null {
  return event.reason === 'stop_sequence' ? (event.stopSequence ?? null) : null
}

function startOfMessage({ requestId, modelId }: AnswerHead): object {
  return { id: mintId('msg_', requestId, ''), type: 'message', role: 'assistant', model: modelId }
}

/** Encodes the whole JSON answer for a client. A tool's input is written exactly as the model wrote it (ruling T16). */
export function encodeAnswer(answer: Answer, head: AnswerHead, usage: Usage): string {
  const refuses = answer.blocks.some(({ block }) => block.kind === 'refusal')
  const end = {
    stop_reason: encodeStopReason(answer.reason, refuses),
    stop_sequence: stopSequenceOf(answer),
    ...messageMembers,
    usage: encodeWholeUsage(usage, head),
  }
  const content = answer.blocks.map(encodeBlock).join(',')
  return `${JSON.stringify(startOfMessage(head)).slice(0, -1)},"content":[${content}],${JSON.stringify(end).slice(1)}`
}

function encodeBlock({ block, text }: FoldedBlock): string {
  if (block.kind === 'reasoning') return JSON.stringify({ type: 'thinking', thinking: text, signature: '' })
  if (block.kind !== 'tool_call') return JSON.stringify({ type: 'text', text, ...textMembers })
  const call = { type: 'tool_use', id: block.callId, name: block.name, ...callMembers }
  return `${JSON.stringify(call).slice(0, -1)},"input":${objectOfArguments(text)}}`
}

/*
 * Members that the vendor's SDK types require, but that a translated answer has no values for (ruling Y3). They are
 * null or empty, as the types allow. Source: `resources/messages/messages.d.ts` of @anthropic-ai/sdk 1.12.
 */

/** Required members of a message. The event `message_delta` repeats the members in `deltaMembers`. */
const messageMembers = { container: null, diagnostics: null, stop_details: null }
const deltaMembers = { container: null, stop_details: null }

/** Required members of a text block. One SDK fails if `citations` is null, so it is an empty list (message-wire §7). */
const textMembers = { citations: [] }

/** Required members of a call. `direct`: the model made the call, not a hosted tool. */
const callMembers = { caller: { type: 'direct' } }

/** All counters of a translated answer. */
function encodeWholeUsage(usage: Usage, { service }: Pick<AnswerHead, 'service'>): object {
  const { speed = null, capacity = null, geo = null } = service?.() ?? {}
  const { cacheWriteTokens, cacheWrite1hTokens, reasoningTokens } = usage
  return {
    cache_creation: {
      ephemeral_5m_input_tokens: cacheWriteTokens - cacheWrite1hTokens,
      ephemeral_1h_input_tokens: cacheWrite1hTokens,
    },
    output_tokens_details: { thinking_tokens: reasoningTokens },
    server_tool_use: null,
    service_tier: capacity,
    inference_geo: geo,
    speed,
    ...encodeUsage(usage),
  }
}
