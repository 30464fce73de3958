import { ownCopy } from '../bytes/memory.ts'
import { createSseReader, cutFrame } from '../bytes/sse.ts'
import { type RetoldService, retellService } from '../catalog/base-service.ts'
import type { Profile } from '../catalog/profile.ts'
import type { ModelWire } from '../catalog/wire-names.ts'
import type { AnswerEvent, Fault, ShownEvent, StopReason } from '../inference/answer.ts'
import { composeFilters, type FilterOptions } from '../inference/filters/index.ts'
import { createFold } from '../inference/fold.ts'
import { Meter, type Spoken, type Stage } from '../inference/meter.ts'
import { noteAnswer, type Usage, type UsageReport } from '../inference/usage.ts'
import { type ErrorFacts, faultOfFacts } from '../wires/answers/faults.ts'
import { estimateTexts } from '../wires/answers/native-answer.ts'
import { type Decoder, isKeepAlive } from '../wires/answers/read-answer.ts'
import type { RelayState, StreamFold, StreamRelay, WholeAnswer } from '../wires/answers/relay.ts'
import type { AnswerHead, ClientHalf, Encoder, ModelHalf } from '../wires/wire.ts'

/**
 * The largest translated answer, in characters and in blocks (B10, ruling R18). The whole answer is kept, because it is
 * one JSON text, or because the last events of a stream repeat it. Without a limit, an endless answer would fill the
 * memory.
 */
const charactersMax = 32 * 1_048_576
const blocksMax = 10_000
const oversize: Fault = { kind: 'broken', text: '', unread: 'oversize' }

/**
 * The parts of a request that `TranslatedStream` and `TranslatedWhole` need. A plan lives as long as the stream, so it
 * must not refer to the request body, not even indirectly. A kept body of 1 MB would take more memory than all else.
 */
export type AnswerPlan = {
  source: ModelHalf
  /** The wire of the model. */
  wire: ModelWire
  profile: Profile
  filters: Omit<FilterOptions, 'profile'>
  /** The names of the request's tools, as they were sent to the model. */
  toolNames?: ReadonlySet<string>
}

/**
 * A model's answer for a client of another wire. The bytes of the answer are read as frames, and the frames as events.
 * Events are counted as the model sent them, and are then filtered. `show` returns what the client gets for them.
 */
abstract class TranslatedAnswer {
  state: RelayState = 'unseen'
  events = 0
  protected readonly meter = new Meter()
  protected readonly reader = createSseReader()
  protected readonly decoder: Decoder
  readonly #filters
  readonly #wire: ModelWire
  #named: UsageReport = {}
  /** Whether the model has finished or failed, so that nothing more can be learned from it. */
  isSpent = false
  #blocks = 0
  /**
   * The estimated tokens that the client was shown. Set when the answer is over for the client, but not for the model.
   */
  #shownTokens: number | undefined

  constructor(plan: AnswerPlan) {
    this.#wire = plan.wire
    this.#filters = composeFilters({ ...plan.filters, profile: plan.profile })
    this.decoder = plan.source.createDecoder(plan.profile, this.#noteAnswer, plan.toolNames)
  }

  /** Handles events of the model. @returns the text that the client gets for them now */
  protected abstract show(events: Iterable<AnswerEvent>): string

  /** Ends an answer that is larger than we keep (B10). @returns the text that the client gets instead */
  protected abstract giveUp(): string

  /** The usage that the model has reported so far, with the models and the service that it named. */
  get report(): UsageReport {
    const report = this.meter.report()
    const { models, service } = this.#named
    if (service) return { ...report, ...this.#named, service: { ...service, ...report.service } }
    return models ? { ...report, models } : report
  }

  get stage(): Stage {
    return this.meter.stage
  }

  spoken(): Spoken {
    return this.meter.spoken()
  }

  push(chunk: Uint8Array): string {
    let text = ''
    for (const frame of this.reader.push(chunk)) {
      if (frame.data !== '' && !isKeepAlive(frame)) this.events++
      text += this.show(this.decoder.push(frame))
    }
    return this.#blocks > blocksMax || this.meter.characters() > charactersMax ? text + this.giveUp() : text
  }

  end(): string {
    let text = ''
    // A stream that ends inside an event has broken off there. It may be complete without that event (ruling T19).
    for (const frame of this.reader.end())
      if (frame !== cutFrame || !this.decoder.isEnough) text += this.show(this.decoder.push(frame))
    return text + this.show(this.decoder.end())
  }

  breakOff(): string {
    return this.decoder.isEnough ? this.show(this.decoder.end()) : ''
  }

  pushWhole(body: Buffer): string {
    this.events++
    return this.show(this.decoder.whole(body.toString('utf8')))
  }

  /** Shows nothing from here on: later events count only for the usage figures. */
  hush(): void {
    this.#shownTokens ??= this.meter.estimateTokens()
  }

  /** Estimates the output tokens. Text after a call of `hush` does not count (ruling T15). */
  estimateOutput(): number {
    return this.#shownTokens ?? this.meter.estimateTokens()
  }

  /**
   * Returns the filtered events. `alive` events (signs of life) are left out, because the delivery itself sends signs
   * of life during silence (ruling U4).
   */
  protected filter(events: Iterable<AnswerEvent>): ShownEvent[] {
    const shown: ShownEvent[] = []
    for (const event of events) {
      this.meter.push(event)
      this.isSpent ||= event.type === 'finish' || event.type === 'fail'
      // The model's text after a stop sequence is not part of the answer (ruling T15).
      if (this.#shownTokens !== undefined || event.type === 'alive') continue
      for (const filtered of this.#filters.push(event)) {
        shown.push(filtered)
        if (filtered.type === 'block_start') this.#blocks++
        if (filtered.type === 'finish' && !this.isSpent) this.hush()
      }
    }
    return shown
  }

  /** Returns the service (tier, speed, geography) reported so far, in the words of the clients' wires. */
  protected readonly service = (): RetoldService => retellService(this.report.service, this.#wire)

  readonly #noteAnswer = (answer: Record<string, unknown>) => {
    this.#named = noteAnswer(this.#named, answer)
  }
}

/** A translated answer for a client that wants a stream. The last event has the usage, so it waits for the bill. */
export class TranslatedStream extends TranslatedAnswer implements StreamRelay {
  readonly encoding = 'utf8'
  hasShown = false
  fault: Fault | undefined
  readonly #encoder: Encoder
  #finish: Extract<AnswerEvent, { type: 'finish' }> | undefined

  constructor(plan: AnswerPlan, target: ClientHalf, head: AnswerHead) {
    super(plan)
    this.#encoder = target.createEncoder({ ...head, service: this.service })
  }

  get reason(): StopReason | undefined {
    return this.#finish?.reason
  }

  compact(): void {
    this.reader.compact()
    this.meter.compact(ownCopy)
    this.#encoder.compact?.()
  }

  finish(usage: Usage): string {
    // Closing a stream without its end would hide the failure from the client, so this is reported as a bug.
    if (!this.#finish) throw new Error(`a stream of ${this.events} events has no end to send: ${this.state}`)
    return this.#encoder.write({ ...this.#finish, usage })
  }

  keepAlive(): string {
    return this.#encoder.write({ type: 'alive' })
  }

  failure(facts: ErrorFacts, usage: Usage): string {
    // Before the failure is sent, open blocks are closed and marked as cut off (I3).
    const text = this.fault ? '' : this.show(this.decoder.push(cutFrame))
    return text + this.#encoder.write({ type: 'fail', fault: faultOfFacts(facts), usage })
  }

  /** Ends a stream that is too large. @returns the text that closes the open blocks as cut */
  protected giveUp(): string {
    if (this.state !== 'unseen' && this.state !== 'shown') return ''
    const text = this.show(this.decoder.push(cutFrame))
    this.fault = oversize
    return text
  }

  protected show(events: Iterable<AnswerEvent>): string {
    let text = ''
    for (const event of this.filter(events)) {
      if (event.type === 'finish') {
        this.hasShown = true
        this.state = 'stopped'
        this.#finish = event
      } else if (event.type === 'fail') this.fault = event.fault
      else {
        // A text block without text shows nothing yet. The start of a tool call does show something (translation 4.1).
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
    else if (this.meter.isComplete()) this.state = 'finished'
    else if (this.isSpent && this.state !== 'stopped') this.state = 'failed'
    return text
  }
}

/**
 * A translated answer as JSON. It is made from the events of a model's stream, or from a model's JSON body (translation
 * 1.2).
 */
export class TranslatedWhole extends TranslatedAnswer implements StreamFold {
  #fault: Fault | undefined
  readonly #target: ClientHalf
  readonly #head: AnswerHead
  readonly #fold = createFold()

  constructor(plan: AnswerPlan, target: ClientHalf, head: AnswerHead) {
    super(plan)
    this.#target = target
    this.#head = { ...head, service: this.service }
  }

  whole(): WholeAnswer {
    if (this.#fault) return { state: 'failed', fault: this.#fault }
    if (this.state === 'unseen') this.show(this.decoder.push(cutFrame))
    const outcome = this.#fold.outcome()
    if (outcome === 'none') return { state: 'failed', fault: { kind: 'truncated', text: '' } }
    if ('fault' in outcome) return { state: 'failed', fault: outcome.fault }
    const read = {
      report: this.report,
      reason: outcome.answer.reason,
      estimateOutput: () => Math.max(0, this.estimateOutput() - estimateTexts(outcome.repeated)),
      encode: (usage: Usage) => this.#target.encodeAnswer(outcome.answer, this.#head, usage),
    }
    return this.meter.isComplete()
      ? { state: 'finished', ...read }
      : { state: 'stopped', spoken: () => this.spoken(), ...read }
  }

  protected giveUp(): string {
    if (this.state !== 'stopped') this.#fail(oversize)
    return ''
  }

  protected show(events: Iterable<AnswerEvent>): string {
    for (const event of this.filter(events)) {
      this.#fold.push(event)
      if (event.type === 'finish') this.state = 'stopped'
      else if (event.type === 'fail') this.#fail(event.fault)
    }
    if (this.meter.isComplete()) this.state = 'finished'
    return ''
  }

  #fail(fault: Fault): void {
    this.state = 'failed'
    this.#fault ??= fault
  }
}
