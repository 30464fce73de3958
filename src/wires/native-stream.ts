import type { Fault } from '../inference/answer.ts'
import { mergeUsage, type Usage, type UsageReport } from '../inference/usage.ts'
import type { ErrorFacts } from './envelope.ts'
import { FrameCutter, type RawFrame } from './frame-cutter.ts'
import { JsonPatch, type NativeHead, readErrorBody, tokensOfCharacters } from './native-answer.ts'
import type { StreamRelay } from './relay.ts'

/**
 * A model's stream for a client of the same wire: bytes as they came but for the edits of ruling P2. What the three have
 * in common: whole frames out of pieces, the side glance at the counters, how a stream ends. A wire says in `take` what
 * it makes of a frame.
 */
export abstract class NativeStream implements StreamRelay {
  readonly encoding = 'latin1'
  isVisible = false
  isFinished = false
  readonly isCutByUs = false
  fault: Fault | undefined
  events = 0
  report: UsageReport = {}
  protected readonly head: NativeHead
  protected producedCharacters = 0
  readonly #cutter = new FrameCutter()

  constructor(head: NativeHead) {
    this.head = head
  }

  push(chunk: Uint8Array): string {
    const text = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length).toString('latin1')
    const plain = this.#cutter.isEmpty && !this.isFinished && !this.fault ? this.takePlain(text) : undefined
    if (plain !== undefined) return plain
    let out = ''
    for (const frame of this.#cutter.push(text)) {
      if (this.isFinished || this.fault) break
      out += this.take(frame)
    }
    if (this.#cutter.isOversize) this.fail('one event is too large')
    return out
  }

  end(): string {
    const rest = this.#cutter.end()
    const out = rest !== undefined && !this.isFinished && !this.fault ? this.take(rest) : ''
    if (this.isFinished || this.fault) return out
    if (this.isEnough()) this.isFinished = true
    else this.fault = { kind: 'truncated', text: 'the stream ended early' }
    return out
  }

  pushWhole(body: Buffer): string {
    this.fault = readErrorBody(body) ?? { kind: 'broken', text: 'JSON where a stream was asked for' }
    return ''
  }

  estimateOutput(): number {
    return tokensOfCharacters(this.producedCharacters)
  }

  abstract finish(usage: Usage): string
  abstract keepAlive(): string
  abstract failure(facts: ErrorFacts, usage: Usage): string

  /** What the client sees of a frame. Sets `isVisible`, `isFinished`, `fault` and the counters as it learns. */
  protected abstract take(frame: RawFrame): string

  /** The same for a piece that is nothing but whole, ordinary deltas; undefined where it may be anything else. */
  protected takePlain(_text: string): string | undefined {
    return undefined
  }

  /** Whether a stream that closes now is complete without its terminator (translation 4.2). */
  protected abstract isEnough(): boolean

  protected fail(text: string): void {
    this.fault ??= { kind: 'broken', text }
  }

  /** The frame's data, to be looked into and edited; undefined, and a fault, when it is not a JSON object. */
  protected parse(data: string): JsonPatch | undefined {
    try {
      return new JsonPatch(Buffer.from(data, 'latin1'))
    } catch {
      this.fail('an event is not JSON')
      return undefined
    }
  }

  protected learn(usage: UsageReport): void {
    this.report = mergeUsage(this.report, usage)
  }

  /** What the model has said so far, as counters; what it has not said is 0. */
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
