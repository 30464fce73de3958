import type { AnswerEvent } from './answer.ts'
import { lastBorder, tokensOfWeight, weighText } from './estimate.ts'
import { mergeUsage, type UsageReport } from './usage.ts'

/** The activity of a model: nothing visible yet, reasoning, or answering. All text after reasoning is the answer. */
export type Stage = 'silent' | 'reasoning' | 'speaking'

/** The text produced so far, in estimated tokens: reasoning, and all other text. */
export type Spoken = { reasoningTokens: number; answerTokens: number }

/** Text is weighed (its tokens are estimated) in batches of this size. Keeping the whole answer would cost memory. */
const batchCharacters = 512

/** The most characters that wait to be weighed if the text has no border (a place where it can be cut). */
const waitingCharactersMax = 4096

/** The longest piece in ordinary text, in characters. A longer piece (a run of one character) is weighed in parts. */
const pieceCharactersMax = 1024

/**
 * Measures the text that an answer has produced, in the same way whether it is translated or not (ruling C10). It
 * counts the decoded text of the blocks, one after the other. The count does not depend on how the text was split into
 * pieces.
 */
export class TextMeter {
  #characters = 0
  #weight = 0
  /**
   * Text that is not weighed yet. It begins where a piece begins, so the sum of all weights is the weight of the whole
   * text.
   */
  #rest = ''
  /** If `#rest` is longer than this, a border (a place where the text can be cut) is searched for. */
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

  /** The length of the text so far, in UTF-16 units. */
  characters(): number {
    return this.#characters
  }

  /** The estimated tokens of the text so far. */
  estimateTokens(): number {
    return this.#characters === 0 ? 0 : tokensOfWeight(this.#weight + weighText(this.#rest))
  }

  /**
   * Copies the text that is not weighed yet. The chunks that contain this text can then be freed.
   * @param own makes a copy of a text
   */
  compact(own: (text: string) => string): void {
    this.#rest = own(this.#rest)
  }
}

/** Measures the text that an answer has produced so far, shown or not, as evidence for the bill (ruling C3). */
export class Meter {
  readonly #text = new TextMeter()
  #report: UsageReport = {}
  #isComplete = false
  #stage: Stage = 'silent'
  #reasoningCharacters = 0
  /** The number of the open reasoning block. At most one is open (I4). */
  #reasoning: number | undefined

  get stage(): Stage {
    return this.#stage
  }

  spoken(): Spoken {
    return splitTokens(this.estimateTokens(), this.characters(), this.#reasoningCharacters)
  }

  /** Takes every event of the decoder, before any filter. */
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

  /** True if the model itself reported completion. False after a stop by the gateway, or a disconnect. */
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

/** Splits one token estimate between reasoning and answer, by their characters. */
export function splitTokens(tokens: number, characters: number, reasoningCharacters: number): Spoken {
  const reasoningTokens = characters === 0 ? 0 : Math.round((tokens * reasoningCharacters) / characters)
  return { reasoningTokens, answerTokens: tokens - reasoningTokens }
}
