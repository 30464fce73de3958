import type { Step } from '../../bytes/step.ts'
import type { AnswerEvent } from '../answer.ts'
import { mintId } from '../ids.ts'

/** Calls get the name the client knows (R-NAME, R-GROUP) and an id of ours (R-ID). A name the model made up stays. */
export function restoreCalls(
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
