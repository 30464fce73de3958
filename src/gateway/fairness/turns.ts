import { failureTexts, GatewayError } from '../../errors.ts'

/** Requests are begun for this many ms in each turn of the event loop. Further requests wait for a later turn. */
export const budgetMs = 5

/** A body of more bytes than this is heavy, because it may block the event loop for tens of milliseconds. */
export const heavyBytes = 262_144

/** The next heavy request waits as long as the last heavy request took, but at most this long, in ms. */
const restMaxMs = 50

/**
 * The use of an account (requests, weighted by size) is summed over this window and the previous one. The account with
 * the least use comes first.
 */
const windowMs = 1_000

/** The most requests that are begun in one turn of the event loop. */
const startsPerTurn = 16

/**
 * The longest time that a request waits to begin, in ms. After that it is refused, because its account sends too much
 * and its body takes memory.
 */
const patienceMs = 5_000

type TurnParts = {
  /** The monotonic clock of the process, in ms. */
  clockMs(): number
  /** Calls back in the next turn of the event loop, after sockets that are ready have been handled. */
  soon(act: () => void): void
  after(ms: number, act: () => void): void
}

type Waiter = { accountId: string; bytes: number; sinceMs: number; begin: () => void; refuse: (why: Error) => void }

export type Turns = ReturnType<typeof createTurns>

/**
 * Decides which request begins when not all can begin at once (decision 0020). Beginning a request blocks the event
 * loop while the request is read, checked and translated. So requests are begun for only `budgetMs` in a turn of the
 * loop, and the others wait. Of these, the requests of the account with the least recent use come first.
 */
export function createTurns({ clockMs, soon, after }: TurnParts) {
  /** When this turn of the loop began its first request; undefined if it has begun none. */
  let firstMs: number | undefined
  /** Waiting requests by account, in the order of arrival. */
  const waiting = new Map<string, Waiter[]>()
  let armed = 0
  let isResting = false
  let heavyStartMs: number | undefined
  let heavyFromMs = Number.NEGATIVE_INFINITY
  const used = createUsed()
  return { take }

  /**
   * Resolves when it is this request's turn, which is at once if no other request waits and the limits allow it.
   * @param bytes the size of its body
   * @throws GatewayError 429 after a wait of `patienceMs`; only accounts with the largest recent use wait so long
   */
  async function take(accountId: string, bytes: number): Promise<void> {
    const nowMs = clockMs()
    const isFree = waiting.size === 0 && (firstMs === undefined || nowMs - firstMs < budgetMs)
    if (isFree && mayBegin(bytes, nowMs)) {
      if (firstMs === undefined) {
        firstMs = nowMs
        soon(endTurn)
      }
      note(accountId, bytes, nowMs)
      return
    }
    await new Promise<void>((begin, refuse) => {
      const own = waiting.get(accountId)
      const waiter = { accountId, bytes, sinceMs: nowMs, begin, refuse }
      if (own) own.push(waiter)
      else waiting.set(accountId, [waiter])
      arm(nowMs)
    })
  }

  function endTurn(): void {
    firstMs = undefined
    endHeavy(clockMs())
  }

  function mayBegin(bytes: number, nowMs: number): boolean {
    return bytes <= heavyBytes || (heavyStartMs === undefined && nowMs >= heavyFromMs)
  }

  function note(accountId: string, bytes: number, nowMs: number): void {
    used.add(accountId, 1 + bytes / heavyBytes, nowMs)
    if (bytes > heavyBytes) heavyStartMs = nowMs
  }

  /** Notes that the heavy request of this turn, if any, has begun fully. The next callback runs only after that. */
  function endHeavy(nowMs: number): void {
    if (heavyStartMs === undefined) return
    heavyFromMs = nowMs + Math.min(nowMs - heavyStartMs, restMaxMs)
    heavyStartMs = undefined
  }

  /** Makes sure that a waiting request begins in the next turn, or after the pause that follows a heavy request. */
  function arm(nowMs: number): void {
    if (armed > 0 || waiting.size === 0) return
    const count = countReady(nowMs)
    if (count === 0 && heavyStartMs === undefined) {
      if (isResting) return
      isResting = true
      after(Math.max(1, heavyFromMs - nowMs), () => {
        isResting = false
        arm(clockMs())
      })
      return
    }
    armed = Math.max(1, count)
    let turnMs: number | undefined
    // Each request begins in a callback of its own. So its work is done before the next callback reads the clock.
    for (let i = armed; i > 0; i--)
      soon(() => {
        const nowMs = clockMs()
        armed--
        endHeavy(nowMs)
        turnMs ??= nowMs
        if (nowMs - turnMs < budgetMs) beginOne(nowMs)
        arm(nowMs)
      })
  }

  function countReady(nowMs: number): number {
    let count = 0
    for (const own of waiting.values())
      for (const { bytes } of own) if (mayBegin(bytes, nowMs) && ++count === startsPerTurn) return count
    return count
  }

  /** Refuses requests that have waited too long. The list of an account begins with its oldest request. */
  function refuseOld(nowMs: number): void {
    for (const [accountId, own] of waiting) {
      while (own.length > 0 && nowMs - own[0]!.sinceMs > patienceMs)
        own.shift()!.refuse(new GatewayError('rate_limit_exceeded', failureTexts.serviceFull, { reason: 'busy' }))
      if (own.length === 0) waiting.delete(accountId)
    }
  }

  /** Begins one request. Of the accounts with a request that may begin, the account with the least use comes first. */
  function beginOne(nowMs: number): void {
    refuseOld(nowMs)
    let best: Waiter | undefined
    let least = Number.POSITIVE_INFINITY
    for (const [accountId, own] of waiting) {
      const first = own.find(({ bytes }) => mayBegin(bytes, nowMs))
      const units = first ? used.of(accountId, nowMs) : Number.POSITIVE_INFINITY
      if (units >= least) continue
      least = units
      best = first
    }
    if (best === undefined) return
    const own = waiting.get(best.accountId)!
    own.splice(own.indexOf(best), 1)
    if (own.length === 0) waiting.delete(best.accountId)
    note(best.accountId, best.bytes, nowMs)
    best.begin()
    // If no further request waits, no other callback would note the end of this heavy request.
    if (best.bytes > heavyBytes) soon(() => endHeavy(clockMs()))
  }
}

/** Sums the use (requests, weighted by size) of each account in this window and in the previous one. */
function createUsed() {
  let startedMs = 0
  let current = new Map<string, number>()
  let previous = new Map<string, number>()
  const roll = (nowMs: number) => {
    if (nowMs - startedMs < windowMs) return
    previous = nowMs - startedMs < 2 * windowMs ? current : new Map()
    current = new Map()
    startedMs = nowMs
  }
  return {
    of(accountId: string, nowMs: number): number {
      roll(nowMs)
      return (current.get(accountId) ?? 0) + (previous.get(accountId) ?? 0)
    },
    add(accountId: string, units: number, nowMs: number): void {
      roll(nowMs)
      current.set(accountId, (current.get(accountId) ?? 0) + units)
    },
  }
}
