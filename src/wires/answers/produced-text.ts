import { decodeUtf8 } from '../../bytes/frame-cutter.ts'
import { ownCopy } from '../../bytes/own-copy.ts'
import { mostTokensOf } from '../../inference/estimate.ts'
import { type Spoken, splitTokens, TextMeter } from '../../inference/meter.ts'

/**
 * Escaped text is collected up to this many characters, then decoded. The whole text is not kept, since most answers
 * are never estimated.
 */
const batchCharacters = 1024

/** Matches the inside of a JSON string, held as latin1, that must be decoded. */
const encoded = /[\\\x80-\xff]/

/**
 * Counts the text of a native answer, as evidence for the bill (rulings C3, C10). The decoded text is counted, not
 * bytes or escapes. So an answer costs the same whether it is translated or not.
 */
export class ProducedText {
  isReasoning = false
  readonly #meter = new TextMeter()
  #raw = ''
  #characters = 0
  #reasoningCharacters = 0

  /** @param raw the inside of a JSON string, as written in a frame */
  addRaw(raw: string): void {
    this.#note(raw.length)
    this.#raw += raw
    if (this.#raw.length > batchCharacters) this.#decode()
  }

  add(text: string): void {
    this.#note(text.length)
    if (this.#raw !== '') this.#decode()
    this.#meter.write(text)
  }

  compact(): void {
    this.#raw = ownCopy(this.#raw)
    this.#meter.compact(ownCopy)
  }

  estimateTokens(): number {
    if (this.#raw !== '') this.#decode()
    return this.#meter.estimateTokens()
  }

  /**
   * The tokens of reasoning and of answer text. Escapes count as written, which is accurate enough for the ratio
   * within one answer.
   */
  spoken(): Spoken {
    return splitTokens(this.estimateTokens(), this.#characters, this.#reasoningCharacters)
  }

  #note(characters: number): void {
    this.#characters += characters
    if (this.isReasoning) this.#reasoningCharacters += characters
  }

  #decode(): void {
    const raw = this.#raw
    this.#raw = ''
    this.#meter.write(decodeString(raw))
  }
}

/** Decodes the inside of a JSON string held as latin1. Surrogate halves that meet are joined. */
export function decodeString(raw: string): string {
  if (!encoded.test(raw)) return raw
  const text = decodeUtf8(raw)
  try {
    return JSON.parse(`"${text}"`) as string
  } catch {
    // Invalid text. No client can read this text, but the model has produced it, so the raw text counts.
    return text
  }
}

/**
 * Estimates the tokens of complete texts.
 * @param enough a number of tokens. If the length of the texts shows that they have no more, an upper bound is returned
 * instead. Comparing lengths costs a tenth of counting.
 */
export function estimateTexts(texts: readonly string[], enough = 0): number {
  let characters = 0
  for (const text of texts) characters += text.length
  const most = mostTokensOf(characters)
  if (most <= enough) return most
  const meter = new TextMeter()
  for (const text of texts) meter.write(text)
  return meter.estimateTokens()
}
