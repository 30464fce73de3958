import type { Answer, AnswerBlock, BilledEvent } from '../../inference/answer.ts'
import { mintId } from '../../inference/ids.ts'
import type { Usage } from '../../inference/usage.ts'
import { factsOfFault, plainEnvelope } from '../answers/faults.ts'
import type { AnswerHead, Encoder } from '../wire.ts'
import { encodeStopReason } from './stop-reasons.ts'
import { encodeUsage } from './usage.ts'

/** The text that ends a chunk with a delta. Our chunks have all members of the vendor's chunks (ruling Y3). */
const deltaEnd = '},"logprobs":null,"finish_reason":null}]}\n\n'

/** The stream for a client: one chunk with the role, the deltas, one finish reason, one usage chunk, `[DONE]`. */
export class ChatEncoder implements Encoder {
  readonly #envelope: string
  readonly #deltaStart: string
  readonly #service: AnswerHead['service']
  /** For each open block, the constant text before and after the text of its deltas. */
  readonly #frames = new Map<number, { start: string; end: string }>()
  #hasStarted = false
  #calls = 0
  #hasReasoned = false
  /** The number of a reasoning block that has no text yet. Its first text is written after a separator. */
  #fresh: number | undefined

  constructor(head: AnswerHead) {
    this.#envelope = JSON.stringify({
      id: mintId('chatcmpl-', head.requestId, ''),
      object: 'chat.completion.chunk',
      created: head.createdSeconds,
      model: head.modelId,
    }).slice(0, -1)
    this.#service = head.service
    this.#deltaStart = `data: ${this.#envelope},"choices":[{"index":0,"delta":`
  }

  write(event: BilledEvent): string {
    switch (event.type) {
      case 'start':
      case 'block_seal':
      case 'usage':
        return ''
      case 'block_start':
        return this.#start(event.index, event.block)
      case 'block_delta':
        return this.#delta(event.index, event.text)
      case 'block_stop':
        this.#frames.delete(event.index)
        return ''
      case 'alive':
        return `${this.#begin()}: ping\n\n`
      case 'finish':
        return this.#finish(event)
      case 'fail':
        // The stream has begun, so a failure is reported by an error frame without a terminator (ruling T4).
        return `data: ${plainEnvelope(factsOfFault(event.fault))}\n\n`
    }
  }

  #begin(): string {
    if (this.#hasStarted) return ''
    this.#hasStarted = true
    return `${this.#deltaStart}{"role":"assistant","content":"","refusal":null,"annotations":[]${deltaEnd}`
  }

  #start(index: number, block: AnswerBlock): string {
    if (block.kind === 'tool_call') return this.#startCall(index, block.callId, block.name)
    if (block.kind === 'reasoning') this.#fresh = index
    this.#frames.set(index, { start: `${this.#deltaStart}{"${contentFields[block.kind]}":`, end: deltaEnd })
    return ''
  }

  #startCall(index: number, id: string, name: string): string {
    const call = this.#calls++
    const first = { index: call, id, type: 'function', function: { name, arguments: '' } }
    this.#frames.set(index, {
      start: `${this.#deltaStart}{"tool_calls":[{"index":${call},"function":{"arguments":`,
      end: `}}]${deltaEnd}`,
    })
    return `${this.#begin()}${this.#deltaStart}{"tool_calls":[${JSON.stringify(first)}]${deltaEnd}`
  }

  #delta(index: number, text: string): string {
    const frame = this.#frames.get(index)!
    let words = text
    if (index === this.#fresh) {
      if (this.#hasReasoned) words = `\n\n${text}`
      this.#hasReasoned = true
      this.#fresh = undefined
    }
    return this.#begin() + frame.start + JSON.stringify(words) + frame.end
  }

  #finish(event: Extract<BilledEvent, { type: 'finish' }>): string {
    const reason = JSON.stringify(encodeStopReason(event.reason))
    const usage = JSON.stringify(encodeUsage(event.usage))
    const tier = this.#service?.().tier ?? undefined
    const member = tier === undefined ? '' : `,"service_tier":${JSON.stringify(tier)}`
    const last = `${this.#deltaStart}{},"logprobs":null,"finish_reason":${reason}}]${member}}\n\n`
    return `${this.#begin()}${last}data: ${this.#envelope},"choices":[]${member},"usage":${usage}}\n\ndata: [DONE]\n\n`
  }
}

const contentFields = { text: 'content', refusal: 'refusal', reasoning: 'reasoning_content' } as const

/**
 * Encodes the whole JSON answer for a client. An answer of this wire has only one text and only one reasoning text, so
 * the blocks of each kind are joined.
 */
export function encodeAnswer(answer: Answer, head: AnswerHead, usage: Usage): string {
  const texts: Record<keyof typeof contentFields, string[]> = { text: [], refusal: [], reasoning: [] }
  const calls: object[] = []
  // A loop, because `filter`, `map` and `flat` take ten times as long for one block. Most answers have one block.
  for (const { block, text } of answer.blocks) {
    if (block.kind === 'tool_call')
      calls.push({ id: block.callId, type: 'function', function: { name: block.name, arguments: text } })
    else if (text !== '') texts[block.kind].push(text)
  }
  const [content, refusal] = [texts.text.join(''), texts.refusal.join('')]
  const reasoning = texts.reasoning.join('\n\n')
  const message = {
    role: 'assistant',
    content: content === '' && (calls.length > 0 || refusal !== '') ? null : content,
    refusal: refusal === '' ? null : refusal,
    // The list is empty, as in the vendor's answers, because only providers' own tools add annotations (ruling Y3).
    annotations: [],
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(calls.length > 0 && { tool_calls: calls }),
  }
  return JSON.stringify({
    id: mintId('chatcmpl-', head.requestId, ''),
    object: 'chat.completion',
    created: head.createdSeconds,
    model: head.modelId,
    choices: [{ index: 0, message, logprobs: null, finish_reason: encodeStopReason(answer.reason) }],
    service_tier: head.service?.().tier ?? undefined,
    usage: encodeUsage(usage),
  })
}
