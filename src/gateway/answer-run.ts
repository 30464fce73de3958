import type { Model } from '../catalog/model.ts'
import type { AnswerEvent } from '../inference/answer.ts'
import { composeFilters } from '../inference/filters/index.ts'
import { createMeter, type Meter } from '../inference/meter.ts'
import type { EncodedRequest, Translator } from '../wires/wire.ts'
import type { Call } from './call.ts'

/** What both forms of a translated answer need: what was asked, and who speaks what. */
export type AnswerPlan = {
  call: Call
  model: Model
  /** The model's wire. */
  source: Translator
  encoded: EncodedRequest
  showsReasoning: boolean
  wantsSealed: boolean
  /** The client's wire's. */
  callIdPrefix: string
}

/** One answer on its way through the hub: counted as the model told it, filtered to what the client asked for. */
export type AnswerRun = {
  meter: Meter
  /** Events behind the filters. Signs of life are left out: what a client hears of silence is the pump's (ruling U4). */
  take(events: Iterable<AnswerEvent>): AnswerEvent[]
}

export function startRun(plan: AnswerPlan): AnswerRun {
  const { call, model, encoded } = plan
  const meter = createMeter()
  const filters = composeFilters({
    profile: model.profile,
    showsReasoning: plan.showsReasoning,
    wantsSealed: plan.wantsSealed,
    stops: encoded.stops,
    localStops: encoded.localStops,
    names: encoded.names,
    requestId: call.requestId,
    callIdPrefix: plan.callIdPrefix,
  })
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
