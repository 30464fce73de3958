import type { ApiAnswer } from './answer.ts'
import { tooMany } from './identity.ts'

/** The most exports at the same time. Each keeps the thread of the books busy. */
const exportsMax = 4

/** Creates exports: complete lists that are sent row by row. */
export function createExports() {
  let running = 0
  return open

  /** Reads the first row before the answer begins, because that row reveals a mistake in the request. @throws ProblemError */
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

  /** The reader has all rows or has left. The rows must be closed, because a generator that never began does not end by itself. */
  function leave(rows: AsyncIterator<string>): void {
    running--
    // A row that is being read is not needed any more, so its errors are ignored.
    rows.return?.()?.catch(() => {})
  }
}

async function* chain(first: IteratorResult<string>, rows: AsyncIterator<string>): AsyncIterable<string> {
  for (let one = first; !one.done; one = await rows.next()) yield one.value
}
