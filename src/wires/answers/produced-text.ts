import { decodeUtf8 } from '../../bytes/frame-cutter.ts'
import { ownCopy } from '../../bytes/own-copy.ts'
import { mostTokensOf } from '../../inference/estimate.ts'
import { type Spoken, splitTokens, TextMeter } from '../../inference/meter.ts'

/** Escaped text is decoded by the batch: most answers are never estimated, and none may keep its whole text. */
const batchCharacters = 1024

/** Characters by which the inside of a JSON string, as latin1, differs from the text it means. */
const encoded = /[\\\x80-\xff]/

/**
 * The text that an answer of the client's own wire has produced, as evidence of the bill (rulings C3, C10). It is
 * counted as text and not as the bytes and escapes in which it came. So the answer costs the same on every path.
 */
export class ProducedText {
  isReasoning = false
  readonly #meter = new TextMeter()
  #raw = ''
  #characters = 0
  #reasoningCharacters = 0

  /** @param raw the inside of a JSON string, as it stands in a frame. */
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

  /** Of both kinds; escapes count as they were written, which is near enough for the shares of one answer. */
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

/** The text that the inside of a JSON string means, which stands there as latin1. Halves of a character may meet in it. */
export function decodeString(raw: string): string {
  if (!encoded.test(raw)) return raw
  const text = decodeUtf8(raw)
  try {
    return JSON.parse(`"${text}"`) as string
  } catch {
    // No client can read it either; what came of it was produced all the same.
    return text
  }
}

/**
 * The tokens of texts that are there as a whole.
 * @param enough as of `UsageEvidence`: a look at the lengths is a tenth of the count
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
