import type { Step } from '../../bytes/step.ts'
import type { AnswerEvent } from '../answer.ts'
import { mintId } from '../ids.ts'
import { gateReasoning } from './reasoning.ts'
import { cutAtStops } from './stops.ts'
import { splitThinkTags, type ThinkTags } from './think-tags.ts'
import { requireWholeCalls } from './whole-calls.ts'

export type FilterOptions = {
  /** The model's profile; only its think tags matter here. */
  profile: { thinkTags?: ThinkTags }
  showsReasoning: boolean
  /** Sealed signatures were asked for (ruling T7): a block that is nothing but sealed is shown too. */
  wantsSealed?: boolean
  /** All stop sequences asked for, and those of them that the upstream does not enforce (R-STOP). */
  stops: readonly string[]
  localStops: readonly string[]
  names: ReadonlyMap<string, { name: string; namespace?: string }>
  requestId: string
  /** The beginning of the ids of calls on the client's wire. */
  callIdPrefix: string
  /** A call that is not whole fails the answer (ruling Y5). */
  wantsWholeCalls?: boolean
}

/**
 * All filters between a decoder and an encoder. Laws I1–I9 hold after them as before. I10 is loosened on purpose: a
 * local stop sequence finishes the answer before the upstream does, and nothing more comes out.
 */
export function composeFilters(options: FilterOptions): Step<AnswerEvent, AnswerEvent> {
  const { profile, stops, localStops } = options
  const steps: Step<AnswerEvent, AnswerEvent>[] = []
  if (profile.thinkTags) steps.push(splitThinkTags(profile.thinkTags))
  steps.push(cutAtStops(stops, localStops))
  steps.push(gateReasoning(options.showsReasoning, options.wantsSealed ?? false))
  steps.push(restoreCalls(options.names, options.callIdPrefix, options.requestId))
  if (options.wantsWholeCalls) steps.push(requireWholeCalls())
  return chain(steps)
}

function chain(steps: Step<AnswerEvent, AnswerEvent>[]): Step<AnswerEvent, AnswerEvent> {
  return { push, end: () => [] }

  function push(event: AnswerEvent): Iterable<AnswerEvent> {
    let events: AnswerEvent[] = [event]
    for (const step of steps) {
      // Nearly always one event goes in and one comes out.
      if (events.length === 1) events = step.push(events[0]!) as AnswerEvent[]
      else events = events.flatMap((one) => [...step.push(one)])
    }
    return events
  }
}

/** Calls get the name the client knows (R-NAME, R-GROUP) and an id of ours (R-ID). A name the model made up stays. */
function restoreCalls(
  names: ReadonlyMap<string, { name: string; namespace?: string }>,
  callIdPrefix: string,
  requestId: string,
): Step<AnswerEvent, AnswerEvent> {
  return { push: (event) => [restore(event)], end: () => [] }

  function restore(event: AnswerEvent): AnswerEvent {
    if (event.type !== 'block_start' || event.block.kind !== 'tool_call') return event
    const { index, block } = event
    const known = names.get(block.name) ?? { name: block.name }
    return { ...event, block: { kind: 'tool_call', callId: mintId(callIdPrefix, requestId, index), ...known } }
  }
}
