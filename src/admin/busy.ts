import type { Principal } from '../accounts/books.ts'
import type { Operation } from '../operations/operation.ts'
import { tooMany } from './identity.ts'

/** Limits how often each operator may run the same costly operation at the same time. */
export function createBusy() {
  const running = new Map<string, number>()
  /** @returns a function that ends the operation. @throws ProblemError if the operator runs it too often already */
  return function enter({ id, atOnce }: Operation, who: Principal | undefined): () => void {
    if (atOnce === undefined || who?.kind !== 'operator') return () => {}
    const place = `${id} ${who.actor}`
    const count = running.get(place) ?? 0
    if (count >= atOnce) throw tooMany(`You ask this ${atOnce} times at once already.`, 1)
    running.set(place, count + 1)
    return () => {
      const left = running.get(place)! - 1
      if (left === 0) running.delete(place)
      else running.set(place, left)
    }
  }
}
