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

/** What a wire makes of the frames of its model's stream; it tells the narrator. */
export type FrameReader = {
  readonly isEnough: boolean
  /** @param object what the frame's data says */
  read(object: Record<string, unknown>, frame: SseFrame): void
  /** @param isMarked the end was said by an end mark, and is not merely that of the bytes */
  end(isMarked: boolean): void
}

/** What the decoders of all wires have in common. @param narrator the reader's own */
export function decodeFrames(narrator: Narrator, reader: FrameReader): Decoder {
  return {
    get isEnough() {
      return reader.isEnough
    },
    push(frame) {
      if (narrator.isOver) return []
      const object = readFrame(frame, narrator)
      if (object === 'done') reader.end(true)
      else if (object) reader.read(object, frame)
      return narrator.take()
    },
    end() {
      reader.end(false)
      return narrator.take()
    },
  }
}
