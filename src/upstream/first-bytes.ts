/**
 * The two forms of an answer. Their times are kept apart, because the first byte of a JSON answer comes when it is
 * complete.
 */
export type AnswerForm = 'stream' | 'json'

const forms = ['stream', 'json'] as const satisfies readonly AnswerForm[]

/** An account's usual time is the median of its latest times to first byte, at most this many of them (ruling Y25). */
const timesMax = 50
/** Times older than this, in ms, do not count. So an account that was not used for a while is judged anew. */
const timesAgeMs = 300_000
/**
 * A usual time is computed only from at least this many answers of the account, or of its pool. Fewer answers could all
 * include the time to connect.
 */
const [ownMin, poolMin] = [3, 20]

/**
 * A request hangs if its first byte takes longer than this, in ms, and longer than `hangFactor` times the usual time.
 * The usual time is that of all accounts of the model.
 */
const hangFloorMs: Record<AnswerForm, number> = { stream: 10_000, json: 60_000 }
const hangFactor = 4
/** If this many requests to an account hang, the account is on trial. Requests then try it one at a time. */
const hangsMin = 2
/** The shortest time between two requests that try an account on trial, in ms. */
const trialMs = 30_000

/**
 * An account is slow if its usual time is more than twice the usual time of all accounts of the model together. A
 * difference up to `noiseMs` does not count.
 */
const slowFactor = 2
const noiseMs = 10

/** A request that waits for its first byte. */
export type Wait = {
  readonly id: number
  readonly form: AnswerForm
  readonly sinceMs: number
  readonly isTrial: boolean
}

/** The usual times to first byte of one model: of each account, and of all accounts together (ruling Y25). */
export class Usual {
  readonly #clockMs: () => number
  readonly #members: readonly FirstBytes[]
  readonly #poolMs: Record<AnswerForm, number | undefined> = { stream: undefined, json: undefined }
  #readMs = Number.NEGATIVE_INFINITY

  /** @param members the accounts of the model @param clockMs returns a monotonic time in ms */
  constructor(members: readonly FirstBytes[], clockMs: () => number) {
    this.#members = members
    this.#clockMs = clockMs
  }

  /** The wait after which a request counts as hanging, in ms. */
  hangMs(form: AnswerForm): number {
    this.#read()
    return Math.max(hangFloorMs[form], hangFactor * (this.#poolMs[form] ?? 0))
  }

  /** Whether a time to first byte is slow for the pool. @param ms a single time, or the usual time of an account */
  isSlow(form: AnswerForm, ms: number | undefined): boolean {
    const poolMs = this.#poolMs[form]
    return ms !== undefined && poolMs !== undefined && ms > Math.max(slowFactor * poolMs, poolMs + noiseMs)
  }

  isSlowAt(form: AnswerForm, account: FirstBytes): boolean {
    this.#read()
    return this.isSlow(form, account.usualMs[form])
  }

  /** Reads the medians, at most once a second because each request asks for them. */
  #read(): void {
    const nowMs = this.#clockMs()
    if (nowMs - this.#readMs < 1_000) return
    this.#readMs = nowMs
    for (const form of forms) {
      const all = this.#members.flatMap((member) => member.readUsual(form))
      this.#poolMs[form] = all.length < poolMin ? undefined : medianOf(all)
    }
  }
}

/**
 * Measures how long requests to one account for one model wait for their first byte. If two requests hang, the account
 * is on trial. It then gets one request at a time, until one gets its first byte or is refused as faulty (ruling Y25).
 */
export class FirstBytes {
  /** The account's usual time to first byte, in ms, for each form of answer. `Usual` keeps these times up to date. */
  readonly usualMs: Record<AnswerForm, number | undefined> = { stream: undefined, json: undefined }
  readonly #clockMs: () => number
  /** The last times to first byte, as a ring buffer. */
  readonly #times: Record<AnswerForm, { ms: number; atMs: number }[]> = { stream: [], json: [] }
  readonly #answers: Record<AnswerForm, { count: number; lastMs: number }> = {
    stream: { count: 0, lastMs: Number.NEGATIVE_INFINITY },
    json: { count: 0, lastMs: Number.NEGATIVE_INFINITY },
  }
  /** Requests without a first byte, by number, the oldest first. A Set is slower, because V8 would hash each object. */
  readonly #waiting: Record<AnswerForm, Map<number, Wait>> = { stream: new Map(), json: new Map() }
  #lastId = 0
  /** Requests that hung until they ended, at most two for each form. A first byte in time clears the form's list. */
  readonly #ended: Record<AnswerForm, Wait[]> = { stream: [], json: [] }
  /**
   * The answer forms (stream, JSON) on trial. `unproven`: the other form hangs, and no answer of this form has come
   * since.
   */
  readonly #trials = new Map<AnswerForm, 'hangs' | 'unproven'>()
  #triedMs: number | undefined

  constructor(clockMs: () => number) {
    this.#clockMs = clockMs
  }

  /** Whether the account is on trial, so that requests try it one at a time. @param form undefined for any form */
  isOnTrial(form?: AnswerForm): boolean {
    return form === undefined ? this.#trials.size > 0 : this.#trials.has(form)
  }

  /** The time until another request may try the account, in ms. */
  get waitMs(): number {
    return this.#triedMs === undefined ? 0 : Math.max(0, this.#triedMs + trialMs - this.#clockMs())
  }

  /** Notes that a request is sent to the account. Its end must be reported with `came`, `answered` or `left`. */
  enter(form: AnswerForm): Wait {
    const sinceMs = this.#clockMs()
    const isTrial = this.#trials.has(form)
    if (isTrial) this.#triedMs = sinceMs
    const wait = { id: ++this.#lastId, form, sinceMs, isTrial }
    this.#waiting[form].set(wait.id, wait)
    return wait
  }

  /** Notes that the first byte of an answer came. @returns the time that it took, in ms */
  came(wait: Wait, usual: Usual): number {
    const { form, sinceMs } = wait
    const atMs = this.#clockMs()
    const ms = atMs - sinceMs
    const answers = this.#answers[form]
    this.#times[form][answers.count++ % timesMax] = { ms, atMs }
    answers.lastMs = atMs
    if (this.#ended[form].length > 0 && ms <= usual.hangMs(form)) this.#ended[form] = []
    this.answered(wait)
    return ms
  }

  /** Notes that the account does not hang: the first byte came, or the model refused a faulty request. */
  answered(wait: Wait): void {
    const { id, form, isTrial } = wait
    this.#waiting[form].delete(id)
    if (!isTrial || !this.#trials.has(form)) return
    if (this.#trials.get(form) === 'unproven') this.#trials.delete(form)
    else this.clear()
  }

  left(wait: Wait, usual: Usual): void {
    const { id, form, sinceMs } = wait
    const isCounted = this.#waiting[form].delete(id)
    const ended = this.#ended[form]
    if (isCounted && this.#clockMs() - sinceMs > usual.hangMs(form) && ended.length < hangsMin) ended.push(wait)
  }

  /**
   * Puts the account on trial if its requests hang.
   * @param mayTry whether another account of the pool works for requests of a form (stream or JSON)
   * @returns whether a trial began
   */
  judge(usual: Usual, mayTry: (form: AnswerForm) => boolean): boolean {
    const hanging: Wait[] = []
    for (const form of forms) if (!this.#trials.has(form)) this.#addHanging(hanging, form, usual)
    if (hanging.length < hangsMin || !hanging.every(({ form }) => mayTry(form))) return false
    this.#triedMs = undefined
    const sinceMs = Math.min(...hanging.map((wait) => wait.sinceMs))
    for (const form of forms) {
      if (hanging.some((wait) => wait.form === form)) this.#trials.set(form, 'hangs')
      else if (!this.#trials.has(form) && this.#answers[form].lastMs < sinceMs) this.#trials.set(form, 'unproven')
    }
    return true
  }

  tryNow(): void {
    this.#triedMs = undefined
  }

  /** Ends all trials, and forgets the requests that hang. */
  clear(): void {
    this.#trials.clear()
    this.#triedMs = undefined
    for (const form of forms) {
      this.#waiting[form].clear()
      this.#ended[form] = []
    }
  }

  /**
   * Updates `usualMs`, the usual time to first byte, for one form of answers. @returns the recent times of this form
   */
  readUsual(form: AnswerForm): number[] {
    const oldestMs = this.#clockMs() - timesAgeMs
    const times = this.#times[form].filter(({ atMs }) => atMs >= oldestMs).map(({ ms }) => ms)
    this.usualMs[form] = times.length < ownMin ? undefined : medianOf(times)
    return times
  }

  /**
   * Extends the list `hanging` by at most `hangsMin` requests: first requests that hung until they ended, then running
   * requests that hang now.
   */
  #addHanging(hanging: Wait[], form: AnswerForm, usual: Usual): void {
    const most = hanging.length + hangsMin
    hanging.push(...this.#ended[form])
    const { [form]: waiting } = this.#waiting
    if (waiting.size === 0) return
    const latestMs = this.#clockMs() - usual.hangMs(form)
    for (const wait of waiting.values()) {
      if (hanging.length >= most || wait.sinceMs >= latestMs) return
      hanging.push(wait)
    }
  }
}

/** Returns the median. Of two middle values it takes the lower, so the slower of two accounts can count as slow. */
function medianOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[(values.length - 1) >> 1]!
}
