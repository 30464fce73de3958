import type { Spoken, Stage } from '../inference/meter.ts'

/** The shortest time that a rate is computed from, in ms. Words that arrive in one piece would seem endlessly fast. */
const speakingMsMin = 1_000

/** Measures how a model spends the time of its answer, which is the evidence for reasoning without a count (ruling C12). */
export class Pace {
  #stage: Stage = 'silent'
  #sinceMs: number
  readonly #spentMs: Record<Stage, number> = { silent: 0, reasoning: 0, speaking: 0 }
  #hasMarks = false
  /** The reasoning time while the client still wanted the answer. */
  #reasonedMs: number | undefined

  /** @param startedMs time of the request; all times are monotonic */
  constructor(startedMs: number) {
    this.#sinceMs = startedMs
  }

  /** A piece came, or reading is paused. @param stage what the model does from here on */
  note(stage: Stage, nowMs: number): void {
    this.#spentMs[this.#stage] += nowMs - this.#sinceMs
    this.#sinceMs = nowMs
    this.#stage = stage
    if (stage === 'reasoning') this.#hasMarks = true
  }

  /** Does not count the time since the last piece: nothing was read, so it was not the model's. */
  skip(nowMs: number): void {
    this.#sinceMs = nowMs
  }

  /** The answer is over for its client. Later reasoning does not count. */
  end(nowMs: number): void {
    if (this.#reasonedMs !== undefined) return
    this.note(this.#stage, nowMs)
    this.#reasonedMs = this.#reasoned()
  }

  /**
   * Estimates the tokens of reasoning that its text does not show: the reasoning time at the rate of the answer after it. That
   * rate may be measured while reading on.
   * @param isAsked whether the model was asked to reason; if not, only time between marks counts (ruling Y7)
   * @returns 0 if no word of the answer came, because there is no rate then
   */
  hiddenTokens({ reasoningTokens, answerTokens }: Spoken, isAsked: boolean): number {
    if (!isAsked && !this.#hasMarks) return 0
    const perMs = answerTokens / Math.max(this.#spentMs.speaking, speakingMsMin)
    return Math.max(0, Math.round((this.#reasonedMs ?? this.#reasoned()) * perMs) - reasoningTokens)
  }

  /** The time spent reasoning. Without marks in the stream, this is the time until the first word. */
  #reasoned(): number {
    return this.#hasMarks ? this.#spentMs.reasoning : this.#spentMs.silent
  }
}
