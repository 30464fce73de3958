import { createSseReader, cutFrame } from '../bytes/sse.ts'
import type { AnswerEvent, Fault } from '../inference/answer.ts'
import { createFold } from '../inference/fold.ts'
import type { Stage } from '../inference/meter.ts'
import type { Usage, UsageReport } from '../inference/usage.ts'
import type { RelayState, StreamFold, WholeAnswer } from '../wires/answers/relay.ts'
import type { AnswerHead, ClientHalf } from '../wires/wire.ts'
import { type AnswerPlan, AnswerRun } from './answer-run.ts'

/**
 * A translated answer for a client that wants JSON. It folds the events that a stream would have, whether the model sent
 * one body or a stream (translation 1.2).
 */
export class TranslatedWhole implements StreamFold {
  state: RelayState = 'unseen'
  #fault: Fault | undefined
  events = 0
  readonly #plan: AnswerPlan
  readonly #target: ClientHalf
  readonly #head: AnswerHead
  readonly #run
  readonly #fold = createFold()
  readonly #reader = createSseReader()
  readonly #decoder

  constructor(plan: AnswerPlan, target: ClientHalf, head: AnswerHead) {
    this.#plan = plan
    this.#target = target
    this.#head = head
    this.#run = new AnswerRun(plan)
    this.#decoder = plan.source.createDecoder(plan.profile, this.#run.onAnswer, plan.toolNames)
  }

  get stage(): Stage {
    return this.#run.meter.stage
  }

  get report(): UsageReport {
    return this.#run.report
  }

  get isSpent(): boolean {
    return this.#run.isSpent
  }

  push(chunk: Uint8Array): void {
    for (const frame of this.#reader.push(chunk)) {
      if (frame.data !== '') this.events++
      this.#take(this.#decoder.push(frame))
    }
    if (this.state !== 'stopped' && this.#run.isTooLong) this.#fail({ kind: 'broken', text: '', unread: 'oversize' })
  }

  end(): void {
    for (const frame of this.#reader.end()) this.#take(this.#decoder.push(frame))
    this.#take(this.#decoder.end())
  }

  breakOff(): void {
    if (this.#decoder.isEnough) this.#take(this.#decoder.end())
  }

  /** Takes the model's one JSON body. */
  pushWhole(body: Buffer): void {
    this.#take(this.#plan.source.decodeAnswer(body.toString('utf8'), this.#plan.profile, this.#run.onAnswer))
  }

  whole(): WholeAnswer {
    if (this.#fault) return { state: 'failed', fault: this.#fault }
    if (this.state === 'unseen') this.#take(this.#decoder.push(cutFrame))
    const outcome = this.#fold.outcome()
    if (outcome === 'none') return { state: 'failed', fault: { kind: 'truncated', text: '' } }
    if ('fault' in outcome) return { state: 'failed', fault: outcome.fault }
    const run = this.#run
    const read = {
      report: run.report,
      reason: outcome.answer.reason,
      estimateOutput: () => run.estimateOutput(),
      encode: (usage: Usage) => this.#target.encodeAnswer(outcome.answer, this.#head, usage),
    }
    return run.meter.isComplete()
      ? { state: 'finished', ...read }
      : { state: 'stopped', spoken: () => run.meter.spoken(), ...read }
  }

  #take(events: Iterable<AnswerEvent>): void {
    for (const event of this.#run.take(events)) {
      this.#fold.push(event)
      if (event.type === 'finish') this.state = 'stopped'
      else if (event.type === 'fail') this.#fail(event.fault)
    }
    if (this.#run.meter.isComplete()) this.state = 'finished'
  }

  #fail(fault: Fault): void {
    this.state = 'failed'
    this.#fault ??= fault
  }
}
