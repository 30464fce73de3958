import type { Profile } from '../catalog/profile.ts'
import type { AnswerEvent } from '../inference/answer.ts'
import { composeFilters, type FilterOptions } from '../inference/filters/index.ts'
import { createMeter, type Meter } from '../inference/meter.ts'
import type { Translator } from '../wires/wire.ts'

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
export type AnswerRun = {
  meter: Meter
  /** Events behind the filters. Signs of life are left out: what a client hears of silence is the delivery's (ruling U4). */
  take(events: Iterable<AnswerEvent>): AnswerEvent[]
}

export function startRun(plan: AnswerPlan): AnswerRun {
  const meter = createMeter()
  const filters = composeFilters({ ...plan.filters, profile: plan.profile })
  let isOver = false
  return {
    meter,
    take(events) {
      const shown: AnswerEvent[] = []
      for (const event of events) {
        // A stop sequence of ours has ended the answer: what the model still says is not part of it (ruling T15).
        if (isOver) break
        if (event.type === 'alive') continue
        meter.push(event)
        for (const filtered of filters.push(event)) {
          shown.push(filtered)
          if (filtered.type === 'finish' || filtered.type === 'fail') isOver = true
        }
      }
      return shown
    },
  }
}
