import { formatTime } from '../accounts/calendar.ts'
import type { Log } from '../log/log.ts'

/**
 * The number of answers whose `Date` header is compared, and the fewest hosts that must disagree with the clock (Y15).
 */
const [datesMax, hostsMin] = [5, 2]
/** The largest plausible difference between the median of the dates and this machine's clock, in ms. */
const apartMaxMs = 300_000

/**
 * Compares this machine's clock with the `Date` of upstream answers (ruling Y15). The clock counts as wrong if the
 * median of the last five dates is far from it. Dates of at least two hosts must be far on the same side, because a
 * single host may be wrong.
 */
export class UpstreamDates {
  readonly #nowMs: () => number
  readonly #log: Log['event']
  /** How far this machine's clock was ahead of the `Date` of the last answers, in ms. The newest answer comes last. */
  readonly #kept: { host: string; aheadMs: number }[] = []
  readonly #last = new Map<string, { text: string; ms: number }>()
  #aheadMs: number | undefined

  /** @param nowMs the wall clock */
  constructor(nowMs: () => number, log: Log['event']) {
    this.#nowMs = nowMs
    this.#log = log
  }

  /** The problem in words for an operator; undefined if there is none. */
  get text(): string | undefined {
    if (this.#aheadMs === undefined) return undefined
    const minutes = Math.round(Math.abs(this.#aheadMs) / 60_000)
    const side = this.#aheadMs > 0 ? 'ahead of' : 'behind'
    return `this machine's clock is ${minutes} minutes ${side} the Date of upstream answers: check its time service`
  }

  /** Takes the `Date` of an answer. A date that cannot be read is ignored. @param host the host with its port */
  readonly note = (host: string, date: string): void => {
    const last = this.#last.get(host)
    // Dates have whole seconds, so many answers have the same text, which is parsed once.
    const ms = last?.text === date ? last.ms : Date.parse(date)
    if (Number.isNaN(ms)) return
    if (last?.text !== date) this.#last.set(host, { text: date, ms })
    const aheadMs = this.#nowMs() - ms
    const kept = this.#kept
    const wasFull = kept.length === datesMax
    // A busy host must not displace the dates of all other hosts.
    let own = 0
    for (const one of kept) if (one.host === host) own++
    if (own > datesMax - hostsMin)
      kept.splice(
        kept.findIndex((one) => one.host === host),
        1,
      )
    else if (wasFull) kept.shift()
    kept.push({ host, aheadMs })
    // If all kept dates agree with the clock, one more date that agrees cannot change the verdict. So the clock is not
    // judged again.
    const agrees = Math.abs(aheadMs) <= apartMaxMs && this.#aheadMs === undefined
    if (agrees && wasFull === (kept.length === datesMax)) return
    this.#judge()
  }

  #judge(): void {
    const before = this.#aheadMs
    const { length } = this.#kept
    const medianMs = this.#kept.map(({ aheadMs }) => aheadMs).sort((a, b) => a - b)[length >> 1]!
    const far = this.#kept.filter(({ aheadMs }) => Math.abs(aheadMs) > apartMaxMs && aheadMs > 0 === medianMs > 0)
    const hosts = new Set(far.map(({ host }) => host))
    const isApart = length === datesMax && Math.abs(medianMs) > apartMaxMs && hosts.size >= hostsMin
    this.#aheadMs = isApart ? medianMs : undefined
    if (isApart === (before !== undefined)) return
    const fields = { shows: formatTime(this.#nowMs()), ahead_s: Math.round(medianMs / 1_000) }
    if (isApart) this.#log('error', 'clock_apart', { ...fields, hosts: hosts.size, text: this.text })
    else this.#log('info', 'clock_agrees', { ...fields, with: 'upstreams' })
  }
}
