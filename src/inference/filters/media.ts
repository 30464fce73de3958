import type { AnswerEvent, MediaKind } from '../answer.ts'

/** Collects the media of an answer. The client receives one sentence in their place (ruling Y9). */
export class LeftOutMedia {
  /** The sources of the media seen, by kind. Some servers send the same source twice. */
  readonly #sources = new Map<MediaKind, Set<string>>()

  /** The kinds of media whose transcript was received. */
  readonly #told = new Set<MediaKind>()

  note({ media, source }: AnswerEvent & { type: 'media' }): void {
    const known = this.#sources.get(media) ?? new Set()
    if (source === undefined) this.#told.add(media)
    else if (known.size < mediaMax) this.#sources.set(media, known.add(source))
  }

  /** Returns the sentence as a text block. @param index the number of the next block */
  block(index: number): AnswerEvent[] {
    const leftOut = [...this.#sources].filter(([kind]) => !this.#told.has(kind))
    if (leftOut.length === 0) return []
    const kinds = leftOut.map(([kind, { size }]) => wordsOf[kind](size))
    const text = `[Left out of this answer, because it cannot be sent over this API: ${kinds.join(', ')}.]`
    return [
      { type: 'block_start', index, block: { kind: 'text' } },
      { type: 'block_delta', index, text },
      { type: 'block_stop', index, cut: false },
    ]
  }
}

const mediaMax = 1_000

const wordsOf: Record<MediaKind, (count: number) => string> = {
  image: (count) => (count === 1 ? 'an image' : `${count} images`),
  // Audio and video are sent in pieces, so they are not counted.
  audio: () => 'audio',
  video: () => 'video',
  file: (count) => (count === 1 ? 'a file' : `${count} files`),
}
