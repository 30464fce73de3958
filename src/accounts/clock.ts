import { formatTime } from './calendar.ts'

/*
 * Decides whether a clock may date entries (ruling Y15). No entry is dated before the previous one of its account. One
 * entry that a fast clock has dated ahead therefore pushes all later entries of that account ahead. To detect such a
 * clock, the wall clock is compared with a steady clock. On PostgreSQL, the wall clock is the database's. The steady
 * clock only runs forward, also while the machine is suspended.
 */

/**
 * The largest accepted difference between wall clock and steady clock, in ms. The wall clock can also be earlier
 * than the newest entry by this much.
 */
export const apartMaxMs = 3_600_000
/**
 * A starting server or command accepts its clock if the newest entry or confirmation is at most this old, in ms.
 * Otherwise an operator must confirm the clock again.
 */
const restMaxMs = 366 * 86_400_000
/** How often the store is read, in ms: normally, and while the clock is in doubt. */
const [lookMs, doubtMs] = [60_000, 1_000]
/** The last moment that a Date can hold. A forger may have stored a later one. */
export const datedMax = 8_640_000_000_000_000
/** The operation under which the audit trail records the time that an operator confirmed. */
export const confirmOperation = 'clock.confirm'

/** The times that a store reports, in Unix milliseconds. */
export type ClockFacts = {
  /** The present time of the clock that dates the store's entries. */
  nowMs: number
  /** When the newest entry was posted; undefined if there is no entry. */
  newestMs: number | undefined
  /** The time that an operator confirmed last, and the number of this confirmation in the audit trail. */
  confirmed: { seq: number; atMs: number } | undefined
}

const cure = 'set it right, or run triwire clock confirm'
/** The problem of a clock for which `isPastRest` is true, in words. */
export const clockAtRest = `the clock is in doubt, for it is more than 366 days past the newest entry: ${cure}`
const problems = {
  moved: `the clock is in doubt, for it moved by more than an hour: ${cure}`,
  rest: clockAtRest,
  ahead: 'the newest entry is more than an hour ahead of the clock: see clock_wrong in the log',
}

/**
 * The state of a clock, as the store's thread reports it.
 * @property problem `moved` or `rest`: the clock is in doubt, and entries cannot be dated. `ahead`: the newest entry is
 *   ahead of the clock, and entries are still dated
 * @property offsetMs wall time minus steady time, measured when the clock was accepted at a start or confirmed
 */
export type ClockNews = ClockFacts & {
  problem: keyof typeof problems | undefined
  offsetMs: number | undefined
  /**
   * This server's clock is ahead of the store's clock by at least this many ms; if negative, it is late. Undefined if
   * server and store use the same clock.
   */
  aheadMs?: number
}

/** If the clock of a replica differs from the store's by more than this, in ms, the replica logs that (ruling Y15). */
const differsMs = 5_000

/**
 * Whether so much time has passed since the newest entry that an operator must confirm the clock. This is asked only
 * until a server has accepted the clock. An empty store needs no confirmation.
 */
export function isPastRest({ nowMs, newestMs = nowMs, confirmed }: ClockFacts): boolean {
  // A confirmed time that is later than now does not count, because the clock was set back after the confirmation.
  const confirmedMs = confirmed && confirmed.atMs <= nowMs + apartMaxMs ? confirmed.atMs : newestMs
  return nowMs - Math.max(newestMs, confirmedMs) > restMaxMs
}

/**
 * Whether a clock may date entries. A server passes the time that the clock should show. Without a server, the clock
 * must not be far ahead of the newest entry.
 */
export function isClockRight(facts: ClockFacts, expectedMs: number | undefined): boolean {
  return expectedMs === undefined ? !isPastRest(facts) : isNear(facts.nowMs, expectedMs)
}

/** Whether an entry is so far ahead of this clock that this clock or the clock that dated the entry must be wrong. */
export function isAhead(postedMs: number, nowMs: number): boolean {
  return postedMs > nowMs + apartMaxMs
}

/** Whether a clock differs from the expected time by at most one hour. False for NaN. */
function isNear(nowMs: number, expectedMs: number): boolean {
  return Math.abs(nowMs - expectedMs) <= apartMaxMs
}

/**
 * Decides whether a wall clock is right, by a comparison with a steady clock. Call `believes` before each entry is
 * dated. Whenever `isDue` is true, call `judge` with the store's facts.
 */
export class ClockWatch {
  /** Whether the clock was accepted at the last check. */
  isBelieved = false
  readonly #steadyMs: () => number
  #offsetMs: number | undefined
  /**
   * Set while the clock is in doubt. `seq` is the number of the newest confirmation by an operator when the doubt
   * began.
   */
  #doubt: { seq: number | undefined } | undefined
  #dueMs = Number.NEGATIVE_INFINITY

  /**
   * @param offsetMs the difference between wall clock and steady clock when the previous thread accepted the wall
   *   clock; undefined at the start of a server
   */
  constructor(steadyMs: () => number, offsetMs: number | undefined) {
    this.#steadyMs = steadyMs
    this.#offsetMs = offsetMs
  }

  /** The time that the wall clock should show, in whole milliseconds. Undefined until a clock is first accepted. */
  get expectedMs(): number | undefined {
    return this.#offsetMs === undefined ? undefined : Math.round(this.#offsetMs + this.#steadyMs())
  }

  /** Whether a clock that shows the time `nowMs` may date an entry. */
  believes(nowMs: number): boolean {
    return isNear(nowMs, this.expectedMs ?? Number.NaN)
  }

  isDue(nowMs: number): boolean {
    return this.#steadyMs() >= this.#dueMs || this.believes(nowMs) !== this.isBelieved
  }

  /**
   * Decides whether the clock is in doubt. A doubt ends when the clock is right again, or when an operator confirms the
   * clock's present time. @returns the state to report
   */
  judge(facts: ClockFacts): ClockNews {
    const { nowMs, newestMs = 0, confirmed } = facts
    const isStart = this.#offsetMs === undefined
    const isNew = this.#doubt && confirmed && confirmed.seq !== this.#doubt.seq
    const isConfirmed = isNew && Math.abs(confirmed.atMs - nowMs) <= apartMaxMs
    if (isStart ? !isPastRest(facts) : isConfirmed) this.#offsetMs = nowMs - this.#steadyMs()
    this.isBelieved = this.believes(nowMs)
    this.#doubt = this.isBelieved ? undefined : (this.#doubt ?? { seq: confirmed?.seq })
    this.#dueMs = this.#steadyMs() + (this.isBelieved ? lookMs : doubtMs)
    const doubt = isStart ? 'rest' : 'moved'
    const problem = this.isBelieved ? (isAhead(newestMs, nowMs) ? 'ahead' : undefined) : doubt
    return { ...facts, problem, offsetMs: this.#offsetMs }
  }
}

/** Keeps the last report about the clock that dates entries. The store's thread sends it to the serving thread. */
export class ClockBook {
  news: ClockNews | undefined
  #differs = false
  readonly #log: (level: 'info' | 'error', event: string, fields: Record<string, unknown>) => void
  readonly #steadyMs: () => number

  /** @param steadyMs the steady clock of the machine, which the store's thread reads too */
  constructor(
    log: (level: 'info' | 'error', event: string, fields: Record<string, unknown>) => void,
    steadyMs: () => number,
  ) {
    this.#log = log
    this.#steadyMs = steadyMs
  }

  /** Receives a report about the clock. Logs when a problem begins, changes or ends. */
  hear(news: ClockNews): void {
    this.#compare(news)
    const before = this.news?.problem
    this.news = news
    const { problem, nowMs, newestMs } = news
    const fields = { shows: formatTime(nowMs), newest: formatTime(newestMs) }
    if (problem === before) return
    if (problem) this.#log('error', 'clock_wrong', { problem, ...fields, text: this.text })
    else this.#log('info', 'clock_right', fields)
  }

  /** Logs when this server's clock begins to differ from the store's, and when they agree again. */
  #compare({ nowMs, aheadMs = 0 }: ClockNews): void {
    const differs = Math.abs(aheadMs) > differsMs
    if (differs === this.#differs) return
    this.#differs = differs
    const fields = { ahead_s: Math.round(aheadMs / 1_000), store_shows: formatTime(nowMs) }
    if (differs) this.#log('error', 'clock_differs', fields)
    else this.#log('info', 'clock_agrees', { ...fields, with: 'store' })
  }

  /** How far this server's clock is ahead of the store's, in ms. 0 unless they differ by more than 5 s (ruling Y15). */
  get aheadMs(): number {
    return this.#differs ? (this.news?.aheadMs ?? 0) : 0
  }

  /** The time that the store's clock should show. NaN while the clock is in doubt; undefined before any report. */
  expectedMs(): number | undefined {
    if (this.doubt !== undefined) return Number.NaN
    return this.news?.offsetMs === undefined ? undefined : this.news.offsetMs + this.#steadyMs()
  }

  /** The problem of the clock, in fixed words for an operator. */
  get text(): string | undefined {
    return this.news?.problem && problems[this.news.problem]
  }

  /** The problem of the clock, if it prevents dating entries. */
  get doubt(): string | undefined {
    return this.news?.problem === 'ahead' ? undefined : this.text
  }
}
