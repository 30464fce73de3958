import type { Spoken, Stage } from '../inference/meter.ts'

/** A rate is not read off less than this: words that come in one piece would be endlessly fast. */
const speakingMsMin = 1_000

/** How a model spends the time of its answer: the evidence for reasoning that nobody can count (ruling C12). */
export class Pace {
  #stage: Stage = 'silent'
  #sinceMs: number
  readonly #spentMs: Record<Stage, number> = { silent: 0, reasoning: 0, speaking: 0 }
  #hasMarks = false
  /** How long it has reasoned for its client. */
  #reasonedMs: number | undefined

  /** @param startedMs when it was asked; all times are monotonic */
  constructor(startedMs: number) {
    this.#sinceMs = startedMs
  }

  /** A piece has come, or none is read for a while. @param stage what the model does from here on */
  note(stage: Stage, nowMs: number): void {
    this.#spentMs[this.#stage] += nowMs - this.#sinceMs
    this.#sinceMs = nowMs
    this.#stage = stage
    if (stage === 'reasoning') this.#hasMarks = true
  }

  /** What went by since the last piece was not the model's time: nothing was read. */
  skip(nowMs: number): void {
    this.#sinceMs = nowMs
  }

  /** The answer is over for its client: what the model thinks from here on it thinks for nobody. */
  end(nowMs: number): void {
    if (this.#reasonedMs !== undefined) return
    this.note(this.#stage, nowMs)
    this.#reasonedMs = this.#reasoned()
  }

  /**
   * What the reasoning came to beyond its text, in tokens: its time at the rate of the answer behind it, which may go on
   * being read for that. 0 where not a word of the answer came: then there is no rate.
   */
  hiddenTokens({ reasoningTokens, answerTokens }: Spoken): number {
    const perMs = answerTokens / Math.max(this.#spentMs.speaking, speakingMsMin)
    return Math.max(0, Math.round((this.#reasonedMs ?? this.#reasoned()) * perMs) - reasoningTokens)
  }

  /** Where the stream has no marks, all was reasoning until the first word. */
  #reasoned(): number {
    return this.#hasMarks ? this.#spentMs.reasoning : this.#spentMs.silent
  }
}
