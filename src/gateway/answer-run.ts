import type { Profile } from '../catalog/profile.ts'
import type { AnswerEvent, ShownEvent } from '../inference/answer.ts'
import { composeFilters, type FilterOptions } from '../inference/filters/index.ts'
import { Meter } from '../inference/meter.ts'
import { noteAnswer, type UsageReport } from '../inference/usage.ts'
import type { OnAnswer } from '../wires/answers/decode-frames.ts'
import type { ModelHalf } from '../wires/wire.ts'

/**
 * The largest translated answer, in characters and in blocks (B10, ruling R18). The whole answer is kept, as JSON or for the
 * events that repeat it at the end of a stream. Without a limit an endless answer would fill the memory.
 */
const charactersMax = 32 * 1_048_576
const blocksMax = 10_000

/**
 * The parts of a request that both forms of a translated answer need. A plan lives as long as the stream, so it must not
 * refer to the request body, not even indirectly. A kept body of 1 MB would cost more memory than everything else.
 */
export type AnswerPlan = {
  /** The model's side of its wire. */
  source: ModelHalf
  profile: Profile
  filters: Omit<FilterOptions, 'profile'>
  /** The tools that the model was given, as it knows them. */
  toolNames?: ReadonlySet<string>
}

/** Counts the events of one answer as the model sent them, and filters them to the events that the client asked for. */
export class AnswerRun {
  readonly meter = new Meter()
  readonly #filters
  #named: UsageReport = {}
  #isSpent = false
  #blocks = 0
  /** Set when the answer was over for the client before the model had finished: the tokens shown by then. */
  #shownTokens: number | undefined

  constructor(plan: AnswerPlan) {
    this.#filters = composeFilters({ ...plan.filters, profile: plan.profile })
  }

  /** Whether the model has finished or failed, so that nothing more can be learned from it. */
  get isSpent(): boolean {
    return this.#isSpent
  }

  /** Whether the answer is larger than we keep, so that it must be given up. */
  get isTooLong(): boolean {
    return this.#blocks > blocksMax || this.meter.characters() > charactersMax
  }

  /** Returns the filtered events. Signs of life are left out: the delivery sends its own during silence (ruling U4). */
  take(events: Iterable<AnswerEvent>): ShownEvent[] {
    const shown: ShownEvent[] = []
    for (const event of events) {
      this.meter.push(event)
      if (event.type === 'block_start') this.#blocks++
      this.#isSpent ||= event.type === 'finish' || event.type === 'fail'
      // After we have ended the answer at a stop sequence, the model's further text is not part of it (ruling T15).
      if (this.#shownTokens !== undefined || event.type === 'alive') continue
      for (const filtered of this.#filters.push(event)) {
        shown.push(filtered)
        if (filtered.type === 'finish' && !this.#isSpent) this.hush()
      }
    }
    return shown
  }

  /** The usage that the model has reported so far, with the models and the service that it named. */
  get report(): UsageReport {
    const report = this.meter.report()
    const { models, service } = this.#named
    if (service) return { ...report, ...this.#named, service: { ...service, ...report.service } }
    return models ? { ...report, models } : report
  }

  readonly onAnswer: OnAnswer = (answer) => {
    this.#named = noteAnswer(this.#named, answer)
  }

  /** Shows nothing from here on: later events count only for the usage figures. */
  hush(): void {
    this.#shownTokens ??= this.meter.estimateTokens()
  }

  /** Estimates the tokens produced for the client. Text after a stop does not count (ruling T15). */
  estimateOutput(): number {
    return this.#shownTokens ?? this.meter.estimateTokens()
  }
}
