import type { Debit } from '../../accounts/ledger.ts'
import type { GivenBack, Posted, Withdrawn } from '../../accounts/poster.ts'
import type { Connection, RunOutcome } from './connection.ts'
import type { Store } from './store.ts'

type QueueOptions = {
  connection: Pick<Connection, 'write'>
  /** Runs a function after all messages that have already arrived, or after a pause in ms. */
  later: (run: () => void, pauseMs?: number) => void
  /** Checks whether the disk has space for debits. @throws if the space is too small, even if a commit might succeed */
  refuseNarrowDisk: () => void
  /** False while the clock that dates entries is in doubt (ruling Y15). Debits then wait and are tried again. */
  mayDate: () => boolean
}

/** Waiting work, and the function that answers it. */
type QueuedCall<Item, Answer> = { items: readonly Item[]; resolve(answer: Answer): void }

/** The pause before the next try after these outcomes, in ms. After `lost` (a file is gone) there is no further try. */
const pausesMs: Partial<Record<RunOutcome, number>> = { busy: 20, failed: 250 }

/**
 * The waiting work for the ledger. When the thread begins a run, all work that has arrived shares one transaction, and
 * so one sync of the disk. Work stays queued until its commit has returned. After a failed commit, a debit is posted
 * again. The request id makes this harmless (F-S3). If the ledger has the debit already, the debit is on the disk (B8).
 */
export class Queue {
  readonly #options: QueueOptions
  #posts: QueuedCall<Debit, Posted>[] = []
  /** Request ids of queued debits that must not be posted any more (ruling C13). */
  readonly #withdrawn = new Set<string>()
  /** Requests whose debits must be reversed if the ledger has them. */
  #gifts: QueuedCall<string, GivenBack>[] = []
  /**
   * The store object of the last commit. Only this object can show that a debit is surely absent. If the store has been
   * opened again since, its log can contain entries of a failed commit. No query finds these entries, but a recovery
   * can bring them back.
   */
  #proven: Store | undefined
  #isScheduled = false
  #isClosed = false

  constructor(options: QueueOptions) {
    this.#options = options
  }

  /** Posts debits. Resolves after the commit. */
  post(debits: readonly Debit[]): Promise<Posted> {
    return this.#wait(this.#posts, debits)
  }

  giveBack(requestIds: readonly string[]): Promise<GivenBack> {
    return this.#wait(this.#gifts, requestIds)
  }

  /** Withdraws debits. No commit is under way here, so a debit that the ledger lacks was never reported as posted. */
  withdraw(debits: readonly Debit[]): Withdrawn {
    for (const { requestId } of debits) this.#withdrawn.add(requestId)
    let answer: Withdrawn = { fates: debits.map(() => 'unknown'), balances: [] }
    this.#options.connection.write((store) => {
      const unless = store === this.#proven ? 'absent' : 'unknown'
      const fates = debits.map(({ requestId }) => (store.isBooked(requestId) ? 'booked' : unless))
      const spends = store.readSpends(spendersOf(debits))
      answer = { fates, balances: store.readBalances(accountsOf(debits)), spends }
    })
    return answer
  }

  /** Tries the waiting work once more, and then lets the thread end (B14). The server spools the work in any case. */
  close(): void {
    this.#flush()
    this.#isClosed = true
  }

  #wait<Item, Answer>(calls: QueuedCall<Item, Answer>[], items: readonly Item[]): Promise<Answer> {
    const { promise, resolve } = Promise.withResolvers<Answer>()
    calls.push({ items, resolve })
    this.#schedule()
    return promise
  }

  #schedule(pauseMs?: number): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#options.later(() => {
      this.#isScheduled = false
      if (!this.#isClosed) this.#flush()
    }, pauseMs)
  }

  #flush(): void {
    if (!this.#posts.length && !this.#gifts.length) return
    if (!this.#options.mayDate()) {
      this.#schedule(pausesMs.failed)
      return
    }
    const outcome = this.#options.connection.write((store) => {
      if (this.#posts.length) this.#postTo(store)
      if (this.#gifts.length) this.#giveBackIn(store)
    })
    const pauseMs = pausesMs[outcome]
    if (pauseMs !== undefined) this.#schedule(pauseMs)
  }

  #postTo(store: Store): void {
    const posts = this.#posts
    const debits = posts.flatMap(({ items }) => items).filter((debit) => !this.#isWithdrawn(debit))
    const posted = store.postDebits(debits)
    const balances = store.balancesBehind(accountsOf(debits))
    const spends = store.readSpends(spendersOf(debits))
    if (posted.includes('posted')) this.#proven = store
    const inOrder = posted.values()
    const fates = posts.map(({ items }) =>
      items.map((debit) => (this.#isWithdrawn(debit) ? 'withdrawn' : inOrder.next().value!)),
    )
    this.#withdrawn.clear()
    this.#posts = []
    for (const [at, { resolve }] of posts.entries()) resolve({ postings: fates[at]!, balances, spends })
  }

  /** Whether a debit was withdrawn. An empty set is not searched, because V8 keeps a copy of each string looked up. */
  #isWithdrawn({ requestId }: Debit): boolean {
    return this.#withdrawn.size > 0 && this.#withdrawn.has(requestId)
  }

  /**
   * Reverses debits. A call is answered when the reversing entries are durable and the disk has space for debits again.
   * A full disk may still have space for a small change, but not for a debit.
   */
  #giveBackIn(store: Store): void {
    const gifts = this.#gifts
    const returned = new Set(store.giveBack(gifts.flatMap(({ items }) => items)))
    this.#options.refuseNarrowDisk()
    this.#proven = store
    const payers = Array.from(returned, (requestId) => store.payersOf(requestId)!)
    const balances = store.readBalances(new Set(payers.map(([accountId]) => accountId)))
    const spends = store.readSpends(new Set(payers.flat()))
    this.#gifts = []
    for (const { items, resolve } of gifts)
      resolve({ returned: items.filter((requestId) => returned.has(requestId)), balances, spends })
  }
}

/** Returns the keys, accounts and people of the debits, because each of them may have a budget. */
function spendersOf(debits: readonly Debit[]): Set<string | undefined> {
  const spenders = new Set<string | undefined>()
  for (const { keyId, accountId, details } of debits) spenders.add(keyId).add(accountId).add(details?.person)
  return spenders
}

function accountsOf(debits: readonly Debit[]): Set<string> {
  return new Set(debits.map(({ accountId }) => accountId))
}
