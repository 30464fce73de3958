import type { Profile } from '../catalog/profile.ts'
import type { AnswerEvent } from '../inference/answer.ts'
import { composeFilters, type FilterOptions } from '../inference/filters/index.ts'
import { Meter } from '../inference/meter.ts'
import { noteModel, type UsageReport } from '../inference/usage.ts'
import type { OnModel } from '../wires/answers/decode-frames.ts'
import type { Translator } from '../wires/wire.ts'

/**
 * The most that a translated answer may become, in characters and in blocks: both its form as JSON and the events that
 * repeat it at the end of a stream are kept whole, so that an endless one would take all memory (B10, ruling R18).
 */
const charactersMax = 32 * 1_048_576
const blocksMax = 10_000

/**
 * What both forms of a translated answer need of their request. It lives as long as the stream, so it holds neither the
 * body nor anything that does: a stream that keeps a request of a megabyte costs more than all else it needs.
 */
export type AnswerPlan = {
  /** The model's wire. */
  source: Translator
  profile: Profile
  filters: Omit<FilterOptions, 'profile'>
}

/** One answer on its way through the hub: counted as the model told it, filtered to what the client asked for. */
export class AnswerRun {
  readonly meter = new Meter()
  readonly #filters
  #named: Pick<UsageReport, 'models'> = {}
  #isSpent = false
  #blocks = 0
  /** Counted when the answer was over for its client, before the model had come to its end. */
  #shownTokens: number | undefined

  constructor(plan: AnswerPlan) {
    this.#filters = composeFilters({ ...plan.filters, profile: plan.profile })
  }

  /** The model has come to its end, or failed: nothing more is to be learned. */
  get isSpent(): boolean {
    return this.#isSpent
  }

  /** It is more than is kept of an answer: to be given up. */
  get isTooLong(): boolean {
    return this.#blocks > blocksMax || this.meter.characters() > charactersMax
  }

  /** Events behind the filters. Signs of life are left out: what a client hears of silence is the delivery's (ruling U4). */
  take(events: Iterable<AnswerEvent>): AnswerEvent[] {
    const shown: AnswerEvent[] = []
    for (const event of events) {
      this.meter.push(event)
      if (event.type === 'block_start') this.#blocks++
      this.#isSpent ||= event.type === 'finish' || event.type === 'fail'
      // A stop sequence of ours has ended the answer: what the model still says is not part of it (ruling T15).
      if (this.#shownTokens !== undefined || event.type === 'alive') continue
      for (const filtered of this.#filters.push(event)) {
        shown.push(filtered)
        if (filtered.type === 'finish' && !this.#isSpent) this.hush()
      }
    }
    return shown
  }

  /** What the model has reported so far, and which it says it is. */
  get report(): UsageReport {
    return this.#named.models ? { ...this.meter.report(), models: this.#named.models } : this.meter.report()
  }

  readonly onModel: OnModel = (name) => {
    this.#named = noteModel(this.#named, name)
  }

  /** Nobody is shown any more: what the model still says counts for its figures only. */
  hush(): void {
    this.#shownTokens ??= this.meter.estimateTokens()
  }

  /** Of what was produced for the client, in tokens: nothing behind a stop (ruling T15). */
  estimateOutput(): number {
    return this.#shownTokens ?? this.meter.estimateTokens()
  }
}
