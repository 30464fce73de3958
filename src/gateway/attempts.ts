import type { ApiKey } from '../accounts/account.ts'
import type { Model } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { Likeness } from '../inference/likeness.ts'
import type { AnswerForm } from '../upstream/first-bytes.ts'
import type { CloudCredential } from '../upstream/live-key.ts'
import type { ChosenTarget, Search, Stay } from '../upstream/pool.ts'
import { type Failure, isStale, judge, type Verdict } from '../upstream/verdict.ts'
import { Attempt, type AttemptListener } from './attempt.ts'
import type { Call } from './call.ts'
import { type ChainWalk, causeOf, type FailedEntry, noteRefusedBy } from './chain.ts'
import type { PassedOverFor } from './chain-stays.ts'
import type { Exchange, UpstreamRequests } from './exchange.ts'
import type { BodyShare } from './fairness/places.ts'
import type { Gateway, Snapshot } from './gateway.ts'
import type { CallRecord, Stopped, Try } from './record.ts'
import { type Failed, providerText } from './refuse.ts'

/** The facts of a request that its attempts use. */
export type AttemptsParts = {
  gateway: Pick<Gateway, 'nowMs' | 'clockMs' | 'flow' | 'tracing'>
  snapshot: Snapshot
  call: Pick<Call, 'requestId'>
  record: CallRecord
  key: ApiKey
  /** The model that is asked first. */
  model: Model
  /** The further entries of a fallback chain (ruling Y23); undefined for a plain model. */
  chain?: ChainWalk | undefined
  /** The conversation key, scoped to the account. It decides which upstream account is asked (ruling P6). */
  affinity: string | undefined
  /** Decides which upstream account is asked if the request has no conversation key (ruling Y24). */
  likeness?: Likeness | undefined
  /** The counted memory of the request body. It is given back when the body is released. */
  share: BodyShare
}

/**
 * The upstream's side of one request. It makes one attempt after the other, until an upstream answers (rulings U1, U2).
 * This class keeps the request as long as it may have to be sent again, and records each attempt. Attempts report to
 * the listener directly.
 */
export class Attempts {
  readonly #parts: AttemptsParts
  readonly #listener: AttemptListener
  #failover: Failover
  /** The model that is asked, or was asked last. */
  model: Model
  /** The exchange (the request as it is sent to a model) of the newest attempt, or of the attempt that comes next. */
  exchange: Exchange
  /** The number of attempts at earlier entries of the chain. */
  #attemptsBefore = 0
  /** The attempt under way, or else the last one; undefined if none was made. */
  newest: Attempt | undefined
  #exchangeFor: UpstreamRequests['exchangeFor']
  /** The request was released from memory, so no other attempt can follow. */
  #isForgotten = false
  /** The time at which the model's only account is asked once more (ruling Y26), by the monotonic clock. */
  #againMs: number | undefined
  /** The credential whose renewal the request waits for, and the end of the wait by the monotonic clock. */
  #renewing: { credential: CloudCredential; untilMs: number } | undefined
  /** The newest attempt, as it is noted in the record of the request. */
  #tried: Try | undefined
  /** The refusal by the current entry of a chain. Set if the request fits no target of this entry. */
  #refusal: GatewayError | undefined

  /** @param asking makes the requests of the attempts. It is freed when no other attempt can follow. */
  constructor(parts: AttemptsParts, asking: UpstreamRequests, listener: AttemptListener) {
    this.#parts = parts
    this.#listener = listener
    this.model = parts.model
    this.exchange = asking.exchange
    this.#failover = new Failover(parts, this.#form, attemptsMax)
    this.#exchangeFor = asking.exchangeFor
  }

  /**
   * Sends the request for the first time.
   * @returns the failure to report if no target can be tried now
   * @throws GatewayError if the request fits no target, for instance because of its size
   */
  start(): Failed | undefined {
    return this.#begin() ? undefined : this.#fallBack(this.#failover.told)
  }

  /**
   * Handles the failure of the newest attempt. If the client has seen nothing, another attempt may follow.
   * @returns the failure to report if none follows
   * @throws GatewayError if the request fits no target
   */
  failed(failure: Failure, isSeen: boolean): Failed | undefined {
    const verdict = this.#failover.failed(failure)
    this.end(verdict.alarm ?? failure.cause)
    const { gateway, snapshot } = this.#parts
    const text = providerText(
      { flow: gateway.flow, snapshot, model: this.model, exchange: this.exchange },
      this.newest?.target,
      failure,
    )
    if (text !== undefined && this.#tried) this.#tried.text = text
    if (failure.cause === 'upstream_protocol') this.#parts.record.contentType = this.newest?.contentType
    if (!isSeen && this.#tryAgain(failure, verdict)) return undefined
    const told = isSeen ? { failure, verdict, target: this.newest?.target } : this.#fallBack(this.#failover.told)
    if (told === undefined) return undefined
    const stopped = verdict.elsewhere === 'any' ? 'attempts' : (this.#failover.stopped ?? 'final')
    this.#parts.record.stopped = isSeen ? 'seen' : stopped
    return told
  }

  /** Whether no attempt is under way, because an upstream asked for a short wait or a credential is being renewed. */
  get isWaiting(): boolean {
    return this.#againMs !== undefined || this.#renewing !== undefined
  }

  /**
   * Called regularly. Asks the account again after the wait that the upstream asked for, or after the renewal of the
   * account's credential.
   * @param nowMs monotonic
   * @returns the failure to report if no further attempt is possible
   */
  tick(nowMs: number): Failed | undefined {
    if (this.#renewing) {
      const { credential, untilMs } = this.#renewing
      if (credential.isRenewing && nowMs < untilMs) return undefined
      this.#renewing = undefined
      if (this.#askRenewed()) return undefined
    } else if (this.#againMs === undefined || nowMs < this.#againMs || this.#askOnly()) return undefined
    const told = this.#fallBack(this.#failover.told)
    if (told) this.#parts.record.stopped = this.#failover.stopped ?? 'final'
    return told
  }

  firstByte(): void {
    this.#failover.stay?.firstByte()
  }

  /** Called when the head of an answer came. If no other attempt can follow, the request is released from memory. */
  answered(): void {
    const failover = this.#failover
    // An answer with status 200 can still refuse sealed items. Then the request is sent to the same account without
    // these items (ruling U13).
    const isLast = !failover.hasMore && !this.#parts.chain?.furtherCount
    if (isLast && !(failover.mayAgain && this.exchange.mayUnseal)) this.forget()
  }

  /** Releases the request from memory. It cannot be sent again. */
  forget(): void {
    this.#isForgotten = true
    this.#exchangeFor = undefined
    // After several attempts, the socket of an earlier attempt may still send from the body. The body's memory is then
    // not freed at once.
    const isOnly = this.#attemptsBefore + this.#failover.attempts === 1
    this.exchange.forget(isOnly && this.newest?.isSent === true)
    this.#parts.chain?.forget()
    this.#parts.share.release()
  }

  /** Called when a part of an answer has come, so the target works. */
  succeeded(): void {
    this.#failover.stay?.succeeded(this.exchange.isUnsealed)
    this.#parts.chain?.answered(this.model)
  }

  completed(answer: { lastSealed?(): string | undefined }): void {
    this.succeeded()
    this.#failover.continuesAs(answer, this.exchange.isUnsealed)
    this.forget()
  }

  /**
   * Records the end of the newest attempt. Only the first call counts. @param cause why the attempt failed, if it
   * failed
   */
  end(cause: string | undefined): void {
    const tried = this.#tried
    if (tried === undefined || tried.endMs !== undefined) return
    tried.endMs = this.#parts.gateway.clockMs()
    tried.status = this.newest?.status || undefined
    // If the client left while the text of a refusal was read, only the status is known.
    tried.cause = cause ?? (this.newest?.isRefusing ? `upstream_${tried.status}` : undefined)
  }

  /** Ends the request. A target that has neither answered nor failed by now counts as neither good nor bad. */
  leave(): void {
    this.end(undefined)
    this.#failover.stay?.left()
    this.#parts.share.release()
  }

  get #form(): AnswerForm {
    return this.exchange.asksForStream ? 'stream' : 'json'
  }

  /**
   * Tries the first target of a model.
   * @returns false if no target can be tried, or if no target suits a request to a chain
   * @throws GatewayError if no target suits a request without a chain
   */
  #begin(): boolean {
    this.#refusal = undefined
    this.#failover.continues(this.exchange)
    try {
      return this.#tryElsewhere()
    } catch (error) {
      if (!this.#parts.chain || !(error instanceof GatewayError)) throw error
      this.#refusal = error
      return false
    }
  }

  /**
   * Goes to further entries of the chain after an entry has failed, until an entry can be tried.
   * @returns undefined if an entry is tried now; otherwise the failure to report
   * @throws GatewayError the first refusal if the request fits no entry
   */
  #fallBack(failed: Failed): Failed | undefined {
    const { chain } = this.#parts
    if (chain === undefined) return failed
    let last = failed
    let told: FailedEntry | undefined
    const refusal = this.#refusal
    for (;;) {
      if (this.#refusal === undefined)
        told = chain.failed({ ...last, of: { model: this.model, exchange: this.exchange } })
      const cause = this.#refusal ? 'fit' : causeOf(last)
      if (!this.#enterNext(chain, cause)) {
        if (told === undefined) throw refusal!
        noteRefusedBy(this.#parts.record, told.of.model)
        noteExchange(this.#parts.record, told.of.exchange)
        return told
      }
      if (this.#begin()) return undefined
      last = this.#failover.told
    }
  }

  /** Goes to the next entry of the chain that the request fits. @returns false if there is none */
  #enterNext(chain: ChainWalk, cause: PassedOverFor | undefined): boolean {
    const next = chain.next(this.model, cause)
    if (next === undefined) return false
    const { record } = this.#parts
    this.#attemptsBefore += this.#failover.attempts
    this.model = next.model
    const asking = next.asking()
    this.exchange = asking.exchange
    this.#exchangeFor = asking.exchangeFor
    noteExchange(record, this.exchange)
    // A chain allows one more attempt for each entry after the first. The attempts of entries that were not tried yet
    // are reserved for them (ruling Y23).
    const most = attemptsMax + chain.size - 1 - this.#attemptsBefore - chain.furtherCount
    this.#failover = new Failover({ ...this.#parts, model: next.model }, this.#form, Math.min(attemptsMax, most))
    return true
  }

  #tryAgain(failure: Failure, verdict: Verdict): boolean {
    const failover = this.#failover
    const { fault } = failure
    const { elsewhere } = verdict
    // An account that cannot open the request's sealed items gets the request again without these items (ruling U13).
    if (fault.code === 'invalid_encrypted_content' && failover.mayAgain && this.#unseal(this.exchange)) {
      return this.#try(failover.again())
    }
    if (elsewhere === 'any') return failover.mayAgain && this.#try(failover.again(), true)
    // When the head of an answer came, `answered` may have released the request from memory.
    if (elsewhere !== 'another' || this.#isForgotten) return false
    if (failover.isRenewed && this.#renew()) return true
    return this.#tryElsewhere() || this.#waitForOnly(failure, verdict)
  }

  /**
   * Called when the provider refused an expired credential, or a signature whose time is wrong. If a new signature is
   * enough, the account is asked again at once. Otherwise another account is tried. If no other account can be tried,
   * the request waits for the renewal.
   */
  #renew(): boolean {
    const { target, refusedAt } = this.newest!
    const { credential } = target.key!
    credential!.renew(refusedAt)
    if (!credential!.isRenewing) return this.#askRenewed()
    if (this.#tryElsewhere()) return true
    this.#renewing = { credential: credential!, untilMs: this.#parts.gateway.clockMs() + renewMaxMs }
    return true
  }

  #askRenewed(): boolean {
    if (!this.#failover.mayAgain || this.newest?.target.key?.value === undefined) return false
    return this.#try(this.#failover.again())
  }

  #waitForOnly(failure: Failure, verdict: Verdict): boolean {
    const waitMs = this.#failover.waitForOnly(failure, verdict)
    if (waitMs === undefined) return false
    if (waitMs === 0) return this.#askOnly()
    this.#againMs = this.#parts.gateway.clockMs() + waitMs
    return true
  }

  #askOnly(): boolean {
    this.#againMs = undefined
    const choice = this.#failover.onlyAgain()
    return choice !== undefined && this.#try(choice, true)
  }

  /** Tries the next target. @returns false if there is none. @throws GatewayError if the request fits no target */
  #tryElsewhere(): boolean {
    let refusal: GatewayError | undefined
    for (let choice = this.#failover.next(); choice !== undefined; choice = this.#failover.next()) {
      try {
        return this.#try(choice)
      } catch (error) {
        // The request does not fit this target, so the next target is tried.
        if (!(error instanceof GatewayError)) throw error
        refusal = error
        this.#failover.skip()
      }
    }
    // The refusal is thrown only if the request fits no enabled target. Otherwise it may fit a target that cannot be
    // tried now. Then the caller reports the most useful failure instead (see `told`, ruling U2).
    if (refusal && this.#failover.isPassedOverByAll) throw refusal
    return false
  }

  /** Sends the request to a target. Always returns true. @throws GatewayError if the request does not fit the target */
  #try(choice: ChosenTarget, isFresh = false): true {
    const { gateway, snapshot } = this.#parts
    const { target } = choice
    const exchange = this.#adapt(choice)
    this.#failover.enter()
    this.exchange = exchange
    const traceparent = this.#note(choice)
    const { upstreams, config } = snapshot
    const { nowMs, clockMs, flow } = gateway
    const parts = { upstreams, target, isFresh, traceparent, timeouts: config.timeouts, flow, nowMs, clockMs }
    this.newest = new Attempt(parts, exchange, this.#listener)
    this.newest.start()
    return true
  }

  /**
   * Makes the request for the target, by the profile of the target's model. Items that the target's account cannot open
   * are left out (ruling U13).
   */
  #adapt({ target, isHome }: ChosenTarget): Exchange {
    const { record } = this.#parts
    let exchange = this.exchange
    if (this.#exchangeFor && target.model.profile !== exchange.profile) {
      exchange = this.#exchangeFor(target.model)
      noteLosses(record, exchange)
    }
    if (!isHome) this.#unseal(exchange)
    return exchange
  }

  /** Removes sealed items, which only the provider account that made them can read. @returns false if there are none */
  #unseal(exchange: Exchange): boolean {
    if (!exchange.unseal()) return false
    const { record } = this.#parts
    const { losses = [] } = record
    record.losses = [...losses, { field: 'input', what: 'dropped', why: 'sealed by another provider account' }]
    return true
  }

  /** Records the target and why it was chosen. @returns the trace header for the upstream, if any */
  #note({ target, why, moved }: ChosenTarget): string | undefined {
    const { gateway, record } = this.#parts
    const [upstream, account] = [target.upstream.name, target.account?.name]
    record.attempts = this.#attemptsBefore + this.#failover.attempts
    record.upstream = upstream
    record.upstreamAccount = account
    record.why = why
    record.moved = moved
    const startedMs = gateway.clockMs()
    const tried: Try = {
      ...(this.#parts.chain && { model: this.model.entryId }),
      ...(moved && { moved }),
      ...{ upstream, account, why, startedMs, endMs: undefined, status: undefined, cause: undefined },
    }
    this.#tried = tried
    if (record.tries) record.tries.push(tried)
    else record.tries = [tried]
    return gateway.tracing?.enter(record, tried)
  }
}

/** The largest number of attempts at one model for one request (ruling U1). */
const attemptsMax = 3

/** A model's only account is asked again if the upstream demands a wait of at most this many seconds (ruling Y26). */
const waitMaxSeconds = 2
/** The longest wait for a renewal of a credential, in ms. */
const renewMaxMs = 10_000
/** Causes that prove that the account did no work on the request. */
const refusing: ReadonlySet<string> = new Set(['upstream_429', 'upstream_503', 'upstream_529'])

/** Records facts of the request as it is sent: whether it asks for a stream, its output cap and its losses. */
export function noteExchange(record: CallRecord, exchange: Exchange): void {
  record.stream = exchange.stream
  record.outputTokensCap = exchange.outputTokensCap
  noteLosses(record, exchange)
}

function noteLosses(record: CallRecord, { losses }: Exchange): void {
  if (losses.length > 0) record.losses = losses
  else delete record.losses
}

/** The order in which failures are reported: the first is the most useful to a client (ruling U2). */
const tellOrder: readonly Verdict['tell'][] = ['rejected', 'capacity', 'broken', 'account']

/** Decides which targets a request may still be sent to, and keeps its failures so far (rulings U1, U2). */
class Failover {
  readonly #parts: AttemptsParts
  readonly #search: { -readonly [Name in keyof Search]: Search[Name] }
  attempts = 0
  /** The reason why `next` returned undefined after the newest attempt. */
  stopped: Stopped | undefined
  /**
   * Receives the results of the newest attempt, even after the attempt has ended. Undefined before the first attempt.
   */
  stay: Stay | undefined
  /** Whether the newest failure counts. It does not if the account was cooled or got a new key in the meantime. */
  #isFirst = true
  #isOnlyAgain = false
  #choice: ChosenTarget | undefined
  /** The target of the newest attempt. Targets that were chosen after it may have been skipped. */
  #entered: ChosenTarget | undefined
  /** Whether an attempt at the chosen target counts against the budget of retries. */
  #isRetry = false
  #passedOver = 0
  #worst: Failed | undefined
  /** The value of `#worst` before the last failure. */
  #worstBefore: Failed | undefined
  /**
   * Whether the newest failure was an expired credential that the request has renewed. A request can do that only once.
   * Such a failure causes no cooldown.
   */
  isRenewed = false
  #hasRenewed = false
  /**
   * Whether a reused connection was closed while the request was sent. Only the second such closing counts as a
   * failure.
   */
  #hasRaced = false

  readonly #attemptsMax: number

  constructor(parts: AttemptsParts, form: AnswerForm, attemptsMax: number) {
    const { call, key, affinity, model } = parts
    // The entries of a chain may differ: some choose the account by the likeness of requests, others at random.
    const likeness = model.affinity === 'alike' ? parts.likeness : undefined
    this.#parts = parts
    this.#attemptsMax = attemptsMax
    this.#search = {
      requestId: call.requestId,
      customer: key.account,
      affinity,
      likeness,
      tried: [],
      isLast: false,
      form,
    }
  }

  /**
   * Sets the name of the conversation to the last sealed item of the request, if the client has not named it. Called
   * before the first attempt.
   */
  continues(request: { lastSealed(): string | undefined }): void {
    this.#search.sealed = this.#nameBySeal(request)
  }

  /**
   * Returns how long to wait, in ms, before the only account of the model is asked once more, on a fresh connection
   * (ruling Y26).
   * @returns undefined if the account may not be asked again
   */
  waitForOnly({ cause, retryAfterSeconds }: Failure, { alarm }: Verdict): number | undefined {
    if (this.#isOnlyAgain || this.#size !== 1 || alarm !== undefined) return undefined
    if (cause === 'upstream_connect') return 0
    // After a cooldown, an account gets one request first. So only one request waits for the end of the cooldown, and
    // all other requests get their error now.
    if (!this.#isFirst || !this.#parts.snapshot.pool.mayRetry(this.#choice!.target)) return undefined
    const isShort = retryAfterSeconds !== undefined && retryAfterSeconds <= waitMaxSeconds
    return refusing.has(cause) && isShort ? retryAfterSeconds * 1_000 : undefined
  }

  onlyAgain(): ChosenTarget | undefined {
    this.#isOnlyAgain = true
    this.#search.tried = []
    return this.next()
  }

  get hasMore(): boolean {
    return this.attempts < this.#attemptsMax && this.#size > this.#search.tried.length + 1
  }

  /** Chooses the next target, which `enter` confirms. Undefined if no target is left, or no attempt is allowed. */
  next(): ChosenTarget | undefined {
    if (this.attempts >= this.#attemptsMax) return this.#stop('attempts')
    this.#search.isLast = this.attempts === this.#attemptsMax - 1
    const { snapshot, model } = this.#parts
    const choice = snapshot.pool.choose(model, this.#search)
    if (choice === undefined) return this.#stop('nobody')
    if (this.attempts > 0 && !snapshot.pool.mayRetry(choice.target)) return this.#stop('budget')
    this.#choice = choice
    this.#isRetry = this.attempts > 0
    return choice
  }

  /** Call when the attempt at the chosen target begins. */
  enter(): void {
    this.attempts++
    this.stopped = undefined
    this.#entered = this.#choice
    this.stay = this.#parts.snapshot.pool.enter(this.#choice!, this.#search, this.#isRetry)
  }

  /** Whether the same target may be tried once more. Call this only after a failure that the target did not cause. */
  get mayAgain(): boolean {
    return this.attempts < this.#attemptsMax
  }

  /**
   * Chooses the target of the newest attempt once more. This does not use up a retry, because the target did no work on
   * that attempt. The failure of that attempt is not reported to the client.
   */
  again(): ChosenTarget {
    this.#worst = this.#worstBefore
    this.#isRetry = false
    this.#choice = this.#entered
    const { target } = this.#choice!
    this.#search.tried = this.#search.tried.filter((other) => other !== target)
    return this.#choice!
  }

  /** Skips the chosen target, because the request does not fit it. */
  skip(): void {
    this.#search.tried = [...this.#search.tried, this.#choice!.target]
    this.#passedOver++
  }

  /** Whether the request fits no enabled target. */
  get isPassedOverByAll(): boolean {
    return this.#passedOver >= this.#size
  }

  /**
   * Remembers which account answered the conversation. The last sealed item of the answer becomes the conversation's
   * name, because the client sends this item back with the next request.
   * @param isUnsealed whether the request was sent without its sealed items
   */
  continuesAs(answer: { lastSealed?(): string | undefined }, isUnsealed: boolean): void {
    const sealed = this.#nameBySeal(answer)
    if (sealed !== undefined) this.stay?.continuesAs(sealed, isUnsealed)
  }

  /** Notes that the attempt under way failed. @returns what to do about it */
  failed(failure: Failure): Verdict {
    const { target } = this.#choice!
    const judged = judge(failure, target.model)
    const isOurs = judged.tell === 'account' && judged.elsewhere === 'another' && target.key?.credential !== undefined
    this.isRenewed = isOurs && !this.#hasRenewed && isStale(failure)
    this.#hasRenewed ||= this.isRenewed
    const verdict: Verdict = this.isRenewed ? { ...judged, cool: 'no' } : judged
    // A refusal of a faulty request shows that the account works.
    if (verdict.tell === 'rejected') this.stay?.refused()
    else this.#isFirst = this.stay?.failed(verdict, verdict.alarm ?? failure.cause, failure.retryAfterSeconds) ?? true
    const isRaceAgain = verdict.elsewhere === 'any' && this.#hasRaced
    this.#hasRaced ||= verdict.elsewhere === 'any'
    if (verdict.elsewhere === 'another' || isRaceAgain) this.#search.tried = [...this.#search.tried, target]
    this.#worstBefore = this.#worst
    const rank = tellOrder.indexOf(verdict.tell)
    if (!this.#worst || rank <= tellOrder.indexOf(this.#worst.verdict.tell)) this.#worst = { failure, verdict, target }
    return isRaceAgain ? { ...verdict, elsewhere: 'another' } : verdict
  }

  /** The failure that the client gets when no target is left. */
  get told(): Failed {
    const worst = this.#worst
    const { snapshot, model, key } = this.#parts
    const { tell, retryAfterSeconds } = snapshot.pool.outlook(model, key.account)
    const isForCapacity =
      worst?.verdict.tell === 'capacity' || (worst?.verdict.tell === 'account' && tell === 'capacity')
    if (worst && !isForCapacity) return worst
    if (worst) {
      const waits = [worst.failure.retryAfterSeconds, retryAfterSeconds].filter((wait) => wait !== undefined)
      const wait = waits.length === 0 ? undefined : Math.min(...waits)
      // The error reports missing capacity, so that the client can wait (ruling U1). The log keeps the cause of this
      // failure.
      const verdict = { ...worst.verdict, tell: 'capacity' as const }
      return { ...worst, verdict, failure: { ...worst.failure, retryAfterSeconds: wait } }
    }
    const cause = tell === 'capacity' ? 'no_capacity' : 'no_upstream_account'
    const failure: Failure = { fault: { kind: tell, text: '' }, cause, retryAfterSeconds }
    return { failure, verdict: judge(failure, model), target: undefined }
  }

  /** The number of enabled upstream accounts that serve the model to this customer. */
  get #size(): number {
    const { snapshot, model, key } = this.#parts
    return snapshot.pool.sizeOf(model, key.account)
  }

  #stop(reason: Stopped): undefined {
    this.stopped = reason
    return undefined
  }

  /**
   * Names a conversation without a conversation key by its last sealed item. By this name, the pool finds the account
   * that sealed the item, because no other account can open it (ruling U13). The name contains the id of the customer's
   * account, so that no other customer has the same name.
   */
  #nameBySeal(said: { lastSealed?(): string | undefined }): string | undefined {
    const sealed = this.#search.affinity === undefined && this.#size > 1 ? said.lastSealed?.() : undefined
    return sealed && `${this.#parts.key.account.id} ${sealed}`
  }
}
