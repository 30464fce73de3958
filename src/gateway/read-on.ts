import type { ApiKey } from '../accounts/account.ts'
import type { Model } from '../catalog/model.ts'
import type { Config } from '../config/config.ts'
import type { UsageReport } from '../inference/usage.ts'
import type { StreamRelay } from '../wires/answers/relay.ts'
import { type Exchange, mayCallTools } from './exchange.ts'
import type { Gateway } from './gateway.ts'
import type { Pace } from './pace.ts'
import { type Evidence, evidenceOf } from './settle.ts'
import type { Snapshot } from './snapshot.ts'

/*
 * An answer may be over for its client before it is over at its upstream (rulings C4, C12): at a stop sequence of ours, or
 * because the client left. Here is whether its upstream is read on all the same, until when, and what counts of what it
 * tells. Who reads on, and what a client is shown of it, is not known here.
 */

/** How long the end of an answer waits for its figures at a stop sequence of ours, in ms (ruling C12). */
const stopReadMs = 3_000

/** How an answer ends for its client, as it is told. `ok`: at a stop, and the client is there and waits for the end. */
export type EarlyEnd = 'ok' | 'client_abort' | 'client_stall'

export type ReadingOnParts = {
  gateway: Pick<Gateway, 'snapshots' | 'clockMs' | 'readers'>
  snapshot: Snapshot
  key: ApiKey
  model: Model
}

/**
 * Reads on, for a time that depends on what its client has of the answer:
 *
 *     all but the end, at a stop of ours   3 s                      where figures that decide the bill come late
 *     something, and has left              `billing.read_on`        where they do
 *     nothing, and has left                `timeouts.settle_window` always
 *
 * @param told what the model had reported when the client had its last; undefined where it has nothing
 * @returns undefined where its figures would tell nothing new, there is no time, or too many are read on
 */
export function readOn(
  parts: ReadingOnParts,
  exchange: Exchange,
  end: EarlyEnd,
  told: UsageReport | undefined,
): ReadingOn | undefined {
  const { gateway, snapshot, key, model } = parts
  const limitMs = limitOf(snapshot.config, end, told)
  const isOfUse = told === undefined || (limitMs > 0 && tellsLate(told, exchange, model))
  return isOfUse && gateway.readers.enter(key.account.id) ? new ReadingOn(parts, end, told, limitMs) : undefined
}

function limitOf({ billing, timeouts }: Config, end: EarlyEnd, told: UsageReport | undefined): number {
  if (told === undefined) return timeouts.settleWindowMs
  return end === 'ok' ? stopReadMs : billing.readOnMs
}

/** One upstream that is read on. It has one of the places that there are for all (`readers.ts`), until its `close`. */
export class ReadingOn {
  /** What the model had reported when the client had its last of the answer; undefined where it has nothing of one. */
  readonly told: UsageReport | undefined
  readonly #parts: ReadingOnParts
  readonly #sinceMs: number
  #untilMs: number
  #end: EarlyEnd

  constructor(parts: ReadingOnParts, end: EarlyEnd, told: UsageReport | undefined, limitMs: number) {
    this.told = told
    this.#parts = parts
    this.#sinceMs = parts.gateway.clockMs()
    this.#untilMs = this.#sinceMs + limitMs
    this.#end = end
  }

  get end(): EarlyEnd {
    return this.#end
  }

  /** The client has something of an answer, or is to get it when its figures are there. */
  get isAnswered(): boolean {
    return this.told !== undefined
  }

  /** The client is there, and waits for the end. */
  get isAwaited(): boolean {
    return this.#end === 'ok'
  }

  /** The client, which waited for the end, has left: the figures have as long as any other's. */
  leave(): void {
    this.#end = 'client_abort'
    this.#untilMs = this.#sinceMs + Math.max(stopReadMs, this.#parts.snapshot.config.billing.readOnMs)
  }

  /** Its time is up, or its configuration is no longer in force, which is not kept for figures. @param nowMs monotonic */
  isOver(nowMs: number): boolean {
    const { gateway, snapshot } = this.#parts
    return nowMs >= this.#untilMs || gateway.snapshots.current !== snapshot
  }

  /** Gives its place back. */
  close(): void {
    const { gateway, key } = this.#parts
    gateway.readers.leave(key.account.id)
  }
}

/**
 * Whether figures that decide the bill come only at the end of the stream (ruling C12): reasoning that is not shown, a
 * cached share that is cheaper, calls of hosted tools that have a price (C11). A model that has told its input has told
 * what of it was cached.
 */
export function tellsLate(report: UsageReport, exchange: Exchange, { prices }: Model): boolean {
  if (exchange.mayHideReasoning || (prices.calls && mayCallTools(exchange))) return true
  const isInputTold = report.inputTokens !== undefined || report.cacheReadTokens !== undefined
  return !isInputTold && [prices, ...(prices.steps ?? [])].some((rates) => rates.cacheReadNanos < rates.inputNanos)
}

/**
 * What is known of an answer that ended for its client before the model had told its figures (ruling C12).
 * @param readingOn undefined where it was not read on
 */
export function evidenceOfCut(
  answer: Pick<StreamRelay, 'report' | 'estimateOutput' | 'spoken'>,
  readingOn: ReadingOn | undefined,
  exchange: Exchange,
  pace: Pace,
): Pick<Evidence, 'report' | 'estimateOutput' | 'estimateHidden'> {
  const evidence = evidenceOf(answer)
  // Who has seen nothing of an answer pays for no time (ruling C4).
  if (readingOn?.isAnswered === false) return evidence
  const estimateHidden = () => (exchange.mayHideReasoning ? pace.hiddenTokens(answer.spoken()) : 0)
  const told = readingOn?.told ?? answer.report
  return { ...evidence, report: withoutLaterOutput(answer.report, told), estimateHidden }
}

/** A report that is not final, as evidence: what it says of the input, and of the output what was told for the client. */
export function withoutLaterOutput(report: UsageReport, told: UsageReport): UsageReport {
  const evidence = { ...report }
  for (const name of ['outputTokens', 'reasoningTokens', 'isOutputPartial'] as const) {
    delete evidence[name]
    if (told[name] !== undefined) Object.assign(evidence, { [name]: told[name] })
  }
  return evidence
}
