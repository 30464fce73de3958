import { KeptText } from '../bytes/memory.ts'
import type { Answer, AnswerEvent, Fault, FoldedBlock, StopReason } from './answer.ts'
import { ArgumentPieces, beforeLast } from './raw-arguments.ts'
import { mergeUsage, type UsageReport } from './usage.ts'

/** The result of combining events. `none`: the answer has not ended. `repeated`: see `repeatedTexts`. */
type Folded = { answer: Answer; repeated: readonly string[] } | { fault: Fault; report: UsageReport } | 'none'

/** Builds a whole answer from events. JSON answers are built in no other way, so streams and JSON cannot differ. */
export function createFold(): { push(event: AnswerEvent): void; outcome(): Folded } {
  const blocks: FoldedBlock[] = []
  /** The texts of the open blocks. A plain string could keep in memory the whole chunk that it was read from. */
  const open = new Map<number, KeptText>()
  const calls = new Map<number, ArgumentPieces>()
  const repeated: string[] = []
  let report: UsageReport = {}
  let end: { reason: StopReason; stopSequence?: string } | undefined
  let fault: Fault | undefined
  return { push, outcome }

  function push(event: AnswerEvent): void {
    switch (event.type) {
      case 'block_start':
        blocks[event.index] = { block: event.block, text: '', cut: false }
        open.set(event.index, new KeptText())
        if (event.block.kind === 'tool_call') calls.set(event.index, new ArgumentPieces())
        return
      case 'block_delta':
        open.get(event.index)!.add(event.text)
        calls.get(event.index)?.add(event.text)
        return
      case 'block_seal':
        blocks[event.index]!.sealed = event.sealed
        return
      case 'block_stop': {
        const text = open.get(event.index)!.toString()
        const read = calls.get(event.index)?.read(text) ?? text
        if (read !== text) repeated.push(beforeLast(text, read))
        blocks[event.index]!.cut = event.cut
        blocks[event.index]!.text = read
        open.delete(event.index)
        return
      }
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
    for (const [index, text] of open) blocks[index]!.text = text.toString()
    if (fault) return { fault, report }
    return end ? { answer: { blocks, ...end, report }, repeated } : 'none'
  }
}
