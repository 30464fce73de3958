import type { Verdict } from './verdict.ts'

/** How long an account is left alone at first, in ms, by what its failure tells; twice as long each time it fails again. */
const firstCooldownMs: Record<Verdict['tell'], number> = {
  capacity: 10_000,
  /** Nothing of this mends itself in seconds: a key, a bill. */
  account: 60_000,
  broken: 5_000,
  rejected: 0,
}
const cooldownMinMs = 1_000
const cooldownMaxMs = 300_000

/** Failures in a row from which on an account is left alone that fails now and then (ruling U1). */
const repeatedFrom = 3

/** How long a request after a cooldown may keep the others waiting for what comes of it, in ms. */
const trialMaxMs = 30_000

/** What another server tells is no news where it lasts so little longer, in ms: it is our own that comes back. */
const echoMs = 1_000

/** For how long an account is left alone, and why. */
export type Cooling = {
  forMs: number
  /** In the words of the log. */
  cause: string
  tell: Verdict['tell']
  cool: 'now' | 'repeated'
}

/** What is known of one account's service of one model. */
export type HealthState = 'ready' | 'cooling' | 'trial' | 'disabled'

/**
 * The health of one account for one model (ruling U1). After a cooldown one request at a time tries it: its success makes
 * it ready again, its failure cools it for twice as long, and whatever else becomes of it gives the place free.
 */
export class Health {
  readonly #clockMs: () => number
  readonly #random: () => number
  #failures = 0
  #cooldowns = 0
  #untilMs: number | undefined
  #cause: string | undefined
  #tell: Verdict['tell'] = 'broken'
  #isHeard = false
  #trialSinceMs: number | undefined
  /** Counts cooldowns: what was sent before one says nothing about what comes after it. */
  #era = 0
  #keyVersion: number | undefined
  #isDisabled = false
  readonly #onCooled: ((cooling: Cooling) => void) | undefined

  /**
   * @param clockMs monotonic; random of [0, 1), for the jitter that keeps accounts from coming back in step
   * @param onCooled it is left alone, by what was seen of it here
   */
  constructor(clockMs: () => number, random: () => number, onCooled?: (cooling: Cooling) => void) {
    this.#clockMs = clockMs
    this.#random = random
    this.#onCooled = onCooled
  }

  get state(): HealthState {
    if (this.#isDisabled) return 'disabled'
    if (this.#untilMs === undefined) return 'ready'
    return this.#clockMs() < this.#untilMs ? 'cooling' : 'trial'
  }

  /** It may be sent something now. */
  get isOpen(): boolean {
    if (this.#isDisabled) return false
    if (this.#untilMs === undefined) return true
    const nowMs = this.#clockMs()
    if (nowMs < this.#untilMs) return false
    return this.#trialSinceMs === undefined || nowMs - this.#trialSinceMs >= trialMaxMs
  }

  /** What it was last left alone for, in words of the log, and what that tells clients; undefined while it is ready. */
  get trouble(): { cause: string; tell: Verdict['tell']; waitMs: number } | undefined {
    if (this.#untilMs === undefined) return undefined
    return { cause: this.#cause!, tell: this.#tell, waitMs: Math.max(0, this.#untilMs - this.#clockMs()) }
  }

  /** What it is left alone for was met by another server of the store. */
  get isHeard(): boolean {
    return this.#untilMs !== undefined && this.#isHeard
  }

  /** Failures since its last success. */
  get failures(): number {
    return this.#failures
  }

  /** An operator wants it to be asked for nothing, or no longer wants that. What is known of it stays. */
  disable(isDisabled: boolean): void {
    this.#isDisabled = isDisabled
  }

  /** The next request tries it, whatever it was left alone for; and its next cooldown is a first one. */
  tryNow(): void {
    this.#cooldowns = 0
    this.#trialSinceMs = undefined
    if (this.#untilMs !== undefined) this.#untilMs = Math.min(this.#untilMs, this.#clockMs())
  }

  /** The key that is used from now on, by the count of its changes: what another came to says nothing of it. */
  useKey(version: number): void {
    if (version === this.#keyVersion) return
    this.#keyVersion = version
    // What is under way with the key before it counts for nothing any more.
    this.#era++
    this.#failures = 0
    this.#cooldowns = 0
    this.#untilMs = undefined
    this.#trialSinceMs = undefined
  }

  /** A request goes there. @returns what to tell its end with. */
  enter(): Visit {
    const isTrial = this.#untilMs !== undefined
    if (isTrial) this.#trialSinceMs = this.#clockMs()
    return { era: this.#era, isTrial }
  }

  succeeded({ era }: Visit): void {
    // What was sent before a cooldown and ends well during it does not end it.
    if (era !== this.#era) return
    this.#failures = 0
    this.#cooldowns = 0
    this.#untilMs = undefined
    this.#trialSinceMs = undefined
  }

  /**
   * @param mayCool whether the pool can spare it for a failure that may pass
   * @param retryAfterSeconds what the upstream asked for
   */
  failed(
    visit: Visit,
    { cool, tell }: Verdict,
    cause: string,
    mayCool: () => boolean,
    retryAfterSeconds?: number,
  ): void {
    this.left(visit)
    if (cool === 'no') return
    const askedMs = retryAfterSeconds === undefined ? undefined : clampCooldown(retryAfterSeconds * 1000)
    if (visit.era !== this.#era) {
      // One of many that were under way: it does not count again, but a longer wait that was asked for holds.
      if (cool === 'now' && askedMs !== undefined && this.#untilMs !== undefined) {
        const untilMs = this.#clockMs() + askedMs
        if (untilMs > this.#untilMs) {
          this.#isHeard = false
          this.#cause = cause
          this.#tell = tell
          this.#onCooled?.({ forMs: askedMs, cause, tell, cool })
        }
        this.#untilMs = Math.max(this.#untilMs, untilMs)
      }
      return
    }
    this.#failures++
    if (cool === 'repeated' && ((!visit.isTrial && this.#failures < repeatedFrom) || !mayCool())) {
      // It cannot be spared: it goes on as one that is well.
      this.#untilMs = undefined
      return
    }
    const forMs = askedMs ?? this.#nextCooldownMs(tell)
    this.#leaveAlone({ forMs, cause, tell })
    this.#isHeard = false
    this.#cooldowns++
    this.#onCooled?.({ forMs, cause, tell, cool })
  }

  /** Another server leaves it alone. The longest wait holds. */
  hear({ forMs, cause, tell }: Omit<Cooling, 'cool'>): void {
    const leftMs = this.#untilMs === undefined ? 0 : this.#untilMs - this.#clockMs()
    if (forMs <= Math.max(0, leftMs) + (leftMs > 0 ? echoMs : 0)) return
    this.#leaveAlone({ forMs, cause, tell })
    this.#isHeard = true
  }

  #leaveAlone({ forMs, cause, tell }: Omit<Cooling, 'cool'>): void {
    this.#era++
    this.#trialSinceMs = undefined
    this.#cause = cause
    this.#tell = tell
    this.#untilMs = this.#clockMs() + forMs
  }

  /** The request is over and says nothing of the account's health. */
  left({ era, isTrial }: Visit): void {
    if (isTrial && era === this.#era) this.#trialSinceMs = undefined
  }

  #nextCooldownMs(tell: Verdict['tell']): number {
    const jitter = 0.8 + 0.4 * this.#random()
    return clampCooldown(firstCooldownMs[tell] * 2 ** Math.min(this.#cooldowns, 10) * jitter)
  }
}

/** One request's stay at an account. */
export type Visit = { readonly era: number; readonly isTrial: boolean }

/**
 * Whether one more may be left alone for a failure that may pass: at most half of those that serve a model, rounded down
 * (ruling U1). What an operator has disabled serves none of it, and what was never asked is well.
 * @param others of the same model and switched on
 */
export function maySpare(others: readonly (HealthState | undefined)[]): boolean {
  const on = others.filter((state) => state !== 'disabled')
  const cooling = on.filter((state) => state === 'cooling' || state === 'trial').length
  return cooling + 1 <= Math.floor((on.length + 1) / 2)
}

function clampCooldown(ms: number): number {
  return Math.min(cooldownMaxMs, Math.max(cooldownMinMs, ms))
}
