import { budgetPeriods, spanOf, type TimeSpan } from '../../accounts/budget.ts'
import { type Calendar, createCalendar, utc, type Zone } from '../../accounts/calendar.ts'
import type { ClockWatch } from '../../accounts/clock.ts'
import { noWindow } from './post-function.ts'
import { codeOf } from './trouble.ts'

/** A wrong clock may have dated entries outside of the usual periods. At most this many such times are remembered. */
const strangeMax = 20

/**
 * The current and the next days, weeks and months of budgets. They are sent to the database, which does not know our
 * calendar. When it posts an entry, it chooses the periods that contain the entry's time. If no period contains that
 * time, `retry` adds the periods around it.
 */
export class SpendWindows {
  /** The clock with which the database's clock is compared (ruling Y15); undefined if it is not compared. */
  readonly clock: Pick<ClockWatch, 'expectedMs'> | undefined
  readonly #calendar: Calendar
  readonly #nowMs: () => number
  #strange: number[] = []
  #text = ''
  #untilMs = 0

  constructor(zone: Zone = utc, nowMs: () => number = Date.now, clock?: SpendWindows['clock']) {
    this.clock = clock
    this.#calendar = createCalendar(zone)
    this.#nowMs = nowMs
  }

  /** The periods of budgets as JSON, for the parameter `windows` of the SQL function `post`. */
  get text(): string {
    const nowMs = this.#nowMs()
    if (this.#text === '' || nowMs >= this.#untilMs) {
      this.#untilMs = spanOf(this.#calendar, 'day', nowMs).untilMs
      const rows = new Map<string, object>()
      for (const { per, fromMs, untilMs } of this.#around(nowMs))
        rows.set(`${per} ${fromMs}`, { per, from_ms: fromMs, until_ms: untilMs })
      this.#text = JSON.stringify([...rows.values()])
    }
    return this.#text
  }

  /** Runs a posting. If no period contains the posting's time, adds periods and tries again. @throws any other error */
  async retry<T>(work: () => Promise<T>): Promise<T> {
    for (let tries = 0; ; tries++) {
      try {
        return await work()
      } catch (error) {
        if (codeOf(error) !== noWindow || tries === strangeMax) throw error
        this.#strange = [...this.#strange, Number((error as { detail?: string }).detail)].slice(-strangeMax)
        this.#text = ''
      }
    }
  }

  *#around(nowMs: number): Iterable<TimeSpan & { per: string }> {
    yield { per: 'ever', ...spanOf(this.#calendar, undefined, nowMs) }
    for (const per of budgetPeriods)
      for (const atMs of [nowMs, ...this.#strange]) {
        const span = spanOf(this.#calendar, per, atMs)
        yield { per, ...span }
        yield { per, ...spanOf(this.#calendar, per, span.untilMs) }
      }
  }
}
