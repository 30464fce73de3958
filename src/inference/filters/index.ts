import type { Step } from '../../bytes/step.ts'
import type { AnswerEvent, ShownEvent } from '../answer.ts'
import { mintId } from '../ids.ts'
import { LeftOutMedia } from './media.ts'
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
export function composeFilters(options: FilterOptions): Step<AnswerEvent, ShownEvent> {
  const { profile, stops, localStops } = options
  const steps: Step<AnswerEvent, AnswerEvent>[] = []
  if (profile.thinkTags) steps.push(splitThinkTags(profile.thinkTags))
  steps.push(cutAtStops(stops, localStops))
  steps.push(gateReasoning(options.showsReasoning, options.wantsSealed ?? false))
  if (options.wantsWholeCalls) steps.push(requireWholeCalls())
  steps.push(restoreCalls(options.names, options.callIdPrefix, options.requestId))
  // The last step lets no media through.
  return chain(steps) as Step<AnswerEvent, ShownEvent>
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

/**
 * Calls get the name the client knows (R-NAME, R-GROUP) and an id of ours (R-ID). A name the model made up stays. Media
 * become a sentence at the end (ruling Y9), in which no stop sequence is looked for.
 */
function restoreCalls(
  names: ReadonlyMap<string, { name: string; namespace?: string }>,
  callIdPrefix: string,
  requestId: string,
): Step<AnswerEvent, AnswerEvent> {
  const media = new LeftOutMedia()
  let count = 0
  return { push, end: () => [] }

  function push(event: AnswerEvent): AnswerEvent[] {
    switch (event.type) {
      case 'block_start':
        count++
        return [restore(event)]
      case 'media':
        media.note(event)
        return []
      case 'finish':
        return [...media.block(count), event]
      default:
        return [event]
    }
  }

  function restore(event: AnswerEvent & { type: 'block_start' }): AnswerEvent {
    const { index, block } = event
    if (block.kind !== 'tool_call') return event
    const known = names.get(block.name) ?? { name: block.name }
    return { ...event, block: { kind: 'tool_call', callId: mintId(callIdPrefix, requestId, index), ...known } }
  }
}
