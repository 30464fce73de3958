import { asObject } from '../../bytes/json.ts'
import type { SseFrame } from '../../bytes/sse.ts'
import type { Step } from '../../bytes/step.ts'
import type { AnswerEvent } from '../../inference/answer.ts'
import type { Narrator } from '../../inference/narrator.ts'
import { readFrame } from './read-answer.ts'

/** Frames of a model's stream to events. */
export type Decoder = Step<SseFrame, AnswerEvent> & {
  /** The model has said why it ends: should the connection break now, the answer is whole all the same (ruling T19). */
  readonly isEnough: boolean
}

/** Is given what an answer, or a part of one, names as its model; nothing where it names none (ruling Y13). */
export type OnModel = (name: unknown) => void

/** A wire's reading of the frames of its model's stream. It reports what it reads to the narrator. */
export type FrameReader = {
  readonly isEnough: boolean
  /** @param object what the frame's data says */
  read(object: Record<string, unknown>, frame: SseFrame): void
  /** @param isMarked the end was said by an end mark, and is not merely that of the bytes */
  end(isMarked: boolean): void
}

/** The part that the decoders of all wires share. */
export class FrameDecoder implements Decoder {
  readonly #narrator: Narrator
  readonly #reader: FrameReader
  readonly #onModel: OnModel | undefined

  /** @param narrator the reader's own */
  constructor(narrator: Narrator, reader: FrameReader, onModel?: OnModel) {
    this.#narrator = narrator
    this.#reader = reader
    this.#onModel = onModel
  }

  get isEnough(): boolean {
    return this.#reader.isEnough
  }

  push(frame: SseFrame): AnswerEvent[] {
    if (this.#narrator.isOver) return []
    const object = readFrame(frame, this.#narrator)
    if (object === 'done') this.#reader.end(true)
    else if (object) {
      this.#onModel?.(modelIn(object))
      this.#reader.read(object, frame)
    }
    return this.#narrator.take()
  }

  end(): AnswerEvent[] {
    this.#reader.end(false)
    return this.#narrator.take()
  }
}

/** A chunk of chat names it, or the message or response that an event of the other wires holds. */
function modelIn({ model, message, response }: Record<string, unknown>): unknown {
  return model ?? asObject(message ?? response)?.['model']
}
