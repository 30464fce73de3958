import type { ApiKey } from '../accounts/account.ts'
import type { Model } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { ChosenTarget } from '../upstream/pool.ts'
import type { Failure, Verdict } from '../upstream/verdict.ts'
import { Attempt, type AttemptListener } from './attempt.ts'
import type { Call } from './call.ts'
import type { Exchange } from './exchange.ts'
import { type Failed, Failover } from './failover.ts'
import type { BodyShare } from './fairness/bodies.ts'
import type { Gateway } from './gateway.ts'
import type { CallRecord, Try } from './record.ts'
import { providerText } from './refuse.ts'
import type { Snapshot } from './snapshot.ts'

/** A request as an upstream takes it, and a way to make it for another target with other quirks. */
export type UpstreamRequests = {
  exchange: Exchange
  /** Undefined if all targets have the same quirks. @throws GatewayError if the request cannot be made for that model. */
  exchangeFor: ((model: Model) => Exchange) | undefined
}

/** The context of a request that its attempts need. */
export type AttemptsParts = {
  gateway: Pick<Gateway, 'nowMs' | 'clockMs' | 'flow' | 'tracing'>
  snapshot: Snapshot
  call: Pick<Call, 'requestId'>
  record: CallRecord
  key: ApiKey
  model: Model
  /** The conversation key scoped to the account; picks the upstream account (ruling P6). */
  affinity: string | undefined
  /** The memory that the body counts for, until the body is released. */
  share: BodyShare
}

/**
 * The upstream's side of one request: attempts one after the other, until one answers (rulings U1, U2). It keeps the request
 * for as long as that may have to be sent again, and records each attempt. Attempts report to the listener directly.
 */
export class Attempts {
  readonly #parts: AttemptsParts
  readonly #listener: AttemptListener
  readonly #failover: Failover
  #exchange: Exchange
  #exchangeFor: UpstreamRequests['exchangeFor']
  /** The request was released from memory, so no other attempt can follow. */
  #isForgotten = false
  /** The time at which the only account is asked once more (ruling Y26), by the monotonic clock. */
  #againMs: number | undefined
  #newest: Attempt | undefined
  /** The record's entry of the newest attempt. */
  #tried: Try | undefined

  /** @param asking is kept only while the request may have to be sent */
  constructor(parts: AttemptsParts, asking: UpstreamRequests, listener: AttemptListener) {
    const { snapshot, model, affinity, call, key } = parts
    this.#parts = parts
    this.#listener = listener
    this.#exchange = asking.exchange
    const form = asking.exchange.asksForStream ? 'stream' : 'json'
    const { pool } = snapshot
    this.#failover = new Failover({ pool, model, customer: key.account, affinity, requestId: call.requestId, form })
    this.#exchangeFor = asking.exchangeFor
  }

  /** The exchange that was sent last. */
  get exchange(): Exchange {
    return this.#exchange
  }

  /** The attempt under way, or else the last one; undefined if none was made. */
  get newest(): Attempt | undefined {
    return this.#newest
  }

  /**
   * Sends the request for the first time.
   * @returns the failure to report if no target can be tried. @throws GatewayError if no target takes the request
   */
  start(): Failed | undefined {
    this.#failover.continues(this.#exchange)
    return this.#tryElsewhere() ? undefined : this.#failover.told
  }

  /**
   * Handles the failure of the newest attempt. Another attempt follows if the client has seen nothing.
   * @returns the failure to report if none follows. @throws GatewayError if no target takes the request
   */
  failed(failure: Failure, isSeen: boolean): Failed | undefined {
    const verdict = this.#failover.failed(failure)
    this.end(verdict.alarm ?? failure.cause)
    const { snapshot, model } = this.#parts
    const text = providerText({ snapshot, model, exchange: this.#exchange }, this.#newest?.target, failure)
    if (text !== undefined && this.#tried) this.#tried.text = text
    if (failure.cause === 'upstream_protocol') this.#parts.record.contentType = this.#newest?.contentType
    if (!isSeen && this.#tryAgain(failure, verdict)) return undefined
    const stopped = verdict.elsewhere === 'any' ? 'attempts' : (this.#failover.stopped ?? 'final')
    this.#parts.record.stopped = isSeen ? 'seen' : stopped
    return isSeen ? { failure, verdict, target: this.#newest?.target } : this.#failover.told
  }

  /** Whether nothing is under way, because an upstream asked for a short wait. Nobody works on the request meanwhile. */
  get isWaiting(): boolean {
    return this.#againMs !== undefined
  }

  /**
   * Asks the only account once more when the wait for it is over. @param nowMs monotonic
   * @returns the failure to report if it cannot be asked
   */
  tick(nowMs: number): Failed | undefined {
    if (this.#againMs === undefined || nowMs < this.#againMs || this.#askOnly()) return undefined
    this.#parts.record.stopped = this.#failover.stopped ?? 'final'
    return this.#failover.told
  }

  /** The first byte of an answer came. */
  firstByte(): void {
    this.#failover.firstByte()
  }

  /** The head of an answer came. If no other attempt can follow, the request is released from memory. */
  answered(): void {
    const failover = this.#failover
    // An answer with status 200 may still refuse sealed items. The same account then gets the request without them (ruling U13).
    if (!failover.hasMore && !(failover.mayAgain && this.#exchange.mayUnseal)) this.forget()
  }

  /** Releases the request from memory. It cannot be sent again. */
  forget(): void {
    this.#isForgotten = true
    this.#exchangeFor = undefined
    // If this was not the only attempt, the socket of an earlier one may still use the body.
    this.#exchange.forget(this.#failover.attempts === 1 && this.#newest?.isSent === true)
    this.#parts.share.release()
  }

  /** A part of an answer has come, so the target works. */
  succeeded(): void {
    this.#failover.succeeded(this.#exchange.isUnsealed)
  }

  completed(answer: { lastSealed?(): string | undefined }): void {
    this.succeeded()
    this.#failover.continuesAs(answer, this.#exchange.isUnsealed)
    this.forget()
  }

  /** Records the end of the newest attempt; only the first call counts. @param cause why it failed, if it did */
  end(cause: string | undefined): void {
    const tried = this.#tried
    if (tried === undefined || tried.endMs !== undefined) return
    tried.endMs = this.#parts.gateway.clockMs()
    tried.status = this.#newest?.status || undefined
    tried.cause = cause
  }

  /** Ends the request. A target that has neither answered nor failed by now counts as neither good nor bad. */
  leave(): void {
    this.end(undefined)
    this.#failover.left()
    this.#parts.share.release()
  }

  #tryAgain(failure: Failure, verdict: Verdict): boolean {
    const failover = this.#failover
    const { fault } = failure
    const { elsewhere } = verdict
    // An account that cannot open items sealed by another account gets the same request without them (ruling U13).
    if (fault.code === 'invalid_encrypted_content' && failover.mayAgain && this.#unseal(this.#exchange)) {
      return this.#try(failover.again())
    }
    if (elsewhere === 'any') return failover.mayAgain && this.#try(failover.again(), true)
    // The request may have been released when the head of an answer came.
    if (elsewhere !== 'another' || this.#isForgotten) return false
    return this.#tryElsewhere() || this.#waitForOnly(failure, verdict)
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

  /** @returns false if no target is left or may be tried. @throws GatewayError if no target takes the request */
  #tryElsewhere(): boolean {
    let refusal: GatewayError | undefined
    for (let choice = this.#failover.next(); choice !== undefined; choice = this.#failover.next()) {
      try {
        return this.#try(choice)
      } catch (error) {
        // This target's model does not take the request: the next target is tried.
        if (!(error instanceof GatewayError)) throw error
        refusal = error
        this.#failover.skip()
      }
    }
    // If another target takes the request but cannot be tried now, its failure is reported instead of this refusal (ruling U2).
    if (refusal && this.#failover.isPassedOverByAll) throw refusal
    return false
  }

  /** Sends the request to a target. @returns true. @throws GatewayError if its model does not take the request */
  #try(choice: ChosenTarget, isFresh = false): true {
    const { gateway, snapshot } = this.#parts
    const { target } = choice
    const exchange = this.#adapt(choice)
    this.#failover.enter()
    this.#exchange = exchange
    const traceparent = this.#note(choice)
    const { upstreams, config } = snapshot
    const { nowMs, clockMs, flow } = gateway
    const parts = { upstreams, target, exchange, isFresh, traceparent, timeouts: config.timeouts, flow, nowMs, clockMs }
    this.#newest = new Attempt(parts, this.#listener)
    this.#newest.start()
    return true
  }

  /** Makes the request for the target: by its profile, and without items that its account cannot open (ruling U13). */
  #adapt({ target, isHome }: ChosenTarget): Exchange {
    const { record } = this.#parts
    let exchange = this.#exchange
    if (this.#exchangeFor && target.model.profile !== exchange.profile) {
      exchange = this.#exchangeFor(target.model)
      if (exchange.losses.length > 0) record.losses = exchange.losses
      else delete record.losses
    }
    if (!isHome) this.#unseal(exchange)
    return exchange
  }

  /** Removes items that another account sealed. @returns false if there are none */
  #unseal(exchange: Exchange): boolean {
    if (!exchange.unseal()) return false
    const { record } = this.#parts
    const { losses = [] } = record
    record.losses = [...losses, { field: 'input', what: 'dropped', why: 'sealed by another provider account' }]
    return true
  }

  /** Records the target and why it was chosen. @returns the trace header for the upstream, if any */
  #note({ target, why }: ChosenTarget): string | undefined {
    const { gateway, record } = this.#parts
    const [upstream, account] = [target.upstream.name, target.account?.name]
    record.attempts = this.#failover.attempts
    record.upstream = upstream
    record.upstreamAccount = account
    record.why = why
    const startedMs = gateway.clockMs()
    const tried: Try = { upstream, account, why, startedMs, endMs: undefined, status: undefined, cause: undefined }
    this.#tried = tried
    if (record.tries) record.tries.push(tried)
    else record.tries = [tried]
    return gateway.tracing?.enter(record, tried)
  }
}
