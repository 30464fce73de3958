import type { ApiKey } from '../accounts/account.ts'
import type { Model } from '../catalog/model.ts'
import type { Spoken, Stage } from '../inference/meter.ts'
import type { UsageReport } from '../inference/usage.ts'
import type { StreamRelay } from '../wires/answers/relay.ts'
import { type Exchange, mayCallTools } from './exchange.ts'
import type { Gateway, Snapshot } from './gateway.ts'
import { type Evidence, evidenceOf } from './settle.ts'

/*
 * An answer can be over for the client while the upstream still sends it (rulings C4, C12). That happens if we end the
 * answer at a stop sequence, or if the client leaves. This module decides whether the upstream is read further, for how
 * long, and which of its figures count. Other modules do the reading, and decide what the client gets.
 */

/**
 * The longest wait for the upstream's token counts after we have ended an answer at a stop sequence, in ms (ruling
 * C12).
 */
const stopReadMs = 3_000

/**
 * Why the client's part of an answer ended early. `ok`: a stop sequence ended it, and the client is still connected.
 */
export type EarlyEnd = 'ok' | 'client_abort' | 'client_stall'

type ReadingOnParts = {
  gateway: Pick<Gateway, 'snapshots' | 'clockMs' | 'readers'>
  snapshot: Snapshot
  key: ApiKey
}

/**
 * Continues to read the upstream after the client's part of the answer has ended. The time limit depends on that part:
 *
 *     the client has                       time limit               condition
 *     all but the end, at a stop sequence  3 s                      figures that decide the bill come late
 *     a part, and has left                 `billing.read_on`        figures that decide the bill come late
 *     nothing, and has left                `timeouts.settle_window` none
 *
 * @param told the model's report at the time of the client's last piece; undefined if the client has no piece
 * @returns undefined if the condition is not met, the limit is 0, or too many upstreams are read on already
 */
export function readOn(
  parts: ReadingOnParts,
  { model, exchange }: { model: Model; exchange: Exchange },
  end: EarlyEnd,
  told: UsageReport | undefined,
): ReadingOn | undefined {
  const { gateway, snapshot, key } = parts
  const { billing, timeouts } = snapshot.config
  const limitMs = told === undefined ? timeouts.settleWindowMs : end === 'ok' ? stopReadMs : billing.readOnMs
  const isOfUse = told === undefined || (limitMs > 0 && tellsLate(told, exchange, model))
  return isOfUse && gateway.readers.enter(key.account.id) ? new ReadingOn(parts, end, told, limitMs) : undefined
}

/**
 * Reads the rest of an upstream's answer after the client's answer has ended. Occupies a place of `Readers` until
 * `close`.
 */
export class ReadingOn {
  /** The usage report of the model when the client got its last piece of the answer. Undefined if it got no piece. */
  readonly told: UsageReport | undefined
  readonly #parts: ReadingOnParts
  readonly #sinceMs: number
  #untilMs: number
  end: EarlyEnd

  constructor(parts: ReadingOnParts, end: EarlyEnd, told: UsageReport | undefined, limitMs: number) {
    this.told = told
    this.#parts = parts
    this.#sinceMs = parts.gateway.clockMs()
    this.#untilMs = this.#sinceMs + limitMs
    this.end = end
  }

  /**
   * Whether the client has a part of the answer. True also for a client that gets the whole answer once the usage is
   * known.
   */
  get isAnswered(): boolean {
    return this.told !== undefined
  }

  get isAwaited(): boolean {
    return this.end === 'ok'
  }

  /**
   * Called when the client leaves while it waits for the end of the answer. The upstream is then read as long as
   * `billing.read_on` allows, but at least for `stopReadMs`.
   */
  leave(): void {
    this.end = 'client_abort'
    this.#untilMs = this.#sinceMs + Math.max(stopReadMs, this.#parts.snapshot.config.billing.readOnMs)
  }

  /**
   * Whether reading must end, because the time is up or the configuration was replaced. An old configuration must not
   * stay in use only because figures are awaited.
   * @param nowMs monotonic
   */
  isOver(nowMs: number): boolean {
    const { gateway, snapshot } = this.#parts
    return nowMs >= this.#untilMs || gateway.snapshots.current !== snapshot
  }

  close(): void {
    const { gateway, key } = this.#parts
    gateway.readers.leave(key.account.id)
  }
}

/**
 * Whether figures that decide the bill come only at the end of the stream (ruling C12). These are figures for hidden
 * reasoning, for calls of hosted tools that have a price (C11), and for cheaper cached input. Cached input is always
 * reported together with the other input.
 */
export function tellsLate(report: UsageReport, exchange: Exchange, { prices }: Model): boolean {
  if (exchange.mayHideReasoning || (prices.hasCalls && mayCallTools(exchange))) return true
  const isInputTold = report.inputTokens !== undefined || report.cacheReadTokens !== undefined
  return !isInputTold && prices.hasCheaperReads
}

/**
 * Returns the figures that decide the bill of an answer that was cut. The answer ended for its client before the model
 * had reported its figures (ruling C12).
 * @param readingOn undefined if the upstream was not read on
 */
export function evidenceOfCut(
  answer: Pick<StreamRelay, 'report' | 'estimateOutput' | 'spoken'>,
  readingOn: ReadingOn | undefined,
  exchange: Exchange,
  pace: Pace,
): Pick<Evidence, 'report' | 'estimateOutput' | 'estimateHidden'> {
  const evidence = evidenceOf(answer)
  // A client that has seen nothing of the answer does not pay for hidden reasoning (ruling C4).
  if (readingOn?.isAnswered === false) return evidence
  const { mayHideReasoning } = exchange
  const estimateHidden = () => (mayHideReasoning ? pace.hiddenTokens(answer.spoken(), mayHideReasoning === 'asked') : 0)
  const told = readingOn?.told ?? answer.report
  return { ...evidence, report: withoutLaterOutput(answer.report, told), estimateHidden }
}

/**
 * Returns a report with the input figures of `report` and the output figures of `told`. `told` is the report that was
 * known when the client got its last piece.
 */
export function withoutLaterOutput(report: UsageReport, told: UsageReport): UsageReport {
  const evidence = { ...report }
  for (const name of ['outputTokens', 'reasoningTokens', 'isOutputPartial'] as const) {
    delete evidence[name]
    if (told[name] !== undefined) Object.assign(evidence, { [name]: told[name] })
  }
  return evidence
}

/**
 * The speaking time counts as at least this many ms. Otherwise text that comes in one piece would give an infinite
 * rate.
 */
const speakingMsMin = 1_000

/**
 * Measures how long a model is silent, reasons and speaks. These times serve to estimate reasoning tokens that the
 * model does not report (C12).
 */
export class Pace {
  #stage: Stage = 'silent'
  #sinceMs: number
  readonly #spentMs: Record<Stage, number> = { silent: 0, reasoning: 0, speaking: 0 }
  #hasMarks = false
  /** The reasoning time until the answer was over for its client; undefined before that. */
  #reasonedMs: number | undefined

  /** @param startedMs time of the request; all times are monotonic */
  constructor(startedMs: number) {
    this.#sinceMs = startedMs
  }

  /** Adds the time since the last call to the stage that ends now. @param stage the stage that begins now */
  note(stage: Stage, nowMs: number): void {
    this.#spentMs[this.#stage] += nowMs - this.#sinceMs
    this.#sinceMs = nowMs
    this.#stage = stage
    if (stage === 'reasoning') this.#hasMarks = true
  }

  /**
   * Ignores the time since the last call of `note` or `skip`. The gateway did not read then, so the model caused no
   * delay.
   */
  skip(nowMs: number): void {
    this.#sinceMs = nowMs
  }

  /** Called when the answer is over for its client. Later reasoning does not count. */
  end(nowMs: number): void {
    if (this.#reasonedMs !== undefined) return
    this.note(this.#stage, nowMs)
    this.#reasonedMs = this.#reasoned()
  }

  /**
   * Estimates the reasoning tokens that the stream does not show. The estimate is the reasoning time, multiplied by the
   * token rate of the answer's text.
   * @param isAsked whether the model was asked to reason. If not, only reasoning that the stream marks counts (ruling
   *   Y7)
   * @returns 0 if the answer has no text, because there is no rate then
   */
  hiddenTokens({ reasoningTokens, answerTokens }: Spoken, isAsked: boolean): number {
    if (!isAsked && !this.#hasMarks) return 0
    const perMs = answerTokens / Math.max(this.#spentMs.speaking, speakingMsMin)
    return Math.max(0, Math.round((this.#reasonedMs ?? this.#reasoned()) * perMs) - reasoningTokens)
  }

  /** The time spent reasoning. If the stream does not mark reasoning, this is the time until the first word. */
  #reasoned(): number {
    return this.#hasMarks ? this.#spentMs.reasoning : this.#spentMs.silent
  }
}
