import { sseText } from '../../bytes/sse.ts'
import type { Answer, AnswerBlock, BilledEvent } from '../../inference/answer.ts'
import type { Usage } from '../../inference/usage.ts'
import { factsOfFault } from '../answers/faults.ts'
import type { AnswerHead, Encoder } from '../wire.ts'
import { createItem, createResponse, encodeItem, failedCode, type OutputItem } from './output-item.ts'
import { encodeIncomplete } from './stop-reasons.ts'

/**
 * The stream for a client. It has every event of the official sequence, since SDK helpers rely on each (ruling T12).
 */
export class ResponsesEncoder implements Encoder {
  readonly #head: AnswerHead
  readonly #response: ReturnType<typeof createResponse>
  readonly #open = new Map<number, OutputItem>()
  /** The JSON of each item that has ended, by the item's index. The last event contains all of them. */
  readonly #done: string[] = []
  /** The items that were cut off. Each of them is ended later, unless the answer fails. */
  #cut: [item: OutputItem, whole: string][] = []
  #hasReported = false
  #sequence = 0
  #hasStarted = false

  constructor(head: AnswerHead) {
    this.#head = head
    this.#response = createResponse(head)
  }

  write(event: BilledEvent): string {
    const ended = this.#cut.length > 0 && event.type !== 'fail' && event.type !== 'block_stop' ? this.#endCut() : ''
    return ended === '' ? this.#writeNext(event) : ended + this.#writeNext(event)
  }

  compact(): void {
    for (const item of this.#open.values()) item.compact()
  }

  #writeNext(event: BilledEvent): string {
    switch (event.type) {
      case 'start':
        return ''
      case 'block_start':
        return this.#start(event.index, event.block)
      case 'block_delta':
        return this.#open.get(event.index)!.delta(this.#next, event.text)
      case 'block_seal':
        this.#open.get(event.index)!.seal(event.sealed)
        return ''
      case 'block_stop':
        return this.#stop(event.index, event.cut)
      case 'usage':
        this.#hasReported = true
        return ''
      case 'alive':
        return `${this.#begin()}: ping\n\n`
      case 'finish':
        return this.#finish(event)
      case 'fail':
        return this.#fail(event)
    }
  }

  #begin(): string {
    if (this.#hasStarted) return ''
    this.#hasStarted = true
    const members = `"response":${this.#response({ status: 'in_progress', output: [], usage: null })}`
    return this.#next('response.created', members) + this.#next('response.in_progress', members)
  }

  #start(index: number, block: AnswerBlock): string {
    const item = createItem(index, block, this.#head)
    this.#open.set(index, item)
    return this.#begin() + item.start(this.#next)
  }

  #stop(index: number, cut: boolean): string {
    const item = this.#open.get(index)!
    this.#open.delete(index)
    const whole = item.whole(cut)
    this.#done[index] = whole
    if (!cut) return item.stop(this.#next, whole)
    this.#cut.push([item, whole])
    return ''
  }

  /**
   * Writes the delayed end events of cut items. They are not written if the answer fails, because agents run a call
   * whose end they receive (ruling T24).
   */
  #endCut(): string {
    const events = this.#cut.map(([item, whole]) => item.stop(this.#next, whole))
    this.#cut = []
    return events.join('')
  }

  #finish({ reason, usage }: Extract<BilledEvent, { type: 'finish' }>): string {
    const incomplete = encodeIncomplete(reason)
    const status = incomplete ? 'incomplete' : 'completed'
    const ended = this.#response({ status, incomplete, output: this.#done, usage })
    return this.#begin() + this.#next(`response.${status}`, `"response":${ended}`)
  }

  #fail(event: Extract<BilledEvent, { type: 'fail' }>): string {
    const facts = factsOfFault(event.fault)
    const error = { code: failedCode(facts), message: facts.message }
    const usage = this.#hasReported ? event.usage : null
    const ended = this.#response({ status: 'failed', error, output: this.#done, usage })
    return this.#begin() + this.#next('response.failed', `"response":${ended}`)
  }

  /**
   * Writes one event with the next sequence number. Items use this function too. @param members the other members as
   * JSON text
   */
  readonly #next = (type: string, members: string): string =>
    sseText(type, `{"type":"${type}","sequence_number":${this.#sequence++},${members}}`)
}

/** Encodes the whole JSON answer for a client. A stream ends with the same object. */
export function encodeAnswer(answer: Answer, head: AnswerHead, usage: Usage): string {
  const incomplete = encodeIncomplete(answer.reason)
  const output = answer.blocks.map((folded, index) =>
    encodeItem(index, folded, head, folded.cut ? 'incomplete' : 'completed'),
  )
  const status = incomplete ? 'incomplete' : 'completed'
  return createResponse(head)({ status, incomplete, output, usage })
}
