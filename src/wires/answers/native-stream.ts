import { FrameCutter, type RawFrame } from '../../bytes/frame-cutter.ts'
import type { JsonObject } from '../../bytes/json.ts'
import { parseUpstreamJson } from '../../bytes/scan.ts'
import { createSseReader, isDoneMark } from '../../bytes/sse.ts'
import type { Fault } from '../../inference/answer.ts'
import type { Spoken, Stage } from '../../inference/meter.ts'
import { repeatedTexts } from '../../inference/raw-arguments.ts'
import { mergeUsage, noteAnswer, type Usage, type UsageReport } from '../../inference/usage.ts'
import { brokenFault, type ErrorFacts, readErrorBody } from './faults.ts'
import { JsonPatch } from './json-patch.ts'
import { countSeen, estimateTexts, type NativeHead, ProducedText, pricesCalls } from './native-answer.ts'
import { parseAnswer, unreadable } from './read-answer.ts'
import type { RelayState, StreamFold, StreamRelay, WholeAnswer } from './relay.ts'

/** Converts a wire's answer between its two forms, stream and JSON (ruling Y1). */
export type AnswerForms = {
  /**
   * Converts a whole answer to the frames of a stream. Returns a fault, or undefined, if the object is no answer.
   * @param body the answer's JSON in one line, in latin1
   */
  unfold(answer: JsonObject, body: string): RawFrame[] | Fault | undefined
  /**
   * Converts a stream to the whole answer, as JSON text.
   * @param events all events that a streaming client would receive
   */
  fold(events: readonly JsonObject[]): string
  /** Returns the pieces of arguments in a stream, each with a key of its call. */
  argumentsIn(events: readonly JsonObject[]): (readonly [key: unknown, piece: unknown])[]
}

/** The largest stream that is converted to JSON, in bytes (reliability §3). */
const foldedBytesMax = 32 * 1_048_576

/**
 * Passes a model's stream to a client of the same wire, with the edits of ruling P2. This class joins pieces to frames,
 * reads counters, and ends the stream. A subclass for each wire implements `take`, which handles one frame.
 */
export abstract class NativeStream implements StreamRelay, StreamFold {
  readonly encoding = 'latin1'
  state: RelayState = 'unseen'
  hasShown = false
  fault: Fault | undefined
  events = 0
  report: UsageReport = {}
  stage: Stage = 'silent'
  /** The estimated tokens that the client was shown. Set when the gateway stops showing the answer to the client. */
  #shownTokens: number | undefined
  protected readonly head: NativeHead
  /** Whether calls of hosted tools are counted. They count only if they have a price (ruling C11). */
  protected readonly seesCalls: boolean
  protected readonly produced = new ProducedText()
  protected abstract readonly forms: AnswerForms
  readonly #cutter = new FrameCutter()
  /** If the answer is converted to JSON: all bytes that a streaming client would have received. */
  #folded: string | undefined

  constructor(head: NativeHead) {
    this.head = head
    this.seesCalls = pricesCalls(head.model)
  }

  /** From now on, keeps the text that a streaming client would receive. Called if the client wants one JSON answer. */
  folding(): this {
    this.#folded = ''
    return this
  }

  whole(): WholeAnswer {
    const broken: Fault = this.fault ?? { kind: 'truncated', text: '' }
    const events = this.state === 'finished' ? eventsOf(this.#folded ?? '') : undefined
    if (events === undefined) return { state: 'failed', fault: this.state === 'finished' ? unreadable() : broken }
    return {
      state: 'finished',
      report: this.report,
      estimateOutput: (enough = 0) => {
        const most = this.estimateOutput()
        if (most <= enough) return most
        return Math.max(0, most - estimateTexts(repeatedTexts(this.forms.argumentsIn(events))))
      },
      lastSealed: () => this.lastSealed(),
      encode: (usage) => this.forms.fold([...events, ...(eventsOf(this.finish(usage)) ?? [])]),
    }
  }

  push(chunk: Uint8Array): string {
    const out = this.#keep(this.#read(chunk))
    if (this.#folded && this.#folded.length > foldedBytesMax)
      this.fail(brokenFault('the answer is too large', 'oversize'))
    return out
  }

  #keep(shown: string): string {
    if (this.#folded !== undefined) this.#folded += shown
    return shown
  }

  #read(chunk: Uint8Array): string {
    const bytes = Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
    const text = bytes.toString('latin1')
    const plain = this.#cutter.isEmpty && !this.#isOver() ? this.takePlain(text) : undefined
    if (plain !== undefined) return plain
    let out = ''
    for (const frame of this.#cutter.push(text)) {
      if (this.#isOver()) break
      out += this.take(frame)
    }
    if (this.#cutter.isOversize) this.fail(brokenFault('one event is too large', 'oversize'))
    return out
  }

  end(): string {
    const rest = this.#cutter.end()
    const out = rest !== undefined && !this.#isOver() ? this.#keep(this.take(rest)) : ''
    if (this.#isOver()) return out
    if (this.isEnough()) this.complete()
    else this.fail({ kind: 'truncated', text: 'the stream ended early' })
    return out
  }

  breakOff(): string {
    if (!this.#isOver() && this.isEnough()) this.complete()
    return ''
  }

  pushWhole(body: Buffer): string {
    const fault = readErrorBody(body)
    const answer = fault ? undefined : parseAnswer(body.toString())
    const line = body.toString('latin1').replace(/[\r\n]+/g, ' ')
    const read = fault ?? (answer && this.forms.unfold(answer, line)) ?? unreadable()
    let out = ''
    if (!Array.isArray(read)) this.fail(read)
    else for (const frame of read) if (!this.#isOver()) out += this.take(frame)
    if (!this.#isOver()) this.fail(unreadable())
    return out
  }

  get isSpent(): boolean {
    return this.#isOver()
  }

  lastSealed(): string | undefined {
    return undefined
  }

  spoken(): Spoken {
    return this.produced.spoken()
  }

  hush(): void {
    this.#shownTokens ??= this.produced.estimateTokens()
  }

  compact(): void {
    this.#cutter.compact()
    this.produced.compact()
  }

  /** Whether the answer is converted to JSON. The whole answer is then read at once. */
  protected get isFolding(): boolean {
    return this.#folded !== undefined
  }

  /** Whether the gateway has stopped showing the answer to the client. */
  protected get isHushed(): boolean {
    return this.#shownTokens !== undefined
  }

  estimateOutput(): number {
    return this.#shownTokens ?? this.produced.estimateTokens()
  }

  abstract finish(usage: Usage): string
  abstract keepAlive(): string
  abstract failure(facts: ErrorFacts, usage: Usage): string

  /** Returns the text that the client sees for a frame. Calls `show`, `complete` or `fail`, and records counters. */
  protected abstract take(frame: RawFrame): string

  /** Takes a piece of the stream if it has only whole, ordinary deltas. Returns undefined for other pieces. */
  protected takePlain(_text: string): string | undefined {
    return undefined
  }

  /** Whether a stream that closes now is complete although its terminator is missing (translation 4.2). */
  protected abstract isEnough(): boolean

  /** Call this when the model begins to reason or to speak. */
  protected enter(stage: Stage): void {
    this.stage = stage
    this.produced.isReasoning = stage === 'reasoning'
  }

  /** Call this if the text that `take` returns contains a part of the answer itself. */
  protected show(): void {
    this.hasShown = true
    if (this.state === 'unseen') this.state = 'shown'
  }

  /** Call this when the upstream has reported that the answer is complete. */
  protected complete(): void {
    this.show()
    if (this.state === 'shown') this.state = 'finished'
  }

  protected fail(fault: Fault): void {
    if (this.#isOver()) return
    this.state = 'failed'
    this.fault = fault
  }

  /** Fails the answer because it is unreadable. @param text see `brokenFault` */
  protected break(text: string): void {
    this.fail(brokenFault(text))
  }

  #isOver(): boolean {
    return this.state !== 'unseen' && this.state !== 'shown'
  }

  /**
   * Parses the frame's data for reading and editing. If it is not a JSON object, returns undefined and fails the
   * answer.
   * @param inside see `JsonPatch`
   */
  protected parse(data: string, inside?: string): JsonPatch | undefined {
    try {
      return new JsonPatch(Buffer.from(data, 'latin1'), inside)
    } catch {
      this.break('an event is not JSON')
      return undefined
    }
  }

  protected learn(usage: UsageReport): void {
    this.report = mergeUsage(this.report, usage)
  }

  /** Records the model and service, if an answer or a part of it names them (rulings Y13, Y17). */
  protected noteAnswer(answer: Record<string, unknown>): void {
    this.report = noteAnswer(this.report, answer)
  }

  /** Records a call of a hosted tool. */
  protected see(kind: string): void {
    if (!this.seesCalls) return
    this.report = { ...this.report, callsSeen: countSeen(this.report.callsSeen, kind) }
  }

  /** The counters that the model has reported so far; 0 for unreported ones. */
  protected known(): Usage {
    const { report } = this
    return {
      inputTokens: report.inputTokens ?? 0,
      cacheReadTokens: report.cacheReadTokens ?? 0,
      cacheWriteTokens: report.cacheWriteTokens ?? 0,
      cacheWrite1hTokens: 0,
      outputTokens: report.outputTokens ?? 0,
      reasoningTokens: report.reasoningTokens ?? 0,
      estimated: false,
    }
  }
}

/** Parses the events of a stream that was shown to the client. Undefined if any is invalid. @param text in latin1 */
function eventsOf(text: string): JsonObject[] | undefined {
  const events: JsonObject[] = []
  try {
    for (const { data } of createSseReader().push(Buffer.from(text, 'latin1')))
      if (data !== '' && !isDoneMark(data)) events.push(parseUpstreamJson(data) as JsonObject)
    return events
  } catch {
    return undefined
  }
}
