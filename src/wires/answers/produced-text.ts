import { decodeUtf8 } from '../../bytes/frame-cutter.ts'
import { createTextMeter } from '../../inference/meter.ts'

/** Escaped text is decoded by the batch: most answers are never estimated, and none may keep its whole text. */
const batchCharacters = 1024

/** What makes the inside of a JSON string, as latin1, differ from the text it means. */
const encoded = /[\\\x80-\xff]/

/**
 * The text that an answer of the client's own wire has produced, as evidence of the bill (rulings C3, C10): counted as
 * text and not as the bytes and escapes in which it came, so that the answer costs the same on every path.
 */
export class ProducedText {
  readonly #meter = createTextMeter()
  #raw = ''

  /** @param raw the inside of a JSON string, as it stands in a frame. */
  addRaw(raw: string): void {
    this.#raw += raw
    if (this.#raw.length > batchCharacters) this.#decode()
  }

  add(text: string): void {
    if (this.#raw !== '') this.#decode()
    this.#meter.write(text)
  }

  estimateTokens(): number {
    if (this.#raw !== '') this.#decode()
    return this.#meter.estimateTokens()
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

/** The tokens of texts that are there as a whole. */
export function estimateTexts(texts: Iterable<string>): number {
  const meter = createTextMeter()
  for (const text of texts) meter.write(text)
  return meter.estimateTokens()
}
