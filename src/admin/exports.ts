import type { Answer } from './answer.ts'
import { tooMany } from './identity.ts'

/** How many exports run at once: each keeps the thread of the books busy. */
const exportsMax = 4

/** Lists that are told whole, row by row. */
export function createExports() {
  let running = 0
  return open

  /** What is wrong with the question is known with the first row, before anything is answered. @throws ProblemError */
  async function open(pieces: AsyncIterable<string>, headers: Record<string, string>): Promise<Answer> {
    if (running >= exportsMax) throw tooMany('Others export now.', 5)
    running++
    const rows = pieces[Symbol.asyncIterator]()
    try {
      const first = await rows.next()
      return { status: 200, headers, pieces: chain(first, rows), onClose: () => leave(rows) }
    } catch (error) {
      running--
      throw error
    }
  }

  /** The reader has all of it, or has left, perhaps before the first row: what nobody has begun to read ends nothing by itself. */
  function leave(rows: AsyncIterator<string>): void {
    running--
    // Of a row that is being read nobody hears any more.
    rows.return?.()?.catch(() => {})
  }
}

async function* chain(first: IteratorResult<string>, rows: AsyncIterator<string>): AsyncIterable<string> {
  for (let one = first; !one.done; one = await rows.next()) yield one.value
}
