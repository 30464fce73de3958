import type { ApiKey } from '../accounts/account.ts'
import type { Ledger, Outcome } from '../accounts/ledger.ts'
import type { Model } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { Fault } from '../inference/answer.ts'
import type { Usage, UsageReport } from '../inference/usage.ts'
import type { Choice } from '../upstream/pool.ts'
import { type Failure, judge, type Verdict } from '../upstream/verdict.ts'
import type { ErrorFacts } from '../wires/answers/envelope.ts'
import type { StreamFold, StreamRelay, WholeAnswer } from '../wires/answers/relay.ts'
import { Attempt, type AttemptListener } from './attempt.ts'
import type { BodyShare } from './bodies.ts'
import type { Call, CallListener } from './call.ts'
import type { Exchange } from './exchange.ts'
import { type Failed, Failover } from './failover.ts'
import type { Gateway, Recorded, Ticking } from './gateway.ts'
import { type Reading, stopReadMs, tellsLate, withoutLaterOutput } from './read-on.ts'
import type { CallRecord } from './record.ts'
import { refuse } from './refuse.ts'
import { type Bill, debitOf, type Evidence, weigh } from './settle.ts'
import type { Snapshot } from './snapshot.ts'
import { Tries } from './tries.ts'

/** So much of a stream may wait for something to see, in characters (reliability §3). */
const unseenMax = 262_144

/** A stream's head goes out by now at the latest, if the upstream lives (translation 4.1). */
const commitMs = 10_000

/** How a started stream is told to end when the evidence is not complete. */
const outcomeOfCause = new Map<string, Outcome>([
  ['upstream_stall', 'upstream_stall'],
  ['client_stall', 'client_stall'],
  ['client_abort', 'client_abort'],
  ['shutdown', 'shutdown'],
])

/**
 * How far an answer is with its client. Until `open` a failure is an ordinary error response, from then on a cut stream
 * (spec 7.4.4). In `settling` the bill is on its way to the disk and nothing that either side still does changes it; what
 * remains to be said waits for it (ruling C3). `over` is final.
 */
type State = 'held' | 'open' | 'settling' | 'over'

const moves: Record<State, readonly State[]> = {
  held: ['open', 'settling', 'over'],
  open: ['settling', 'over'],
  settling: ['over'],
  over: [],
}

/** A request as an upstream takes it, and as others do that serve the model with other quirks. */
export type Asking = {
  exchange: Exchange
  /** Undefined where all do alike. @throws GatewayError where the request cannot be asked so. */
  exchangeFor: ((model: Model) => Exchange) | undefined
}

/** What a delivery needs of the gateway. */
export type DeliveryGateway = Pick<
  Gateway,
  'snapshots' | 'nowMs' | 'clockMs' | 'deliveries' | 'lingering' | 'readers' | 'flow' | 'tracing' | 'reportBug'
> & { ledger: Pick<Ledger, 'debit'> }

export type DeliveryParts = {
  gateway: DeliveryGateway
  /** What the request took at its start and keeps to its end. */
  snapshot: Snapshot
  call: Omit<Call, 'ip' | 'header' | 'readBody'>
  record: CallRecord
  /** Who pays. */
  key: ApiKey
  model: Model
  /** The conversation key scoped to the account; picks the upstream account (ruling P6). */
  affinity: string | undefined
  /** Gives the hold back; called once. */
  release: () => void
  /** The room that its body has, until it is let go. */
  share: BodyShare
}

/**
 * The client's side of one request: asks for attempts until one answers, shows what that one brings, and ends once,
 * whatever happens. Every way out leads through `#over`, behind `#settle` where something is to be billed (reliability
 * §1.1). Every way in is contained, the client's and the ticker's here, the upstream's in the attempt: a bug ends this
 * request and no other (faults F-P7).
 */
export class Delivery implements AttemptListener, CallListener, Ticking, Recorded {
  readonly #parts: DeliveryParts
  readonly #record: CallRecord
  #state: State = 'held'
  readonly #failover: Failover
  #attempt: Attempt | undefined
  readonly #tries: Tries
  #exchange: Exchange
  #exchangeFor: Asking['exchangeFor']
  /** No other attempt can follow: the request was let go. */
  #isForgotten = false
  #relay: StreamRelay | undefined
  /** Text of a stream that nobody has seen. */
  #unseen = ''
  readonly #startedMs: number
  #lastWriteMs = 0
  /** Since when the client has not taken what was written. */
  #stalledMs: number | undefined
  /** The answer is over for the client, and the upstream is read on for its usage. */
  #reading: Reading | undefined
  #resolve!: () => void
  #reject!: (error: Error) => void

  /** @param asking is held no longer than the request may have to be sent */
  constructor(parts: DeliveryParts, asking: Asking) {
    this.#parts = parts
    this.#record = parts.record
    const { gateway, snapshot, model, affinity, call, key } = parts
    const accountId = key.account.id
    this.#failover = new Failover({ pool: snapshot.pool, model, accountId, affinity, requestId: call.requestId })
    this.#tries = new Tries(gateway, parts.record)
    this.#exchange = asking.exchange
    this.#exchangeFor = asking.exchangeFor
    this.#startedMs = gateway.clockMs()
  }

  /** For whoever asks how far the request is. */
  get record(): Readonly<CallRecord> {
    return this.#record
  }

  /** Resolves when the request is over and settled. @throws GatewayError when nothing of an answer was shown. */
  run(): Promise<void> {
    const { gateway, call } = this.#parts
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#resolve = resolve
    this.#reject = reject
    gateway.deliveries.add(this)
    call.listener = this
    this.#contain(() => {
      this.#failover.continues(this.#exchange)
      if (call.isGone) this.#leave()
      else if (!this.#tryElsewhere()) this.#refuse(this.#failover.told)
    })
    return promise
  }

  /** Sends the request to a target. @returns false where there is none. */
  #try(choice: Choice | undefined): boolean {
    if (choice === undefined) return false
    const { gateway, snapshot } = this.#parts
    const { target } = choice
    const exchange = this.#adapt(choice)
    this.#failover.enter()
    this.#exchange = exchange
    this.#relay = undefined
    this.#unseen = ''
    const traceparent = this.#tries.begin(choice, this.#failover.attempts)
    const { upstreams, config } = snapshot
    const { nowMs, clockMs, flow } = gateway
    const parts = { upstreams, target, exchange, traceparent, timeouts: config.timeouts, flow, nowMs, clockMs }
    this.#attempt = new Attempt(parts, this)
    this.#attempt.start()
    return true
  }

  /** @param cause what the attempt failed of, if it did */
  #endTry(cause: string | undefined): void {
    this.#tries.end(this.#attempt?.status ?? 0, cause)
  }

  /** The request as the target takes it: in its profile, and without what its account cannot open (ruling U13). */
  #adapt({ target, isHome }: Choice): Exchange {
    let exchange = this.#exchange
    if (this.#exchangeFor && target.model.profile !== exchange.profile) {
      exchange = this.#exchangeFor(target.model)
      if (exchange.losses.length > 0) this.#record.losses = exchange.losses
      else delete this.#record.losses
    }
    if (!isHome) this.#unseal(exchange)
    return exchange
  }

  /** Sends no more of what another account sealed. @returns false where there was nothing of it */
  #unseal(exchange: Exchange): boolean {
    if (!exchange.unseal()) return false
    const { losses = [] } = this.#record
    this.#record.losses = [...losses, { field: 'input', what: 'dropped', why: 'sealed by another provider account' }]
    return true
  }

  onAnswer(): void {
    const failover = this.#failover
    // An answer with status 200 may still begin with a refusal of what is sealed, which the same account mends (ruling U13).
    if (!failover.hasMore && !(failover.mayAgain && this.#exchange.mayUnseal)) this.#forget()
  }

  #forget(): void {
    this.#isForgotten = true
    this.#exchangeFor = undefined
    this.#exchange.forget()
    this.#parts.share.release()
  }

  onPiece(relay: StreamRelay, text: string): void {
    if (this.#isEnding()) return
    this.#relay = relay
    if (relay.state === 'finished') this.#finish(relay, text)
    else if (relay.state === 'stopped') this.#stop(relay, text)
    else if (relay.state === 'failed' && this.#reading?.told) this.#endReading()
    else if (relay.state === 'failed') {
      // What was said before the fault counts however the bytes arrive: the stream has begun (translation 4.1).
      this.#show(text, relay.hasShown)
      this.#takeFailure({ fault: relay.fault!, cause: causeOf(relay.fault!, 'upstream_error_event') })
    } else this.#show(text, relay.hasShown)
  }

  onWhole(answer: WholeAnswer): void {
    if (this.#isEnding()) return
    if (answer.state === 'failed') {
      this.#takeFailure({ fault: answer.fault, cause: causeOf(answer.fault, 'upstream_error_body') })
      return
    }
    const { call } = this.#parts
    this.#settleComplete(answer, (usage) => {
      const body = answer.encode(usage)
      return () => call.reply(200, 'application/json', body)
    })
  }

  onStop(fold: StreamFold): void {
    if (!this.#isEnding() && !this.#reading && !this.#readOn('ok', fold, stopReadMs)) this.#attempt!.conclude()
  }

  onFailure(failure: Failure): void {
    if (!this.#isEnding()) this.#takeFailure(failure)
  }

  /** What an attempt died of: another one follows while the client has seen nothing, or it is told (ruling U1). */
  #takeFailure(failure: Failure): void {
    const verdict = this.#failover.failed(failure)
    this.#endTry(verdict.alarm ?? failure.cause)
    const isSeen = this.#state !== 'held' || this.#reading !== undefined
    if (!isSeen && this.#tryAgain(failure, verdict)) return
    const stopped = verdict.elsewhere === 'any' ? 'attempts' : (this.#failover.stopped ?? 'final')
    this.#record.stopped = isSeen ? 'seen' : stopped
    if (isSeen) this.#fail(failure, verdict)
    else this.#refuse(this.#failover.told)
  }

  #tryAgain({ fault }: Failure, { elsewhere }: Verdict): boolean {
    const failover = this.#failover
    // An account that cannot open what another sealed takes the same request without it (ruling U13).
    if (fault.code === 'invalid_encrypted_content' && failover.mayAgain && this.#unseal(this.#exchange)) {
      return this.#try(failover.again())
    }
    if (elsewhere === 'any') return failover.mayAgain && this.#try(failover.again())
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

  onBug(bug: Error): void {
    if (this.#isEnding()) {
      this.#parts.gateway.reportBug(bug, this.#record.id)
      return
    }
    this.#attempt?.abandon()
    try {
      if (this.#state === 'open') this.#billBug(bug, this.#relay!.report)
      else this.#over(bug)
    } catch (second) {
      this.#endByBug(second as Error)
    }
  }

  /** What was shown is billed by what the model reported: our own count may be where the bug is. */
  #billBug(bug: Error, report: UsageReport): void {
    this.#parts.call.destroy()
    const evidence = { report, isComplete: false, estimateOutput: () => 0, isWaived: false }
    this.#settle({ ...evidence, outcome: 'internal_error' }, toNobody, bug)
  }

  #endByBug(bug: Error): void {
    if (this.#state === 'over') this.#parts.gateway.reportBug(bug, this.#record.id)
    else this.#over(bug)
  }

  clientGone(): void {
    this.#contain(() => this.#leave())
  }

  clientReady(): void {
    this.#contain(() => {
      this.#stalledMs = undefined
      this.#attempt?.resume()
    })
  }

  /** What the deadlines say now, by the monotonic clock. Called a few times a second. */
  tick(nowMs: number): void {
    if (!this.#isEnding()) this.#contain(() => this.#checkDeadlines(nowMs))
  }

  /** The process is going: what is not whole by now is cut and billed (reliability §7). */
  shutDown(): void {
    this.#contain(() => {
      if (this.#isEnding()) return
      if (this.#reading) this.#endReading()
      else this.#fail({ fault: broken, cause: 'shutdown' })
    })
  }

  #contain(work: () => void): void {
    try {
      work()
    } catch (bug) {
      this.onBug(bug as Error)
    }
  }

  #checkDeadlines(nowMs: number): void {
    const { gateway, snapshot, call } = this.#parts
    const { timeouts } = snapshot.config
    if (this.#reading) {
      // A configuration that is no longer in force is not kept for figures.
      const isOver = nowMs >= this.#reading.untilMs || gateway.snapshots.current !== snapshot
      if (isOver) this.#endReading()
      else if (!this.#isGone()) this.#breakSilence(nowMs)
    } else if (this.#stalledMs !== undefined && nowMs - this.#stalledMs >= timeouts.writeStallMs) {
      call.destroy()
      this.#depart('client_stall')
    } else if (nowMs - this.#startedMs >= timeouts.totalMs) this.#fail({ fault: broken, cause: 'upstream_stall' })
    else {
      this.#attempt?.tick(nowMs)
      if (!this.#isEnding() && this.#stalledMs === undefined) this.#breakSilence(nowMs)
    }
  }

  /** A stream's head goes out in time, and signs of life behind it (ruling U4). */
  #breakSilence(nowMs: number): void {
    const relay = this.#relay
    if (relay === undefined) return
    const { pingMs } = this.#parts.snapshot.config.timeouts
    const headMs = this.#attempt!.headMs!
    if (this.#state === 'held' && relay.events > 0 && nowMs - headMs >= commitMs) this.#open(relay, '')
    else if (this.#state === 'open' && nowMs - this.#lastWriteMs >= pingMs) this.#write(relay, relay.keepAlive())
  }

  /** Text of a stream: kept until there is something to see, then written as it comes. */
  #show(text: string, isVisible: boolean): void {
    // Nobody is there to be shown anything; only the end counts, for its usage.
    if (this.#isGone()) return
    const relay = this.#relay!
    if (this.#state === 'held' && isVisible) this.#open(relay, text)
    else if (this.#state === 'held') {
      this.#unseen += text
      if (this.#unseen.length > unseenMax) this.#open(relay, '')
    } else if (text !== '') this.#write(relay, text)
  }

  /** The commit: from here on the status stands. */
  #open(relay: StreamRelay, text: string): void {
    this.#move('open')
    this.#forget()
    if (relay.hasShown) this.#failover.succeeded(this.#exchange.isUnsealed)
    this.#parts.call.begin()
    const first = this.#takeUnseen() + text
    this.#write(relay, first === '' ? relay.keepAlive() : first)
  }

  #takeUnseen(): string {
    const text = this.#unseen
    this.#unseen = ''
    return text
  }

  #write(relay: StreamRelay, text: string): void {
    this.#lastWriteMs = this.#parts.gateway.clockMs()
    const isTaken = this.#parts.call.write(text, relay.encoding)
    // Nothing of an upstream that is read on waits for the client.
    if (isTaken || this.#stalledMs !== undefined || this.#reading) return
    this.#stalledMs = this.#lastWriteMs
    this.#attempt?.pause()
  }

  /** A stream is whole: its last words wait for the bill. */
  #finish(relay: StreamRelay, text: string): void {
    const { call } = this.#parts
    const wasHeld = this.#state === 'held'
    const rest = this.#takeUnseen() + text
    this.#settleComplete(relay, (usage) => {
      const end = rest + relay.finish(usage)
      return () => {
        if (wasHeld) call.begin()
        call.end(end, relay.encoding)
      }
    })
  }

  /** A stop of ours: the client has all that it will be shown but the end, which waits for the figures (ruling C12). */
  #stop(relay: StreamRelay, text: string): void {
    if (this.#reading && !relay.isSpent) return
    if (this.#reading) this.#endReading()
    else if (!relay.isSpent && this.#readOn('ok', relay, stopReadMs)) {
      if (text !== '') this.#show(text, true)
    } else {
      this.#attempt!.abandon()
      this.#finish(relay, text)
    }
  }

  /** The client left. */
  #leave(): void {
    if (this.#isEnding() || this.#isGone()) return
    this.#record.outcome = 'client_abort'
    const reading = this.#reading
    if (reading === undefined) this.#depart('client_abort')
    else {
      // Nobody waits for the end any more.
      reading.outcome = 'client_abort'
      reading.untilMs = reading.sinceMs + Math.max(stopReadMs, this.#parts.snapshot.config.billing.readOnMs)
    }
  }

  /**
   * Nobody is there any more. A stream of which something was shown is read on where its figures come at its end, else
   * cancelled (ruling C12); before that the upstream has the settle window to tell its usage (ruling C4).
   */
  #depart(outcome: 'client_abort' | 'client_stall'): void {
    const { billing, timeouts } = this.#parts.snapshot.config
    const relay = this.#relay
    if (this.#attempt?.isRefusing) this.#over()
    else if (relay?.hasShown) {
      relay.hush()
      if (!this.#readOn(outcome, relay, billing.readOnMs)) this.#settleCut(outcome)
    } else if (!this.#attempt || !this.#takeReader(outcome, timeouts.settleWindowMs, undefined))
      this.#settleCut(outcome)
  }

  /** False: its figures would tell nothing new, there is no time, or too many are read on. */
  #readOn(outcome: Reading['outcome'], answer: StreamRelay | StreamFold, limitMs: number): boolean {
    const { gateway, model } = this.#parts
    const { report } = answer
    this.#attempt!.pace.end(gateway.clockMs())
    return limitMs > 0 && tellsLate(report, this.#exchange, model) && this.#takeReader(outcome, limitMs, report)
  }

  #takeReader(outcome: Reading['outcome'], limitMs: number, told: UsageReport | undefined): boolean {
    const { gateway, key } = this.#parts
    if (!gateway.readers.enter(key.account.id)) return false
    const sinceMs = gateway.clockMs()
    this.#reading = { sinceMs, untilMs: sinceMs + limitMs, outcome, told }
    // It will not be sent again, nor is anything waited for that its client has not taken.
    this.#forget()
    if (outcome !== 'ok') this.#unseen = ''
    this.#stalledMs = undefined
    this.#attempt!.resume()
    return true
  }

  /** No more is read: what has come is the evidence. */
  #endReading(): void {
    const { outcome, told } = this.#reading!
    const attempt = this.#attempt!
    if (told && this.#relay === undefined) attempt.conclude()
    else if (this.#relay?.state === 'stopped') {
      attempt.abandon()
      this.#finish(this.#relay, '')
    } else this.#settleCut(outcome)
  }

  #isGone(): boolean {
    return this.#reading !== undefined && this.#reading.outcome !== 'ok'
  }

  #fail(failure: Failure, verdict: Verdict = judge(failure, this.#parts.model)): void {
    this.#refuse({ failure, verdict, target: this.#attempt?.target })
  }

  /** The answer failed. In a started stream the evidence is billed and an error frame sent; else it is a refusal. */
  #refuse({ failure, verdict, target }: Failed): void {
    if (this.#reading?.told) {
      this.#endReading()
      return
    }
    const { cause } = failure
    const { snapshot, model } = this.#parts
    const error = refuse({ snapshot, model, exchange: this.#exchange }, target, failure, verdict)
    const outcome = outcomeOfCause.get(cause)
    this.#record.cause = verdict.alarm ?? cause
    this.#endTry(this.#record.cause)
    this.#record.code = error.code
    // A refusal costs nothing, whether or not somebody is left to hear it (ruling C4).
    if (this.#reading) this.#over()
    else if (this.#state === 'open') this.#cutStream(error, outcome ?? 'upstream_cut')
    else {
      this.#record.outcome = outcome ?? (error.code === 'invalid_request' ? 'refused' : 'upstream_error')
      this.#over(error)
    }
  }

  #cutStream(error: GatewayError, outcome: Outcome): void {
    const { call, snapshot } = this.#parts
    const relay = this.#relay!
    const { status, code, message, param, details } = error
    const facts: ErrorFacts = { status, code, message, param, details }
    this.#attempt?.abandon()
    // The stream was begun for its keep-alives only: a failure before any output costs nothing (ruling C4).
    if (!relay.hasShown) {
      this.#record.outcome = outcome
      call.end(relay.failure(facts, nothing), relay.encoding)
      this.#over()
      return
    }
    const isWaived = snapshot.config.billing.cutAnswers === 'waive' && outcome !== 'shutdown'
    this.#settle({ ...evidenceOf(relay), isComplete: false, outcome, isWaived }, (usage) => {
      const end = relay.failure(facts, usage)
      return () => call.end(end, relay.encoding)
    })
  }

  /** Bills what an answer without an end has cost so far, to a client that is not there to be told. */
  #settleCut(outcome: Outcome): void {
    const attempt = this.#attempt
    attempt?.abandon()
    if (attempt === undefined) {
      this.#over()
      return
    }
    const evidence = this.#relay ? this.#evidenceOfCut(this.#relay) : nothingYet
    this.#settle({ ...evidence, isComplete: false, outcome, isWaived: false }, toNobody)
  }

  #settleComplete(answer: StreamRelay | Exclude<WholeAnswer, { state: 'failed' }>, ending: Ending): void {
    const isGone = this.#isGone()
    const { isUnsealed } = this.#exchange
    this.#failover.succeeded(isUnsealed)
    this.#failover.continuesAs(answer, isUnsealed)
    // An answer that we ended at a stop sequence may have no final word of the model's (ruling C12).
    const isComplete = answer.state !== 'stopped'
    const evidence = answer.state === 'stopped' ? this.#evidenceOfCut(answer) : evidenceOf(answer)
    const outcome = this.#reading?.outcome ?? 'ok'
    this.#settle({ ...evidence, isComplete, outcome, isWaived: false }, isGone ? toNobody : ending)
  }

  /** What is known of an answer that ended for its client before the model had told its figures (ruling C12). */
  #evidenceOfCut(answer: Pick<StreamRelay, 'report' | 'estimateOutput' | 'spoken'>) {
    const evidence = evidenceOf(answer)
    // Who has seen nothing of an answer pays for no time (ruling C4).
    if (this.#reading && !this.#reading.told) return evidence
    const { pace } = this.#attempt!
    const estimateHidden = () => (this.#exchange.mayHideReasoning ? pace.hiddenTokens(answer.spoken()) : 0)
    const told = this.#reading?.told ?? answer.report
    return { ...evidence, report: withoutLaterOutput(answer.report, told), estimateHidden }
  }

  /**
   * Weighs, makes the end, prices and debits; the end is shown when the debit is durable (ruling C3). What cannot be
   * written is not billed either (B5).
   */
  #settle(evidence: Evidence, ending: Ending, bug?: Error): void {
    const { gateway, call, key, model } = this.#parts
    const wasOpen = this.#state === 'open'
    this.#endTry(undefined)
    const bill = weigh(evidence, this.#exchange, model)
    const show = ending(bill.usage)
    const { target } = this.#attempt!
    const { requestId, wire: clientWire } = call
    const debit = debitOf({ requestId, key, clientWire, model, target, bill, createdMs: gateway.nowMs() })
    const posted = gateway.ledger.debit(debit)
    this.#move('settling')
    this.#note(bill)
    posted.then(
      (how) => {
        this.#record.settled = how === 'spooled' ? how : 'posted'
        try {
          show()
          this.#over(bug)
        } catch (second) {
          // It is paid for, and cannot be shown to its end.
          call.destroy()
          this.#endByBug(second as Error)
        }
      },
      (error: Error) => {
        // Neither database nor spool took it: the client does not get to see an end that is not on record.
        this.#record.cause = 'ledger_unsettled'
        this.#record.outcome = 'internal_error'
        this.#record.costNanos = undefined
        this.#record.settled = 'refused'
        if (wasOpen) call.destroy()
        this.#over(wasOpen ? undefined : error)
      },
    )
  }

  #note({ usage, usageSource, calls, amountNanos, outcome, flags }: Bill): void {
    const record = this.#record
    record.usage = usage
    record.usageSource = usageSource
    record.costNanos = amountNanos
    record.prices = this.#parts.model.prices
    record.priceVersion = this.#parts.model.priceVersion
    record.settled = 'waiting'
    record.outcome = outcome
    if (calls) record.calls = calls
    if (flags.length > 0) record.flags = flags
  }

  /** The one end of a request. */
  #over(error?: Error): void {
    const { gateway, call, key, release } = this.#parts
    this.#move('over')
    this.#endTry(undefined)
    if (this.#reading) gateway.readers.leave(key.account.id)
    this.#reading = undefined
    gateway.deliveries.delete(this)
    call.listener = undefined
    try {
      this.#failover.left()
      this.#parts.share.release()
      release()
      if (this.#attempt?.isLingering) gateway.lingering.add(this.#attempt)
      else this.#attempt?.abandon()
    } finally {
      // Whatever goes wrong here, the request is over.
      if (error) this.#reject(error)
      else this.#resolve()
    }
  }

  #isEnding(): boolean {
    return this.#state === 'settling' || this.#state === 'over'
  }

  #move(to: State): void {
    if (!moves[this.#state].includes(to)) throw new Error(`a delivery cannot go from ${this.#state} to ${to}`)
    this.#state = to
  }
}

/** What the log says of an answer that failed: the model's own word is not what ended one that broke off or cannot be read. */
function causeOf({ kind, unread }: Fault, said: string): string {
  if (unread) return unread === 'oversize' ? 'upstream_oversize' : 'upstream_protocol'
  return kind === 'truncated' ? 'upstream_cut' : said
}

/** Makes the end that a client is shown, with the counters that are billed, and shows it when it is called. */
type Ending = (usage: Usage) => () => void

const toNobody: Ending = () => () => {}

function evidenceOf(answer: { readonly report: UsageReport; estimateOutput(enough?: number): number }) {
  return { report: answer.report, estimateOutput: (enough?: number) => answer.estimateOutput(enough) }
}

const nothingYet = { report: {}, estimateOutput: () => 0 }

const broken: Fault = { kind: 'broken', text: '' }

/** What is billed for no output. */
const nothing: Usage = {
  inputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  cacheWrite1hTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  estimated: false,
}
