import { clientWireNames } from '../../src/catalog/wire-names.ts'
import { frames, paths } from './native.ts'
import { type Answer, stream, writeChunk } from './raw-upstream.ts'

/** The number of frames up to the first visible part of the answer. */
const shown = { messages: 3, chat: 2, responses: 4 }

/** Creates streams that send the first part of their answer, and the rest only after `letGo`. */
export function createHeld(): { answer: Answer; letGo(): void } {
  const rests: (() => void)[] = []
  return {
    async answer(socket, asked) {
      const wire = clientWireNames.find((name) => asked.path.endsWith(paths[name]))!
      await stream(frames[wire].slice(0, shown[wire]), { end: false })(socket, asked)
      rests.push(() => {
        for (const frame of frames[wire].slice(shown[wire])) writeChunk(socket, frame)
        socket.write('0\r\n\r\n')
      })
    },
    letGo() {
      for (const rest of rests.splice(0)) rest()
    },
  }
}
