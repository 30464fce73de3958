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

/** Is given an answer, or each part of one, that may name its model and its service (rulings Y13, Y17). */
export type OnAnswer = (answer: Record<string, unknown>) => void

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
  readonly #onAnswer: OnAnswer | undefined

  /** @param narrator the reader's own */
  constructor(narrator: Narrator, reader: FrameReader, onAnswer?: OnAnswer) {
    this.#narrator = narrator
    this.#reader = reader
    this.#onAnswer = onAnswer
  }

  get isEnough(): boolean {
    return this.#reader.isEnough
  }

  push(frame: SseFrame): AnswerEvent[] {
    if (this.#narrator.isOver) return []
    const object = readFrame(frame, this.#narrator)
    if (object === 'done') this.#reader.end(true)
    else if (object) {
      this.#onAnswer?.(answerIn(object))
      this.#reader.read(object, frame)
    }
    return this.#narrator.take()
  }

  end(): AnswerEvent[] {
    this.#reader.end(false)
    return this.#narrator.take()
  }
}

/** A chunk of chat is one itself; events of the other wires hold a message or a response. */
function answerIn(object: Record<string, unknown>): Record<string, unknown> {
  return object['model'] === undefined ? (asObject(object['message'] ?? object['response']) ?? object) : object
}
