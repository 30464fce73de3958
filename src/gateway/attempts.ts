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
import type { Snapshot } from './snapshot.ts'

/** A request as an upstream takes it, and as others do that serve the model with other quirks. */
export type UpstreamRequests = {
  exchange: Exchange
  /** Undefined where all do alike. @throws GatewayError where the request cannot be asked so. */
  exchangeFor: ((model: Model) => Exchange) | undefined
}

/** What the attempts need to know of their request. */
export type AttemptsParts = {
  gateway: Pick<Gateway, 'nowMs' | 'clockMs' | 'flow' | 'tracing'>
  snapshot: Snapshot
  call: Pick<Call, 'requestId'>
  record: CallRecord
  key: ApiKey
  model: Model
  /** The conversation key scoped to the account; picks the upstream account (ruling P6). */
  affinity: string | undefined
  /** The room that its body has, until it is let go. */
  share: BodyShare
}

/**
 * The upstream's side of one request: its attempts one after the other, until one answers (rulings U1, U2). It keeps what is
 * sent for as long as that may have to be sent again, and notes each attempt in the record; what an attempt brings it tells
 * the listener itself.
 */
export class Attempts {
  readonly #parts: AttemptsParts
  readonly #listener: AttemptListener
  readonly #failover: Failover
  #exchange: Exchange
  #exchangeFor: UpstreamRequests['exchangeFor']
  /** No other attempt can follow: the request was let go. */
  #isForgotten = false
  #newest: Attempt | undefined
  /** What the record has of it. */
  #tried: Try | undefined

  /** @param asking is held no longer than the request may have to be sent */
  constructor(parts: AttemptsParts, asking: UpstreamRequests, listener: AttemptListener) {
    const { snapshot, model, affinity, call, key } = parts
    const accountId = key.account.id
    this.#parts = parts
    this.#listener = listener
    this.#failover = new Failover({ pool: snapshot.pool, model, accountId, affinity, requestId: call.requestId })
    this.#exchange = asking.exchange
    this.#exchangeFor = asking.exchangeFor
  }

  /** As it was sent last. */
  get exchange(): Exchange {
    return this.#exchange
  }

  /** The attempt under way, or the last that was; undefined where nobody was asked. */
  get newest(): Attempt | undefined {
    return this.#newest
  }

  /**
   * Sends the request for the first time.
   * @returns what is told where nobody can be asked. @throws GatewayError where no target takes the request
   */
  start(): Failed | undefined {
    this.#failover.continues(this.#exchange)
    return this.#tryElsewhere() ? undefined : this.#failover.told
  }

  /**
   * What the newest died of: another one follows while the client has seen nothing.
   * @returns what is told where none does. @throws GatewayError where no target takes the request
   */
  failed(failure: Failure, isSeen: boolean): Failed | undefined {
    const verdict = this.#failover.failed(failure)
    this.end(verdict.alarm ?? failure.cause)
    if (failure.cause === 'upstream_protocol') this.#parts.record.contentType = this.#newest?.contentType
    if (!isSeen && this.#tryAgain(failure, verdict)) return undefined
    const stopped = verdict.elsewhere === 'any' ? 'attempts' : (this.#failover.stopped ?? 'final')
    this.#parts.record.stopped = isSeen ? 'seen' : stopped
    return isSeen ? { failure, verdict, target: this.#newest?.target } : this.#failover.told
  }

  /** The newest has the head of an answer: where no other one can follow it, the request is let go. */
  answered(): void {
    const failover = this.#failover
    // An answer with status 200 may still begin with a refusal of what is sealed, which the same account mends (ruling U13).
    if (!failover.hasMore && !(failover.mayAgain && this.#exchange.mayUnseal)) this.forget()
  }

  /** It is not sent again. */
  forget(): void {
    this.#isForgotten = true
    this.#exchangeFor = undefined
    // Of an attempt before this one a socket may still have it.
    this.#exchange.forget(this.#failover.attempts === 1 && this.#newest?.isSent === true)
    this.#parts.share.release()
  }

  /** Something of an answer has come. */
  succeeded(): void {
    this.#failover.succeeded(this.#exchange.isUnsealed)
  }

  /** The answer is whole. */
  completed(answer: { lastSealed?(): string | undefined }): void {
    this.succeeded()
    this.#failover.continuesAs(answer, this.#exchange.isUnsealed)
    this.forget()
  }

  /** Nothing counts any more of what the newest does; its first end is its end. @param cause what it failed of, if it did */
  end(cause: string | undefined): void {
    const tried = this.#tried
    if (tried === undefined || tried.endMs !== undefined) return
    tried.endMs = this.#parts.gateway.clockMs()
    tried.status = this.#newest?.status || undefined
    tried.cause = cause
  }

  /** Ends the request. An upstream account that has neither answered nor failed by now is not judged by it. */
  leave(): void {
    this.end(undefined)
    this.#failover.left()
    this.#parts.share.release()
  }

  #tryAgain({ fault }: Failure, { elsewhere }: Verdict): boolean {
    const failover = this.#failover
    // An account that cannot open what another sealed takes the same request without it (ruling U13).
    if (fault.code === 'invalid_encrypted_content' && failover.mayAgain && this.#unseal(this.#exchange)) {
      return this.#try(failover.again())
    }
    if (elsewhere === 'any') return failover.mayAgain && this.#try(failover.again(), true)
    // An answer that has come as far as its head may have let the request go.
    return elsewhere === 'another' && !this.#isForgotten && this.#tryElsewhere()
  }

  /** @returns false where nobody is left to ask, or may be asked. @throws GatewayError where no target takes the request */
  #tryElsewhere(): boolean {
    let refusal: GatewayError | undefined
    for (let choice = this.#failover.next(); choice !== undefined; choice = this.#failover.next()) {
      try {
        return this.#try(choice)
      } catch (error) {
        // This target's model does not take the request: it is as if there were one fewer.
        if (!(error instanceof GatewayError)) throw error
        refusal = error
        this.#failover.skip()
      }
    }
    // Who takes it and is left alone for now will be asked again: then that is what is told (ruling U2).
    if (refusal && this.#failover.isPassedOverByAll) throw refusal
    return false
  }

  /** Sends the request to a target. @returns true. @throws GatewayError where that one does not take it */
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

  /** The request as the target takes it: in its profile, and without what its account cannot open (ruling U13). */
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

  /** Sends no more of what another account sealed. @returns false where there was nothing of it */
  #unseal(exchange: Exchange): boolean {
    if (!exchange.unseal()) return false
    const { record } = this.#parts
    const { losses = [] } = record
    record.losses = [...losses, { field: 'input', what: 'dropped', why: 'sealed by another provider account' }]
    return true
  }

  /** Where the newest goes, and why. @returns what its upstream is told of the trace, if anything */
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
