import { asObject, type JsonObject } from '../../bytes/json.ts'
import type { SseFrame } from '../../bytes/sse.ts'
import type { Step } from '../../bytes/step.ts'
import type { Profile } from '../../catalog/profile.ts'
import type { AnswerEvent } from '../../inference/answer.ts'
import { Narrator } from '../../inference/narrator.ts'
import { parseAnswer, readFrame, unreadable } from './read-answer.ts'

/** A model's answer to events, by the frames of its stream or as one JSON body. What it cannot read becomes `fail`. */
export type Decoder = Step<SseFrame, AnswerEvent> & {
  /** The model has said why it ends: should the connection break now, the answer is whole all the same (ruling T19). */
  readonly isEnough: boolean
  /** The events of a whole JSON answer, as the model would have streamed them (laws I1–I10). No frames come before it. */
  whole(bodyText: string): AnswerEvent[]
}

/** Is given an answer, or each part of one, that may name its model and its service (rulings Y13, Y17). */
export type OnAnswer = (answer: JsonObject) => void

/** The part that the decoders of all wires share. A wire reports to the narrator what it reads. */
export abstract class AnswerDecoder implements Decoder {
  protected readonly narrator = new Narrator()
  protected readonly profile: Profile
  readonly #onAnswer: OnAnswer | undefined

  constructor(profile: Profile, onAnswer?: OnAnswer) {
    this.profile = profile
    this.#onAnswer = onAnswer
  }

  abstract readonly isEnough: boolean

  /** @param object what the frame's data says */
  protected abstract read(object: JsonObject, frame: SseFrame): void

  /** @param isMarked the end was said by an end mark, and is not merely that of the bytes */
  protected abstract close(isMarked: boolean): void

  /** @param text the body as it came */
  protected abstract readWhole(body: JsonObject, text: string): void

  push(frame: SseFrame): AnswerEvent[] {
    if (this.narrator.isOver) return []
    const object = readFrame(frame, this.narrator)
    if (object === 'done') this.close(true)
    else if (object) {
      this.#onAnswer?.(answerIn(object))
      this.read(object, frame)
    }
    return this.narrator.take()
  }

  end(): AnswerEvent[] {
    this.close(false)
    return this.narrator.take()
  }

  whole(bodyText: string): AnswerEvent[] {
    const body = parseAnswer(bodyText)
    if (body) {
      this.#onAnswer?.(body)
      this.readWhole(body, bodyText)
    } else this.narrator.fail(unreadable())
    return this.narrator.take()
  }
}

/** A chunk of chat is one itself; events of the other wires hold a message or a response. */
function answerIn(object: JsonObject): JsonObject {
  return object['model'] === undefined ? (asObject(object['message'] ?? object['response']) ?? object) : object
}
