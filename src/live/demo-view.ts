import type { Books } from '../accounts/books.ts'
import type { DemoDesk, DemoState } from '../operations/live-shapes.ts'
import type { Running } from '../operations/operation.ts'
import { ProblemError } from '../operations/problem.ts'
import { explainDebit } from './explanation.ts'

/** The file of the demo store. */
export type DemoFile = {
  state(): Promise<DemoState>
  /** Makes the demo store. @returns false if this server does not offer a demo */
  make(): Promise<boolean>
  remove(): Promise<void>
  /** Opens the books of the demo store. @returns undefined if there is no demo */
  books(): Promise<Books | undefined>
}

/** Makes the operations on the demo. They throw a ProblemError if a demo cannot be made, or if none exists. */
export function openDemoDesk(file: DemoFile): DemoDesk & { books(): Promise<Books> } {
  return {
    state: () => file.state(),
    async make() {
      if (await file.make()) return file.state()
      throw new ProblemError(
        'conflict',
        'A demo is made only while no request was billed, and if no other file has its name.',
      )
    },
    async remove() {
      await file.remove()
      return file.state()
    },
    async books() {
      const books = await file.books()
      if (books) return books
      throw new ProblemError('not_found', 'There is no demo here, or no longer.')
    },
  }
}

/** Answers operators' questions about the demo from the demo's store. The demo runs no requests. */
export function viewDemo(
  own: Running,
  { books, listNeeds, nowMs }: { books(): Promise<Books>; listNeeds: Running['listNeeds']; nowMs(): number },
): Running {
  return {
    ...own,
    isAlone: true,
    heldOf: () => 0n,
    hasForeignKeys: () => false,
    heldByPeople: () => new Map(),
    rememberedSinceMs: nowMs,
    readUnbilledSinceMs: async () => nowMs(),
    listUnreached: () => [],
    async listNeeds() {
      await books()
      return listNeeds()
    },
    listRequests: async () => [],
    findRequests: async () => new Set(),
    readHolds: async () => new Map(),
    listUpstreams: async () => [],
    listWebhooks: async () => [],
    writeTraffic: async () => true,
    readStatus: async () => ({ ...(await own.readStatus()), failing: [], heard: [] }),
    async explain(requestId) {
      const debit = await (await books()).findDebit(requestId)
      return debit ? explainDebit(debit) : 'unknown'
    },
  }
}
