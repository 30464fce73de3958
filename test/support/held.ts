import { frames, paths, wireNames } from './native.ts'
import { type Answer, stream, writeChunk } from './raw-upstream.ts'

/** How many frames show something of the answer. */
const shown = { messages: 3, chat: 2, responses: 4 }

/** Streams that show something of their answer, and then wait until they are let go on to their end. */
export function createHeld(): { answer: Answer; letGo(): void } {
  const rests: (() => void)[] = []
  return {
    async answer(socket, asked) {
      const wire = wireNames.find((name) => asked.path.endsWith(paths[name]))!
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
