import { formatTime } from './format-time.ts'

/*
 * Whether a clock may date entries (ruling Y15). No entry is dated before the one before it, so a clock that was ahead once
 * dates all later entries of that account ahead. The wall clock (on PostgreSQL, the database's) is therefore held against a
 * clock that only runs forward and counts suspension.
 */

/** How far the wall clock may move against the steady clock, or be behind the newest entry, in ms. */
export const apartMaxMs = 3_600_000
/** A clock further past the newest entry is in doubt at a start and at the command line, in ms. */
const restMaxMs = 366 * 86_400_000
/** How often the store is read: always, and while the clock is in doubt, in ms. */
const [lookMs, doubtMs] = [60_000, 1_000]
/** The last moment that has a date: a forger may have written a later one. */
export const datedMax = 8_640_000_000_000_000
/** By this name the audit trail records what time an operator confirmed. */
export const confirmOperation = 'clock.confirm'

/** What a store knows of its time, in Unix milliseconds. */
export type ClockFacts = {
  /** By the clock that dates its entries. */
  nowMs: number
  /** When the newest entry was posted; undefined: there is no entry. */
  newestMs: number | undefined
  /** What an operator confirmed last, with the number of its record in the audit trail. */
  confirmed: { seq: number; atMs: number } | undefined
}

const cure = 'set it right, or run triwire clock confirm'
const problems = {
  moved: `the clock is in doubt, for it moved by more than an hour: ${cure}`,
  rest: `the clock is in doubt, for it is more than 366 days past the newest entry: ${cure}`,
  ahead: 'the newest entry is more than an hour ahead of the clock: see clock_wrong in the log',
}

/**
 * What is known of a clock, as the store's thread reports it.
 * @property problem `moved`, `rest`: nothing may be dated. `ahead`: the newest entry is ahead, which is only reported.
 * @property offsetMs wall minus steady, as it was when the clock was believed at a start or confirmed.
 */
export type ClockNews = ClockFacts & { problem: keyof typeof problems | undefined; offsetMs: number | undefined }

/** Whether the clock is in doubt where no server holds it against another one. An empty store needs no confirmation. */
export function isPastRest({ nowMs, newestMs = nowMs, confirmed }: ClockFacts): boolean {
  // A confirmation of a later time was given to a clock that has been set back since.
  const confirmedMs = confirmed && confirmed.atMs <= nowMs + apartMaxMs ? confirmed.atMs : newestMs
  return nowMs - Math.max(newestMs, confirmedMs) > restMaxMs
}

/** Whether an entry is ahead of the clock by more than clocks differ. */
export function isAhead(postedMs: number, nowMs: number): boolean {
  return postedMs > nowMs + apartMaxMs
}

/** Holds a wall clock against a steady one: asked before an entry is dated, and told the facts whenever `isDue`. */
export class ClockWatch {
  /** As it was judged last. */
  isBelieved = false
  readonly #steadyMs: () => number
  #offsetMs: number | undefined
  /** While it is in doubt: the number of the confirmation that there was when the doubt began. */
  #doubt: { seq: number | undefined } | undefined
  #dueMs = Number.NEGATIVE_INFINITY

  /** @param offsetMs by which the thread before this one believed the clock; undefined at the start of a server. */
  constructor(steadyMs: () => number, offsetMs: number | undefined) {
    this.#steadyMs = steadyMs
    this.#offsetMs = offsetMs
  }

  /** What the wall clock should show, in whole milliseconds; undefined until it was first believed. */
  get expectedMs(): number | undefined {
    return this.#offsetMs === undefined ? undefined : Math.round(this.#offsetMs + this.#steadyMs())
  }

  /** Whether an entry may be dated by a clock that shows this. */
  believes(nowMs: number): boolean {
    return Math.abs(nowMs - (this.expectedMs ?? Number.NaN)) <= apartMaxMs
  }

  isDue(nowMs: number): boolean {
    return this.#steadyMs() >= this.#dueMs || this.believes(nowMs) !== this.isBelieved
  }

  /** The doubt ends when the clock is back, or with a confirmation of what it shows now. @returns what to report */
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

/** What the serving thread knows of the clock that dates entries, by the last news of the store's thread. */
export class ClockBook {
  news: ClockNews | undefined
  readonly #log: (level: 'info' | 'error', event: string, fields: Record<string, unknown>) => void

  constructor(log: (level: 'info' | 'error', event: string, fields: Record<string, unknown>) => void) {
    this.#log = log
  }

  /** Logged when a problem begins, becomes another one, or ends. */
  hear(news: ClockNews): void {
    const before = this.news?.problem
    this.news = news
    const { problem, nowMs, newestMs } = news
    const fields = { shows: formatTime(nowMs), newest: formatTime(newestMs) }
    if (problem === before) return
    if (problem) this.#log('error', 'clock_wrong', { problem, ...fields, text: this.text })
    else this.#log('info', 'clock_right', fields)
  }

  /** What is wrong with it, in fixed words for an operator. */
  get text(): string | undefined {
    return this.news?.problem && problems[this.news.problem]
  }

  /** The same where nothing may be dated. */
  get doubt(): string | undefined {
    return this.news?.problem === 'ahead' ? undefined : this.text
  }
}
