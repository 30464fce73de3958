import { KeptText } from '../bytes/kept-text.ts'
import { isJsonObject } from '../bytes/scan.ts'
import type { Answer, AnswerEvent, Fault, FoldedBlock, StopReason } from './answer.ts'
import { mergeUsage, type UsageReport } from './usage.ts'

/** The result of a run of events. `none`: it has not ended. */
type Folded = { answer: Answer } | { fault: Fault; report: UsageReport } | 'none'

/** Collects events to the answer they tell. JSON answers are made of nothing else, so stream and JSON cannot drift. */
export function createFold(): { push(event: AnswerEvent): void; outcome(): Folded } {
  const blocks: FoldedBlock[] = []
  /** The texts of the blocks that are open. A piece of one may refer to all that was read with it. */
  const open = new Map<number, KeptText>()
  /** The last piece of each call, while each piece repeats the one before it. */
  const repeating = new Map<number, string>()
  let report: UsageReport = {}
  let end: { reason: StopReason; stopSequence?: string } | undefined
  let fault: Fault | undefined
  return { push, outcome }

  function push(event: AnswerEvent): void {
    switch (event.type) {
      case 'block_start':
        blocks[event.index] = { block: event.block, text: '', cut: false }
        open.set(event.index, new KeptText())
        if (event.block.kind === 'tool_call') repeating.set(event.index, '')
        return
      case 'block_delta':
        open.get(event.index)!.add(event.text)
        if (event.text.startsWith(repeating.get(event.index) ?? '\0')) repeating.set(event.index, event.text)
        else repeating.delete(event.index)
        return
      case 'block_seal':
        blocks[event.index]!.sealed = event.sealed
        return
      case 'block_stop':
        blocks[event.index]!.cut = event.cut
        blocks[event.index]!.text = open.get(event.index)!.toString()
        open.delete(event.index)
        readCumulative(blocks[event.index]!, repeating.get(event.index))
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

  /** Of arguments that each piece repeats from the beginning the last piece counts, if the sum of all is no JSON (ruling Y4). */
  function readCumulative(folded: FoldedBlock, last: string | undefined) {
    if (last !== undefined && last !== folded.text && !isJsonObject(folded.text) && isJsonObject(last))
      folded.text = last
  }

  function outcome(): Folded {
    for (const [index, text] of open) blocks[index]!.text = text.toString()
    if (fault) return { fault, report }
    return end ? { answer: { blocks, ...end, report } } : 'none'
  }
}
