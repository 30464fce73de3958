import type { Answer, AnswerEvent, Fault, FoldedBlock, StopReason } from './answer.ts'
import { mergeUsage, type UsageReport } from './usage.ts'

/** The result of a run of events. `none`: it has not ended. */
type Folded = { answer: Answer } | { fault: Fault; report: UsageReport } | 'none'

/** Collects events to the answer they tell. JSON answers are made of nothing else, so stream and JSON cannot drift. */
export function createFold(): { push(event: AnswerEvent): void; outcome(): Folded } {
  const blocks: FoldedBlock[] = []
  let report: UsageReport = {}
  let end: { reason: StopReason; stopSequence?: string } | undefined
  let fault: Fault | undefined
  return { push, outcome }

  function push(event: AnswerEvent): void {
    switch (event.type) {
      case 'block_start':
        blocks[event.index] = { block: event.block, text: '', cut: false }
        return
      case 'block_delta':
        blocks[event.index]!.text += event.text
        return
      case 'block_seal':
        blocks[event.index]!.sealed = event.sealed
        return
      case 'block_stop':
        blocks[event.index]!.cut = event.cut
        return
      case 'usage':
        report = mergeUsage(report, event.report)
        return
      case 'finish':
        report = event.report
        end = { reason: event.reason }
        if (event.stopSequence !== undefined) end.stopSequence = event.stopSequence
        return
      case 'fail':
        fault = event.fault
    }
  }

  function outcome(): Folded {
    if (fault) return { fault, report }
    return end ? { answer: { blocks, ...end, report } } : 'none'
  }
}
