import type { Model } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { AnswerForm } from '../upstream/first-bytes.ts'
import type { CloudCredential } from '../upstream/live-key.ts'
import type { ChosenTarget } from '../upstream/pool.ts'
import type { Failure, Verdict } from '../upstream/verdict.ts'
import { Attempt, type AttemptListener } from './attempt.ts'
import { type ChainWalk, causeOf, type FailedEntry, noteRefusedBy } from './chain.ts'
import type { PassedOverFor } from './chain-stays.ts'
import type { Exchange, UpstreamRequests } from './exchange.ts'
import { attemptsMax, Failover, type FailoverParts } from './failover.ts'
import type { BodyShare } from './fairness/places.ts'
import type { Gateway } from './gateway.ts'
import type { CallRecord, Try } from './record.ts'
import { type Failed, providerText } from './refuse.ts'

/** The facts of a request that its attempts use. `model` is the model that is asked first. */
export type AttemptsParts = FailoverParts & {
  gateway: Pick<Gateway, 'nowMs' | 'clockMs' | 'flow' | 'tracing'>
  record: CallRecord
  /** The further entries of a fallback chain (ruling Y23); undefined for a plain model. */
  chain?: ChainWalk | undefined
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
    const { elsewhere, isOfSealed } = verdict
    // An account that cannot open the request's sealed items gets the request again without these items (ruling U13).
    if (isOfSealed && failover.mayAgain && this.#unseal(this.exchange, 'the provider cannot read it any more')) {
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
    if (!this.#failover.mayAgain) return false
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
    if (!isHome && exchange.isOfAccount) this.#unseal(exchange, 'sealed by another provider account')
    return exchange
  }

  /** Removes sealed items, which only their provider can read. @returns whether the body had any */
  #unseal(exchange: Exchange, why: string): boolean {
    if (!exchange.unseal()) return false
    const { record } = this.#parts
    const { losses = [] } = record
    record.losses = [...losses, { field: 'input', what: 'dropped', why }]
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

/** The longest wait for a renewal of a credential, in ms. */
const renewMaxMs = 10_000

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
