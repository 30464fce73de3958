import type { ApiKey } from './account.ts'
import { StoreSilent } from './account.ts'
import type { Admission, Admitted, Entered, Refused, Standing } from './admission.ts'
import type { Balances } from './balances.ts'
import type { DeskAnswer, DeskFigures, DeskOrder, PlaceTaken } from './desk.ts'
import type { Eventual } from './eventual.ts'
import type { WindowFigures } from './limits.ts'
import type { AdmissionLimits } from './server-store.ts'

/** What is remembered of how accounts stand; beyond it the one that was told of the longest ago is forgotten. */
const standingsMax = 100_000

/**
 * Admission by a store that several servers use, on this server's side. Nothing is decided here: it is asked, through a
 * desk, and what it answered is remembered for three things only. A window that was full is full until it ends. An account
 * that had credit need not be asked at the head of a request what it is asked anyway with the hold. And answers tell
 * clients how they stand (ruling R13).
 */
export class RemoteAdmission {
  readonly #isWritable: () => boolean
  readonly #standings = new Map<string, Known>()
  /** What the desk was told to hold, released or taken by the store no more: a new desk starts with it. */
  readonly #claims = new Map<string, bigint>()
  readonly #waiting = new Map<number, { order: DeskOrder; resolve(answer: DeskAnswer): void; reject(e: Error): void }>()
  #lastId = 0
  #outbox: DeskOrder[] = []
  #send: ((orders: DeskOrder[]) => void) | undefined
  #lost: Error | undefined

  constructor(isWritable: () => boolean) {
    this.#isWritable = isWritable
  }

  /** Debits that the store owes to take are held, and balances that it tells are remembered. */
  readonly balances: Pick<Balances, 'set' | 'owe'> = {
    set: (accountId, storedNanos) => {
      const known = this.#standings.get(accountId)
      if (known) {
        known.freeNanos += storedNanos - known.balanceNanos
        known.balanceNanos = storedNanos
      } else this.#remember(accountId, { balanceNanos: storedNanos, freeNanos: storedNanos, window: undefined })
    },
    owe: (accountId, amountNanos) => {
      this.#claim(accountId, amountNanos)
      this.#tell({ say: 'owe', accountId, amountNanos })
    },
  }

  /** There is a desk, the first or another one. It is told what is held, and asked what was not answered. */
  connect(send: (orders: DeskOrder[]) => void): void {
    const claims = Array.from(
      this.#claims,
      ([accountId, amountNanos]): DeskOrder => ({ say: 'owe', accountId, amountNanos }),
    )
    const asks = Array.from(this.#waiting.values(), ({ order }) => order)
    this.#outbox = []
    this.#lost = undefined
    this.#send = send
    if (claims.length + asks.length > 0) send([...claims, ...asks])
  }

  /** The desk is gone. Who asks waits for another one, unless there will be none. */
  disconnect(forGood?: Error): void {
    this.#send = undefined
    this.#lost = forGood
    if (!forGood) return
    for (const { reject } of this.#waiting.values()) reject(new StoreSilent(forGood.message))
    this.#waiting.clear()
  }

  /** The desk has answered. */
  hear(answers: readonly DeskAnswer[]): void {
    for (const answer of answers) {
      const waiting = this.#waiting.get(answer.id)
      this.#waiting.delete(answer.id)
      if (answer.verdict === 'silent') waiting?.reject(new StoreSilent('the store does not answer'))
      else waiting?.resolve(answer)
    }
  }

  open(limits: AdmissionLimits): Admission {
    return {
      enter: (key) => this.#enter(limits, key),
      look: (accountId) => this.#look(limits, accountId),
    }
  }

  #enter(limits: AdmissionLimits, { account }: ApiKey): Eventual<Entered | Refused> {
    if (!this.#isWritable()) return { ok: false, why: 'unwritable' }
    const entry = new RemoteEntry((holdNanos, place) => this.#ask(limits, account.id, holdNanos, place))
    const known = this.#standings.get(account.id)
    // Nobody is refused for credit by what was true a while ago.
    if (!known || known.freeNanos <= 0n) {
      return limits.isShedding() ? this.#enterShedding(limits, account.id) : entry.enterAsking()
    }
    if (limits.isShedding()) return { ok: false, why: 'busy' }
    const full = fullWindow(known, limits)
    return full ?? entry
  }

  /** Where credit is wanting that is told first (ruling R1); no place is used. */
  async #enterShedding(limits: AdmissionLimits, accountId: string): Promise<Refused> {
    const outcome = await this.#ask(limits, accountId, 0n, noPlace)
    return outcome.refused ?? { ok: false, why: 'busy' }
  }

  #ask(limits: AdmissionLimits, accountId: string, holdNanos: bigint, place: 'take' | PlaceTaken): Promise<Outcome> {
    if (!this.#isWritable()) return Promise.resolve({ refused: { ok: false, why: 'unwritable' } })
    if (this.#lost) return Promise.reject(new StoreSilent(this.#lost.message))
    const id = ++this.#lastId
    const requestsPerMinute = limits.requestsPerMinute()
    const order: DeskOrder = { say: 'ask', ask: { id, accountId, requestsPerMinute, holdNanos, place } }
    return new Promise<Outcome>((resolve, reject) => {
      this.#waiting.set(id, {
        order,
        resolve: (answer) => resolve(this.#read(limits, accountId, holdNanos, requestsPerMinute, answer)),
        reject,
      })
      this.#tell(order)
    })
  }

  #read(
    limits: AdmissionLimits,
    accountId: string,
    holdNanos: bigint,
    limit: number,
    { verdict, figures, place }: DeskAnswer,
  ): Outcome {
    const { balanceNanos, freeNanos, window } = figures as DeskFigures
    const endsMs = window.endsInMs > 0 ? limits.clockMs() + window.endsInMs : 0
    this.#remember(accountId, { balanceNanos, freeNanos, window: { limit, taken: window.taken, endsMs } })
    switch (verdict) {
      case 'admitted':
        return { place, release: this.#holdUntilReleased(accountId, holdNanos) }
      case 'no_credit':
      case 'all_held':
        return { refused: { ok: false, why: verdict, balanceNanos } }
      case 'rate':
        return { refused: { ok: false, why: 'rate', retryAfterSeconds: secondsOf(window.endsInMs) } }
      default:
        throw new Error(`no key with limits of its own was asked for: ${verdict}`)
    }
  }

  #holdUntilReleased(accountId: string, holdNanos: bigint): () => void {
    if (holdNanos === 0n) return () => {}
    this.#claim(accountId, holdNanos)
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#claim(accountId, -holdNanos)
      this.#tell({ say: 'release', accountId, keyId: undefined, holdNanos })
    }
  }

  #claim(accountId: string, nanos: bigint): void {
    const claimed = (this.#claims.get(accountId) ?? 0n) + nanos
    if (claimed === 0n) this.#claims.delete(accountId)
    else this.#claims.set(accountId, claimed)
  }

  /** What is said in one turn of the event loop goes together. */
  #tell(order: DeskOrder): void {
    if (!this.#send) return
    if (this.#outbox.length === 0) setImmediate(() => this.#sendOutbox())
    this.#outbox.push(order)
  }

  #sendOutbox(): void {
    const orders = this.#outbox
    this.#outbox = []
    if (orders.length > 0) this.#send?.(orders)
  }

  #remember(accountId: string, known: Known): void {
    this.#standings.delete(accountId)
    this.#standings.set(accountId, known)
    if (this.#standings.size <= standingsMax) return
    for (const oldest of this.#standings.keys()) {
      this.#standings.delete(oldest)
      return
    }
  }

  #look(limits: AdmissionLimits, accountId: string): Standing | undefined {
    const known = this.#standings.get(accountId)
    return known && { balanceNanos: known.balanceNanos, window: figuresOf(known.window, limits) }
  }
}

/** How an account stood when it was last told. */
type Known = {
  balanceNanos: bigint
  freeNanos: bigint
  /** Undefined where only the balance was told. `endsMs` by the clock of this process; 0: none was open. */
  window: { limit: number; taken: number; endsMs: number } | undefined
}

type Outcome = { refused: Refused; place?: never; release?: never } | Granted
type Granted = { refused?: never; place: PlaceTaken | undefined; release: () => void }
type AskStore = (holdNanos: bigint, place: 'take' | PlaceTaken) => Promise<Outcome>

/** Of a question that takes no place and has none. */
const noPlace: PlaceTaken = { accountMs: 0, keyMs: undefined }

/** A request on its way to its hold. Its place is taken by the first question that the store answers. */
class RemoteEntry implements Entered {
  readonly ok = true
  readonly #ask: AskStore
  #place: PlaceTaken | undefined
  #hasAsked = false

  constructor(ask: AskStore) {
    this.#ask = ask
  }

  async enterAsking(): Promise<Entered | Refused> {
    return (await this.#takePlace()) ?? this
  }

  async admit(holdNanos: bigint): Promise<Admitted | Refused> {
    this.#hasAsked = true
    const { refused, release } = await this.#ask(holdNanos, this.#place ?? 'take')
    return refused ?? { ok: true, release }
  }

  judge(): Promise<Refused | undefined> | undefined {
    return this.#hasAsked ? undefined : this.#takePlace()
  }

  [Symbol.dispose](): void {
    // Nobody waits for it: its client is gone, or hears of something that broke here.
    if (!this.#hasAsked) this.#takePlace().catch(() => {})
  }

  async #takePlace(): Promise<Refused | undefined> {
    this.#hasAsked = true
    const { refused, place } = await this.#ask(0n, 'take')
    this.#place = place
    return refused
  }
}

function fullWindow({ window }: Known, limits: AdmissionLimits): Refused | undefined {
  if (!window || window.taken < limits.requestsPerMinute()) return undefined
  const endsInMs = window.endsMs - limits.clockMs()
  return endsInMs > 0 ? { ok: false, why: 'rate', retryAfterSeconds: secondsOf(endsInMs) } : undefined
}

function figuresOf(window: Known['window'], limits: AdmissionLimits): WindowFigures | undefined {
  if (!window) return undefined
  const limit = limits.requestsPerMinute()
  const endsInMs = window.endsMs - limits.clockMs()
  if (endsInMs <= 0) return { limit, left: limit, resetSeconds: 0 }
  return { limit, left: Math.max(0, limit - window.taken), resetSeconds: Math.ceil(endsInMs / 1000) }
}

function secondsOf(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000))
}
