import type { Principal } from '../accounts/principals.ts'
import type { Operation } from '../operations/operation.ts'
import type { ProblemError } from '../operations/problem.ts'
import type { ApiAnswer } from './answer.ts'
import { tooMany } from './identity.ts'
import { mayTake } from './shared-places.ts'

/** The most concurrent event streams of an operator. */
const streamsMax = 20

/**
 * The most exports at the same time, of all operators (see `mayTake` for each). Each keeps the thread that reads the
 * store busy.
 */
const exportsMax = 4

/** The time between two checks whether an open stream's token or cookie is still valid, in ms. */
const lookMs = 5_000

/**
 * Limits what operators may run at the same time: costly operations, event streams and exports.
 * @param nowMs Unix milliseconds
 */
export function createUnderWay(nowMs: () => number) {
  const counts = new Map<string, number>()
  return { enter, openStream, exportRows }

  /** Counts one more use of `name`. @returns a function that ends the use @throws ProblemError if `most` uses run */
  function take(name: string, most: number, refusal: () => ProblemError): () => void {
    if ((counts.get(name) ?? 0) >= most) throw refusal()
    return count(name)
  }

  function count(name: string): () => void {
    counts.set(name, (counts.get(name) ?? 0) + 1)
    return () => {
      const left = counts.get(name)! - 1
      if (left === 0) counts.delete(name)
      else counts.set(name, left)
    }
  }

  /** Begins an operation. @returns a function that ends it @throws ProblemError if the caller runs too many */
  function enter({ id, atOnce }: Operation, who: Principal | undefined): () => void {
    if (atOnce === undefined || who === undefined) return () => {}
    const name = who.kind === 'operator' ? who.actor : who.key.id
    return take(`${id} ${name}`, atOnce, () => tooMany(`You ask this ${atOnce} times at once already.`, 1))
  }

  /**
   * Opens an event stream. The stream ends if its token or cookie becomes invalid. Validity is checked when an event is
   * sent, at most every `lookMs`.
   * @throws ProblemError if the operator reads too many streams
   */
  function openStream(events: AsyncIterable<string>, actor: string, isStillGood: () => Promise<boolean>): ApiAnswer {
    const leave = take(`streams ${actor}`, streamsMax, () =>
      tooMany('You read as many streams as one may: close one.', 5),
    )
    const headers = { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' }
    return { status: 200, headers, pieces: read(events, isStillGood), onClose: leave }
  }

  /** Counts one more export of this operator. @returns a function that ends it @throws ProblemError if too many run */
  function takeExport(actor: string): () => void {
    const [own, all] = [`exports ${actor}`, 'exports']
    const running = counts.get(all) ?? 0
    if (running >= exportsMax) throw tooMany('Others export now.', 5)
    if (!mayTake(counts.get(own) ?? 0, running, exportsMax))
      throw tooMany('You export as much at once as you may: finish or cancel an export.', 5)
    const leaves = [count(own), count(all)]
    return () => {
      for (const leave of leaves) leave()
    }
  }

  async function* read(events: AsyncIterable<string>, isStillGood: () => Promise<boolean>): AsyncIterable<string> {
    let lookedMs = nowMs()
    for await (const event of events) {
      const now = nowMs()
      if (now - lookedMs >= lookMs) {
        lookedMs = now
        if (!(await isStillGood())) return
      }
      yield event
    }
  }

  /**
   * Sends a complete list row by row. The first row is read before the answer begins, so that a mistake in the request
   * is reported.
   * @throws ProblemError if too many exports run, or if the request has a mistake
   */
  async function exportRows(
    pieces: AsyncIterable<string>,
    headers: Record<string, string>,
    actor: string,
  ): Promise<ApiAnswer> {
    const leave = takeExport(actor)
    const rows = pieces[Symbol.asyncIterator]()
    try {
      const first = await rows.next()
      return { status: 200, headers, pieces: chain(first, rows), onClose }
    } catch (error) {
      leave()
      throw error
    }

    /** Frees the places of the export and closes `rows`, because `chain` does not close them. */
    function onClose(): void {
      leave()
      // Nobody needs the row that is being read, so its errors are ignored.
      rows.return?.()?.catch(() => {})
    }
  }
}

async function* chain(first: IteratorResult<string>, rows: AsyncIterator<string>): AsyncIterable<string> {
  for (let one = first; !one.done; one = await rows.next()) yield one.value
}
