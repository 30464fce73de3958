import type { AnswerEvent } from './answer.ts'
import { estimateTextTokens } from './estimate.ts'
import { mergeUsage, type UsageReport } from './usage.ts'

/** What an answer has produced so far, whatever of it is shown: the evidence of a bill (ruling C3). */
export type Meter = {
  /** Sees every event of the decoder, before any filter. */
  push(event: AnswerEvent): void
  /** What the model has reported so far. */
  report(): UsageReport
  /** The model itself said that it is complete; false after a local stop or a hang-up. */
  isComplete(): boolean
  /** UTF-16 units of text, reasoning and arguments. */
  characters(): number
  /** The same in tokens, about. */
  estimateTokens(): number
}

/** Text is estimated by the batch: the estimate needs whole words, and keeping the whole answer would need memory. */
const batchCharacters = 4096

export function createMeter(): Meter {
  let report: UsageReport = {}
  let isComplete = false
  let characters = 0
  let tokens = 0
  let batch = ''
  return {
    push(event) {
      if (event.type === 'block_delta') {
        characters += event.text.length
        batch += event.text
        if (batch.length > batchCharacters) {
          tokens += estimateTextTokens(batch)
          batch = ''
        }
      } else if (event.type === 'usage') report = mergeUsage(report, event.report)
      else if (event.type === 'block_start' && event.block.kind === 'tool_call') {
        characters += event.block.name.length
        batch += event.block.name
      } else if (event.type === 'finish') {
        report = event.report
        isComplete = true
      }
    },
    report: () => report,
    isComplete: () => isComplete,
    characters: () => characters,
    estimateTokens: () => tokens + estimateTextTokens(batch),
  }
}
