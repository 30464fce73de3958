import type { AnswerEvent } from './answer.ts'
import { lastBorder, tokensOfWeight, weighText } from './estimate.ts'
import { mergeUsage, type UsageReport } from './usage.ts'

/**
 * The one measure of what an answer has produced, on every path (ruling C10): the text of its blocks, decoded, one
 * behind the other. The count depends on that text alone and not on the pieces in which it came.
 */
export type TextMeter = {
  write(text: string): void
  /** UTF-16 units so far. */
  characters(): number
  /** The same in tokens, about. */
  estimateTokens(): number
  /** What is not weighed yet lets go of the pieces that it was cut from. @param own makes a copy of a text */
  compact(own: (text: string) => string): void
}

/** What a model does: nothing that can be seen yet, reason, or say its answer. What comes behind reasoning is the answer. */
export type Stage = 'silent' | 'reasoning' | 'speaking'

/** What has come of an answer so far, in tokens, about: the text of its reasoning, and all else. */
export type Spoken = { reasoningTokens: number; answerTokens: number }

/** What an answer has produced so far, whatever of it is shown: the evidence of a bill (ruling C3). */
export type Meter = Omit<TextMeter, 'write'> & {
  readonly stage: Stage
  spoken(): Spoken
  /** Sees every event of the decoder, before any filter. */
  push(event: AnswerEvent): void
  /** What the model has reported so far. */
  report(): UsageReport
  /** The model itself said that it is complete; false after a local stop or a hang-up. */
  isComplete(): boolean
}

/** Text is weighed by the batch, since keeping the whole answer would need memory. */
const batchCharacters = 4096

/** No piece of a text that people write is as long; of one that is, each part is a piece (a run of one character). */
const pieceCharactersMax = 1024

export function createTextMeter(): TextMeter {
  let characters = 0
  let weight = 0
  /** What is not weighed yet. It begins where a piece does, so that batches weigh what the whole would. */
  let rest = ''
  return {
    write(text) {
      characters += text.length
      rest += text
      if (rest.length <= batchCharacters) return
      const border = lastBorder(rest)
      const end = rest.length - border > pieceCharactersMax ? rest.length : border
      weight += weighText(rest.slice(0, end))
      rest = rest.slice(end)
    },
    characters: () => characters,
    estimateTokens() {
      return characters === 0 ? 0 : tokensOfWeight(weight + weighText(rest))
    },
    compact(own) {
      rest = own(rest)
    },
  }
}

export function createMeter(): Meter {
  const { write, characters, estimateTokens, compact } = createTextMeter()
  let report: UsageReport = {}
  let isComplete = false
  let stage: Stage = 'silent'
  let reasoningCharacters = 0
  /** The reasoning that is open: at most one is (I4). */
  let reasoning: number | undefined
  return {
    get stage() {
      return stage
    },
    spoken: () => splitTokens(estimateTokens(), characters(), reasoningCharacters),
    push(event) {
      switch (event.type) {
        case 'block_delta':
          write(event.text)
          if (event.index === reasoning) reasoningCharacters += event.text.length
          return
        case 'block_start':
          stage = event.block.kind === 'reasoning' ? 'reasoning' : 'speaking'
          if (event.block.kind === 'reasoning') reasoning = event.index
          else if (event.block.kind === 'tool_call') write(event.block.name)
          return
        case 'block_stop':
          if (event.index !== reasoning) return
          reasoning = undefined
          stage = 'speaking'
          return
        case 'alive':
          if (event.reasons !== undefined) stage = event.reasons ? 'reasoning' : 'speaking'
          return
        case 'usage':
          report = mergeUsage(report, event.report)
          return
        case 'finish':
          report = event.report
          isComplete = true
      }
    },
    report: () => report,
    isComplete: () => isComplete,
    characters,
    estimateTokens,
    compact,
  }
}

/** One estimate of a text, shared out by the characters of its parts. */
export function splitTokens(tokens: number, characters: number, reasoningCharacters: number): Spoken {
  const reasoningTokens = characters === 0 ? 0 : Math.round((tokens * reasoningCharacters) / characters)
  return { reasoningTokens, answerTokens: tokens - reasoningTokens }
}
