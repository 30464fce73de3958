import type { ApiAnswer } from './answer.ts'
import { tooMany } from './identity.ts'

/** How many exports run at once: each keeps the thread of the books busy. */
const exportsMax = 4

/** Lists that are sent whole, row by row. */
export function createExports() {
  let running = 0
  return open

  /** Reads the first row before the answer begins: a mistake in the question is found with it. @throws ProblemError */
  async function open(pieces: AsyncIterable<string>, headers: Record<string, string>): Promise<ApiAnswer> {
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

  /** The reader has all rows, or has left, perhaps before the first: a generator that was never begun does not end by itself. */
  function leave(rows: AsyncIterator<string>): void {
    running--
    // A row that is still being read has no reader, and no error of it matters.
    rows.return?.()?.catch(() => {})
  }
}

async function* chain(first: IteratorResult<string>, rows: AsyncIterator<string>): AsyncIterable<string> {
  for (let one = first; !one.done; one = await rows.next()) yield one.value
}
