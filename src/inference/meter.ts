import type { AnswerEvent } from './answer.ts'
import { lastBorder, tokensOfWeight, weighText } from './estimate.ts'
import { mergeUsage, type UsageReport } from './usage.ts'

/**
 * The activity of a model: nothing that can be seen yet, reasoning, or its answer. All text after reasoning is the
 * answer.
 */
export type Stage = 'silent' | 'reasoning' | 'speaking'

/** The text of an answer so far, in estimated tokens: that of its reasoning, and all else. */
export type Spoken = { reasoningTokens: number; answerTokens: number }

/** Text is weighed by the batch, since keeping the whole answer would need memory: each piece of what waits a node of its own. */
const batchCharacters = 512

/** Of a text without a border so much waits for one. */
const waitingCharactersMax = 4096

/** No piece of a text that people write is as long; of one that is, each part is a piece (a run of one character). */
const pieceCharactersMax = 1024

/**
 * The one measure of what an answer has produced, on every path (ruling C10): the decoded text of its blocks, one after
 * the other. The count depends on that text alone and not on the pieces in which it came.
 */
export class TextMeter {
  #characters = 0
  #weight = 0
  /**
   * Text that is not weighed yet. It begins at the beginning of a piece, so that batches weigh the same as the whole
   * text.
   */
  #rest = ''
  /** With so much of it a border is looked for. */
  #enough = batchCharacters

  write(text: string): void {
    this.#characters += text.length
    this.#rest += text
    const rest = this.#rest
    if (rest.length <= this.#enough) return
    const border = lastBorder(rest)
    const isEndless = rest.length > waitingCharactersMax && rest.length - border > pieceCharactersMax
    const end = isEndless ? rest.length : border
    this.#weight += weighText(rest.slice(0, end))
    this.#rest = rest.slice(end)
    this.#enough = rest.length - end + batchCharacters
  }

  /** UTF-16 units so far. */
  characters(): number {
    return this.#characters
  }

  /** The same in tokens, about. */
  estimateTokens(): number {
    return this.#characters === 0 ? 0 : tokensOfWeight(this.#weight + weighText(this.#rest))
  }

  /** Releases the pieces that the text not yet weighed was cut from. @param own makes a copy of a text */
  compact(own: (text: string) => string): void {
    this.#rest = own(this.#rest)
  }
}

/** The text that an answer has produced so far, shown or not: the evidence of a bill (ruling C3). */
export class Meter {
  readonly #text = new TextMeter()
  #report: UsageReport = {}
  #isComplete = false
  #stage: Stage = 'silent'
  #reasoningCharacters = 0
  /** The reasoning that is open: at most one is (I4). */
  #reasoning: number | undefined

  get stage(): Stage {
    return this.#stage
  }

  spoken(): Spoken {
    return splitTokens(this.estimateTokens(), this.characters(), this.#reasoningCharacters)
  }

  /** Sees every event of the decoder, before any filter. */
  push(event: AnswerEvent): void {
    switch (event.type) {
      case 'block_delta':
        this.#text.write(event.text)
        if (event.index === this.#reasoning) this.#reasoningCharacters += event.text.length
        return
      case 'block_start':
        this.#stage = event.block.kind === 'reasoning' ? 'reasoning' : 'speaking'
        if (event.block.kind === 'reasoning') this.#reasoning = event.index
        else if (event.block.kind === 'tool_call') this.#text.write(event.block.name)
        return
      case 'block_stop':
        if (event.index !== this.#reasoning) return
        this.#reasoning = undefined
        this.#stage = 'speaking'
        return
      case 'alive':
        if (event.reasons !== undefined) this.#stage = event.reasons ? 'reasoning' : 'speaking'
        return
      case 'usage':
        this.#report = mergeUsage(this.#report, event.report)
        return
      case 'finish':
        this.#report = event.report
        this.#isComplete = true
    }
  }

  /** The counters that the model has reported so far. */
  report(): UsageReport {
    return this.#report
  }

  /** The model itself said that it is complete; false after a local stop or a hang-up. */
  isComplete(): boolean {
    return this.#isComplete
  }

  characters(): number {
    return this.#text.characters()
  }

  estimateTokens(): number {
    return this.#text.estimateTokens()
  }

  compact(own: (text: string) => string): void {
    this.#text.compact(own)
  }
}

/** One estimate of a text, shared out by the characters of its parts. */
export function splitTokens(tokens: number, characters: number, reasoningCharacters: number): Spoken {
  const reasoningTokens = characters === 0 ? 0 : Math.round((tokens * reasoningCharacters) / characters)
  return { reasoningTokens, answerTokens: tokens - reasoningTokens }
}
