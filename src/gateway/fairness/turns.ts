import { failureTexts, GatewayError } from '../../errors.ts'

/** In one turn of the event loop requests are begun for so long; who comes then waits for his turn. */
export const budgetMs = 5

/** A body of more bytes than this may keep the loop for tens of milliseconds. */
export const heavyBytes = 262_144

/** Behind a heavy one the next waits as long as that one took; a loop that was held up by others counts at most so long. */
const restMaxMs = 50

/** Whoever asked most lately comes last: counted over this time and the one before it. */
const windowMs = 1_000

/** So many starts are tried in one turn of the loop. */
const startsPerTurn = 16

/** Who has waited so long is refused: his account asks for more than can be done, and his body is memory. */
const patienceMs = 5_000

export type TurnParts = {
  /** Monotonic milliseconds of the process itself. */
  clockMs(): number
  /** Calls back when what is ready to be read or written has had its turn. */
  soon(act: () => void): void
  /** Calls back after so many milliseconds. */
  after(ms: number, act: () => void): void
}

/**
 * Who begins when all cannot (decision 0020). A request is read, checked and translated in one piece, during which nobody
 * else gets anything, and many such pieces in one turn of the event loop keep everybody's answers waiting. So of what is
 * ready in one turn only `budgetMs` are begun; the rest waits, and of those that wait the account that asked for least in
 * the last seconds comes first. While nothing is scarce it costs a look at the clock.
 */
export type Turns = {
  /**
   * Resolves when it is this request's turn: at once while nothing is scarce.
   * @param bytes of its body
   * @throws GatewayError 429 when that did not come in `patienceMs`; only who asked for most waits so long
   */
  take(accountId: string, bytes: number): Promise<void>
}

type Waiter = { accountId: string; bytes: number; sinceMs: number; begin: () => void; refuse: (why: Error) => void }

export function createTurns({ clockMs, soon, after }: TurnParts): Turns {
  /** When the first of this turn of the loop was begun; undefined in a turn that has begun none. */
  let firstMs: number | undefined
  /** By account, in the order in which they came. */
  const waiting = new Map<string, Waiter[]>()
  let armed = 0
  let isResting = false
  let heavyStartMs: number | undefined
  let heavyFromMs = Number.NEGATIVE_INFINITY
  const used = createUsed()
  return { take }

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

  /** What was begun has done its work by now: it was one piece. */
  function endHeavy(nowMs: number): void {
    if (heavyStartMs === undefined) return
    heavyFromMs = nowMs + Math.min(nowMs - heavyStartMs, restMaxMs)
    heavyStartMs = undefined
  }

  /** Sees to it that somebody who waits is begun: in the next turn, or when the rest behind a heavy one is over. */
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
    // Each in a callback of its own: what one begins is done before the next looks at the clock.
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

  /** An account's oldest is its first. */
  function refuseOld(nowMs: number): void {
    for (const [accountId, own] of waiting) {
      while (own.length > 0 && nowMs - own[0]!.sinceMs > patienceMs)
        own.shift()!.refuse(new GatewayError('rate_limit_exceeded', failureTexts.serviceFull, { reason: 'busy' }))
      if (own.length === 0) waiting.delete(accountId)
    }
  }

  /** The first of those who may begin whose account has asked for least. */
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
    // If nobody waits, no turn of `arm` comes that would end it.
    if (best.bytes > heavyBytes) soon(() => endHeavy(clockMs()))
  }
}

/** What accounts asked for in this window and the one before. */
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
