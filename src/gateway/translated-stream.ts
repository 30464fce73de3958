import { ownCopy } from '../bytes/own-copy.ts'
import { createSseReader, cutFrame } from '../bytes/sse.ts'
import type { AnswerEvent, Fault, StopReason } from '../inference/answer.ts'
import type { Spoken, Stage } from '../inference/meter.ts'
import type { Usage, UsageReport } from '../inference/usage.ts'
import type { Decoder } from '../wires/answers/decode-frames.ts'
import type { ErrorFacts } from '../wires/answers/envelope.ts'
import { faultOfFacts } from '../wires/answers/faults.ts'
import type { RelayState, StreamRelay } from '../wires/answers/relay.ts'
import type { AnswerHead, ClientHalf, Encoder } from '../wires/wire.ts'
import { type AnswerPlan, AnswerRun } from './answer-run.ts'

/**
 * A model's stream for a client of another wire: bytes become frames, events, filtered events, frames and text. The last
 * event waits until the bill is known, so that the client is shown what was billed.
 */
export class TranslatedStream implements StreamRelay {
  readonly encoding = 'utf8'
  state: RelayState = 'unseen'
  hasShown = false
  fault: Fault | undefined
  events = 0
  readonly #plan: AnswerPlan
  readonly #run: AnswerRun
  readonly #reader = createSseReader()
  readonly #decoder: Decoder
  readonly #encoder: Encoder
  #finish: Extract<AnswerEvent, { type: 'finish' }> | undefined

  constructor(plan: AnswerPlan, target: ClientHalf, head: AnswerHead) {
    this.#plan = plan
    this.#run = new AnswerRun(plan)
    this.#decoder = plan.source.createDecoder(plan.profile, this.#run.onAnswer, plan.toolNames)
    this.#encoder = target.createEncoder(head)
  }

  get report(): UsageReport {
    return this.#run.report
  }

  get stage(): Stage {
    return this.#run.meter.stage
  }

  get reason(): StopReason | undefined {
    return this.#finish?.reason
  }

  spoken(): Spoken {
    return this.#run.meter.spoken()
  }

  get isSpent(): boolean {
    return this.#run.isSpent
  }

  hush(): void {
    this.#run.hush()
  }

  compact(): void {
    this.#reader.compact()
    this.#run.meter.compact(ownCopy)
    this.#encoder.compact()
  }

  push(chunk: Uint8Array): string {
    let text = ''
    for (const frame of this.#reader.push(chunk)) {
      if (frame.data !== '') this.events++
      text += this.#show(this.#decoder.push(frame))
    }
    const isEnding = this.state !== 'unseen' && this.state !== 'shown'
    return this.#run.isTooLong && !isEnding ? text + this.#giveUp() : text
  }

  end(): string {
    let text = ''
    for (const frame of this.#reader.end()) text += this.#show(this.#decoder.push(frame))
    return text + this.#show(this.#decoder.end())
  }

  breakOff(): string {
    return this.#decoder.isEnough ? this.#show(this.#decoder.end()) : ''
  }

  pushWhole(body: Buffer): string {
    this.events++
    return this.#show(this.#plan.source.decodeAnswer(body.toString('utf8'), this.#plan.profile, this.#run.onAnswer))
  }

  estimateOutput(): number {
    return this.#run.estimateOutput()
  }

  finish(usage: Usage): string {
    // Closing a stream without its end would hide the failure from the client: report it as a bug.
    if (!this.#finish) throw new Error(`a stream of ${this.events} events has no end to tell: ${this.state}`)
    return this.#encoder.write({ ...this.#finish, usage })
  }

  keepAlive(): string {
    return this.#encoder.write({ type: 'alive' })
  }

  failure(facts: ErrorFacts, usage: Usage): string {
    // Open blocks are closed as cut before the failure is sent (I3).
    const text = this.fault ? '' : this.#show(this.#decoder.push(cutFrame))
    return text + this.#encoder.write({ type: 'fail', fault: faultOfFacts(facts), usage })
  }

  /** The answer is larger than we keep: open blocks are closed as cut (B10). */
  #giveUp(): string {
    const text = this.#show(this.#decoder.push(cutFrame))
    this.fault = { kind: 'broken', text: '', unread: 'oversize' }
    return text
  }

  #show(events: Iterable<AnswerEvent>): string {
    let text = ''
    for (const event of this.#run.take(events)) {
      if (event.type === 'finish') {
        this.hasShown = true
        this.state = 'stopped'
        this.#finish = event
      } else if (event.type === 'fail') this.fault = event.fault
      else {
        // An empty text block shows nothing yet; a call does (translation 4.1).
        const isShown =
          event.type === 'block_delta' || (event.type === 'block_start' && event.block.kind === 'tool_call')
        if (isShown && this.state === 'unseen') {
          this.state = 'shown'
          this.hasShown = true
        }
        text += this.#encoder.write(event)
      }
    }
    if (this.fault) this.state = 'failed'
    else if (this.#run.meter.isComplete()) this.state = 'finished'
    else if (this.#run.isSpent && this.state !== 'stopped') this.state = 'failed'
    return text
  }
}
