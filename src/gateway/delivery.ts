import type { Ledger, RequestOutcome } from '../accounts/ledger.ts'
import { failureTexts, GatewayError } from '../errors.ts'
import type { Fault } from '../inference/answer.ts'
import { noUsage, type Usage } from '../inference/usage.ts'
import type { Listed } from '../registers.ts'
import { type Failure, failureOf, judge } from '../upstream/verdict.ts'
import type { StreamFold, StreamRelay, WholeAnswer } from '../wires/answers/relay.ts'
import type { Attempt, AttemptListener } from './attempt.ts'
import { Attempts, type AttemptsParts } from './attempts.ts'
import type { Call, CallListener } from './call.ts'
import type { UpstreamRequests } from './exchange.ts'
import type { Gateway, Recorded, Ticking } from './gateway.ts'
import { type EarlyEnd, evidenceOfCut, type ReadingOn, readOn } from './read-on.ts'
import type { CallRecord } from './record.ts'
import { explainedMessage, type Failed, refuse } from './refuse.ts'
import { debitOf, type Evidence, evidenceOf, noteBill, nothingYet, weigh } from './settle.ts'

/** The most characters that are kept of a stream before the client gets anything of it (reliability §3). */
const unseenMax = 262_144

/**
 * The longest wait between the head of the upstream's stream and the head that the client gets, in ms (translation
 * 4.1). If the upstream has sent no event by then, the client waits longer.
 */
const commitMs = 10_000

/** Causes that have an outcome of their own. Any other cause counts as a failed answer. */
const outcomeOfCause = new Map<string, RequestOutcome>([
  ['upstream_stall', 'upstream_stall'],
  ['shutdown', 'shutdown'],
])

/**
 * The state of an answer for its client. In `held`, a failure becomes an ordinary error response; from `open` on, it
 * cuts the stream (spec 7.4.4). In `settling` the bill is on its way to the disk, and neither side can change it any
 * more. The end of the answer is sent only when the bill is on the disk (ruling C3). `over` is final.
 */
type DeliveryState = 'held' | 'open' | 'settling' | 'over'

const moves: Record<DeliveryState, readonly DeliveryState[]> = {
  held: ['open', 'settling', 'over'],
  open: ['settling', 'over'],
  settling: ['over'],
  over: [],
}

/** The parts of the gateway that a delivery uses. */
export type DeliveryGateway = Pick<
  Gateway,
  | 'snapshots'
  | 'nowMs'
  | 'aheadMs'
  | 'clockMs'
  | 'deliveries'
  | 'lingering'
  | 'readers'
  | 'flow'
  | 'tracing'
  | 'reportBug'
> & { ledger: Pick<Ledger, 'debit'> }

/** The parts that a delivery needs for its attempts, for its answer and for the bill. */
export type DeliveryParts = AttemptsParts & {
  gateway: DeliveryGateway
  call: Omit<Call, 'ip' | 'header' | 'readBody'>
  /** Releases the credit that is held for the request. It is called once. */
  release: () => void
}

/**
 * The client's side of one request. It shows the client what the attempts bring, and ends exactly once. Every end goes
 * through `#over`, and before that through `#settle` if there is something to bill (reliability §1.1). Every entry
 * point catches exceptions, so that a bug ends this request and no other (faults F-P7). This class catches exceptions
 * in calls from the client and from the ticker. `Attempt` catches exceptions in calls from the upstream.
 */
export class Delivery implements AttemptListener, CallListener, Ticking, Recorded, Listed {
  /** The index of this delivery in its `Roster`. */
  place: number | undefined
  readonly #parts: DeliveryParts
  /** Operations that show running requests read this record while the request runs. */
  readonly record: CallRecord
  #state: DeliveryState = 'held'
  readonly #attempts: Attempts
  #relay: StreamRelay | undefined
  /** Text of a stream that has not been written yet. */
  #unseen = ''
  /** Whether the client got visible text, which was noted as a success of the target. */
  #isVisible = false
  readonly #startedMs: number
  #lastWriteMs = 0
  /** When the client stopped taking what was written, by the monotonic clock; undefined if it keeps up. */
  #stalledMs: number | undefined
  /** Set while the answer is over for the client, but the upstream is still read for its usage. */
  #readingOn: ReadingOn | undefined
  readonly #end = Promise.withResolvers<void>()

  /** @param asking makes the requests of the attempts. It is released when no further attempt can follow */
  constructor(parts: DeliveryParts, asking: UpstreamRequests) {
    this.#parts = parts
    this.record = parts.record
    this.#attempts = new Attempts(parts, asking, this)
    this.#startedMs = parts.gateway.clockMs()
  }

  get #attempt(): Attempt | undefined {
    return this.#attempts.newest
  }

  /**
   * Resolves when the request is over and settled.
   * @throws GatewayError if the request fails before the client gets any part of an answer
   */
  run(): Promise<void> {
    const { gateway, call } = this.#parts
    gateway.deliveries.add(this)
    call.listener = this
    this.#contain(() => {
      const failed = call.isGone ? this.#leave() : this.#attempts.start()
      if (failed) this.#refuse(failed)
    })
    return this.#end.promise
  }

  onAnswer(): void {
    this.#attempts.answered()
  }

  onFirstByte(): void {
    this.#attempts.firstByte()
  }

  onPiece(relay: StreamRelay, text: string): void {
    if (this.#isEnding()) return
    this.#relay = relay
    if (relay.state === 'finished') this.#finish(relay, text)
    else if (relay.state === 'stopped') this.#stop(relay, text)
    else if (relay.state === 'failed' && this.#readingOn?.isAnswered) this.#endReading()
    else if (relay.state === 'failed') {
      // Text before the fault is shown first, even if text and fault came in one piece. The stream has then begun
      // (translation 4.1).
      this.#show(text, relay.hasShown)
      this.#takeFailure(failureOf(relay.fault!, 'upstream_error_event'))
    } else this.#show(text, relay.hasShown)
  }

  onWhole(answer: WholeAnswer): void {
    if (this.#isEnding()) return
    if (answer.state === 'failed') {
      this.#takeFailure(failureOf(answer.fault, 'upstream_error_body'))
      return
    }
    const { call } = this.#parts
    this.#settleComplete(answer, (usage) => {
      const body = answer.encode(usage)
      return () => call.reply(200, 'application/json', body)
    })
  }

  onStop(fold: StreamFold): void {
    if (!this.#isEnding() && !this.#readingOn && !this.#readOn('ok', fold)) this.#attempt!.conclude()
  }

  onFailure(failure: Failure): void {
    if (!this.#isEnding()) this.#takeFailure(failure)
  }

  /**
   * Handles a failed attempt. If the client has seen nothing, another attempt may follow. If none follows, the client
   * gets an error (ruling U1).
   */
  #takeFailure(failure: Failure): void {
    const isSeen = this.#state !== 'held' || this.#readingOn !== undefined
    if (!isSeen) {
      this.#relay = undefined
      this.#unseen = ''
    }
    const failed = this.#attempts.failed(failure, isSeen)
    if (failed) this.#refuse(failed)
  }

  onBug(bug: Error): void {
    if (this.#isEnding()) {
      this.#parts.gateway.reportBug(bug, this.record.id)
      return
    }
    this.#attempt?.abandon()
    try {
      if (this.#state === 'open') {
        this.#parts.call.destroy()
        // The bug may be in our own estimate, so only the model's figures are billed.
        const evidence = { report: this.#relay!.report, isComplete: false, estimateOutput: () => 0, isWaived: false }
        this.#settle({ ...evidence, outcome: 'internal_error' }, toNobody, bug)
      } else this.#over(bug)
    } catch (second) {
      this.#endByBug(second as Error)
    }
  }

  #endByBug(bug: Error): void {
    if (this.#state === 'over') this.#parts.gateway.reportBug(bug, this.record.id)
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

  /** Checks the deadlines; called a few times a second. @param nowMs monotonic */
  tick(nowMs: number): void {
    if (!this.#isEnding()) this.#contain(() => this.#checkDeadlines(nowMs))
  }

  /** Called when the process ends. An answer that is not complete is cut and billed (reliability §7). */
  shutDown(): void {
    this.#contain(() => {
      if (this.#isEnding()) return
      if (this.#readingOn) this.#endReading()
      else this.#giveUp('shutdown')
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
    const { snapshot, call } = this.#parts
    const { timeouts } = snapshot.config
    const readingOn = this.#readingOn
    // A slow client that still takes bytes of a large piece is not stalled.
    if (this.#stalledMs !== undefined && call.isTaking()) this.#stalledMs = nowMs
    if (readingOn) {
      if (readingOn.isOver(nowMs)) this.#endReading()
      else if (readingOn.isAwaited) this.#breakSilence(nowMs)
    } else if (this.#stalledMs !== undefined && nowMs - this.#stalledMs >= timeouts.writeStallMs) {
      call.destroy()
      this.#depart('client_stall')
    } else if (nowMs - this.#startedMs >= timeouts.totalMs) this.#giveUp('upstream_stall')
    else {
      const failed = this.#attempts.tick(nowMs)
      if (failed) this.#refuse(failed)
      this.#attempt?.tick(nowMs)
      if (!this.#isEnding() && this.#stalledMs === undefined) this.#breakSilence(nowMs)
    }
  }

  /** Sends a stream's head if it is still held after `commitMs`, and keep-alives after the head (ruling U4). */
  #breakSilence(nowMs: number): void {
    const relay = this.#relay
    if (relay === undefined) return
    const { pingMs } = this.#parts.snapshot.config.timeouts
    const headMs = this.#attempt!.headMs!
    if (this.#state === 'held' && relay.events > 0 && nowMs - headMs >= commitMs) this.#open(relay, '')
    else if (this.#state === 'open' && nowMs - this.#lastWriteMs >= pingMs) this.#write(relay, relay.keepAlive())
  }

  /** Handles text of a stream. All text waits until some of it is visible to the client. Later text is sent at once. */
  #show(text: string, isVisible: boolean): void {
    // After the client has left, only the usage figures at the end of the answer matter.
    if (this.#isGone()) return
    const relay = this.#relay!
    if (this.#state === 'held' && isVisible) this.#open(relay, text)
    else if (this.#state === 'held') {
      this.#unseen += text
      if (this.#unseen.length > unseenMax) this.#open(relay, '')
    } else if (text !== '') {
      // The head may have gone out before any visible text.
      if (isVisible) this.#noteVisible()
      this.#write(relay, text)
    }
  }

  /** Notes that the client gets visible text, so the target works. */
  #noteVisible(): void {
    if (this.#isVisible) return
    this.#isVisible = true
    this.#attempts.succeeded()
  }

  /** Sends the status. From here on, a failure can only cut the stream. */
  #open(relay: StreamRelay, text: string): void {
    this.#move('open')
    this.#attempts.forget()
    if (relay.hasShown) this.#noteVisible()
    this.#parts.call.begin()
    const first = this.#unseen + text
    this.#unseen = ''
    this.#write(relay, first === '' ? relay.keepAlive() : first)
  }

  #write(relay: StreamRelay, text: string): void {
    this.#lastWriteMs = this.#parts.gateway.clockMs()
    const isTaken = this.#parts.call.write(text, relay.encoding)
    // An upstream that is read only for its figures does not wait for the client.
    if (isTaken || this.#stalledMs !== undefined || this.#readingOn) return
    this.#stalledMs = this.#lastWriteMs
    this.#attempt?.pause()
  }

  /**
   * Handles the end of a complete stream. The end is sent after the bill is settled. The first visible text does not
   * wait for the debit, even if the whole answer came in one piece.
   */
  #finish(relay: StreamRelay, text: string): void {
    const { call } = this.#parts
    const isFirst = this.#state === 'held' && relay.hasShown && !this.#isGone()
    if (isFirst) this.#open(relay, text)
    const wasHeld = this.#state === 'held'
    const rest = this.#unseen + (isFirst ? '' : text)
    this.#settleComplete(relay, (usage) => {
      const end = rest + relay.finish(usage)
      return () => {
        if (wasHeld) call.begin()
        call.end(end, relay.encoding)
      }
    })
  }

  /**
   * Called when the gateway has ended the answer at a stop sequence. If the upstream is read further for its usage
   * figures (ruling C12), the last text is sent now. Otherwise the answer ends at once.
   */
  #stop(relay: StreamRelay, text: string): void {
    if (this.#readingOn) {
      if (relay.isSpent) this.#endReading()
    } else if (!relay.isSpent && this.#readOn('ok', relay)) {
      if (text !== '') this.#show(text, true)
    } else {
      this.#attempt!.abandon()
      this.#finish(relay, text)
    }
  }

  #leave(): undefined {
    if (this.#isEnding() || this.#isGone()) return
    if (this.#readingOn) {
      this.record.outcome = 'client_abort'
      this.#readingOn.leave()
    } else this.#depart('client_abort')
  }

  /**
   * Called when the client is gone. The upstream is read further for its usage figures, if possible. Otherwise the part
   * of the answer that has come is billed (C4, C12).
   */
  #depart(end: Exclude<EarlyEnd, 'ok'>): void {
    this.record.outcome = end
    // If the request has not reached the upstream, it is not sent any more (faults F-C4).
    if (!this.#attempt?.wasWritten || this.#attempt.isRefusing || this.#attempts.isWaiting) {
      this.#over()
      return
    }
    const shown = this.#relay?.hasShown ? this.#relay : undefined
    shown?.hush()
    if (!this.#readOn(end, shown)) this.#settleCut(end)
  }

  /**
   * Continues to read the upstream for its usage figures after the client's answer has ended.
   * @param answer undefined if the client got no part of the answer. @returns false if reading does not continue
   */
  #readOn(end: EarlyEnd, answer: StreamRelay | StreamFold | undefined): boolean {
    const attempt = this.#attempt!
    if (answer) attempt.pace.end(this.#parts.gateway.clockMs())
    this.#readingOn = readOn(this.#parts, this.#attempts, end, answer?.report)
    if (this.#readingOn === undefined) return false
    // From now on the request is never sent again, and a slow client does not matter.
    this.#attempts.forget()
    if (end !== 'ok') this.#unseen = ''
    this.#stalledMs = undefined
    attempt.resume()
    return true
  }

  /** Stops reading the upstream. The bill uses the figures and text that have come so far. */
  #endReading(): void {
    const { end, isAnswered } = this.#readingOn!
    const attempt = this.#attempt!
    if (isAnswered && this.#relay === undefined) attempt.conclude()
    else if (this.#relay?.state === 'stopped') {
      attempt.abandon()
      this.#finish(this.#relay, '')
    } else this.#settleCut(end)
  }

  #isGone(): boolean {
    return this.#readingOn !== undefined && !this.#readingOn.isAwaited
  }

  /** Ends the wait for an answer, because its time is up or the process ends. */
  #giveUp(cause: 'upstream_stall' | 'shutdown'): void {
    if (this.#attempt?.endByEvidence()) return
    const failure = { fault: broken, cause }
    this.#refuse({ failure, verdict: judge(failure, this.#attempts.model), target: this.#attempt?.target })
  }

  /**
   * Ends a request whose answer failed. A stream that has begun is billed and gets an error frame. Otherwise the client
   * gets an error.
   */
  #refuse({ failure, verdict, target, of }: Failed): void {
    if (this.#readingOn?.isAnswered) {
      this.#endReading()
      return
    }
    const { cause } = failure
    const { gateway, snapshot } = this.#parts
    const { model, exchange } = of ?? this.#attempts
    const parts = { flow: gateway.flow, snapshot, model, exchange }
    const error = refuse(parts, target, failure, verdict)
    const outcome = outcomeOfCause.get(cause)
    this.record.cause = verdict.alarm ?? cause
    this.#attempts.end(this.record.cause)
    this.record.code = error.code
    this.record.message = explainedMessage(parts, error, verdict)
    this.record.param = error.param
    // A refusal costs nothing, even if the client has left (ruling C4).
    if (this.#readingOn) this.#over()
    else if (this.#state === 'open') this.#cutStream(error, outcome ?? 'upstream_cut')
    else {
      this.record.outcome = outcome ?? (error.code === 'invalid_request' ? 'refused' : 'upstream_error')
      this.#over(error)
    }
  }

  #cutStream(error: GatewayError, outcome: RequestOutcome): void {
    const { call, snapshot } = this.#parts
    const relay = this.#relay!
    this.#attempt?.abandon()
    // The stream was opened for keep-alives only. A failure before any output costs nothing (ruling C4).
    if (!relay.hasShown) {
      this.record.outcome = outcome
      call.end(relay.failure(error, noUsage), relay.encoding)
      this.#over()
      return
    }
    const isWaived = snapshot.config.billing.cutAnswers === 'waive' && outcome !== 'shutdown'
    this.#settle({ ...evidenceOf(relay), isComplete: false, outcome, isWaived }, (usage) => {
      const end = relay.failure(error, usage)
      return () => call.end(end, relay.encoding)
    })
  }

  /** Bills what an unfinished answer has cost so far. The client is gone and gets nothing. */
  #settleCut(outcome: RequestOutcome): void {
    this.#attempt!.abandon()
    const relay = this.#relay
    // If only the last event is missing, the relay then counts the answer as complete (ruling T19).
    relay?.breakOff()
    const isComplete = relay !== undefined && hasFinalFigures(relay)
    const evidence = isComplete ? evidenceOf(relay) : relay ? this.#evidenceOfCut(relay) : nothingYet
    this.#settle({ ...evidence, isComplete, outcome, isWaived: false }, toNobody)
  }

  #settleComplete(answer: StreamRelay | Exclude<WholeAnswer, { state: 'failed' }>, lastWords: LastWords): void {
    const isGone = this.#isGone()
    this.#attempts.completed(answer)
    // `stopped`: we ended the answer at a stop sequence. The model may have had more to say (ruling C12).
    const isComplete = answer.state !== 'stopped'
    const evidence = answer.state === 'stopped' ? this.#evidenceOfCut(answer) : evidenceOf(answer)
    const outcome = this.#readingOn?.end ?? 'ok'
    if (answer.reason !== undefined) this.record.finishReason = answer.reason
    this.#settle({ ...evidence, isComplete, outcome, isWaived: false }, isGone ? toNobody : lastWords)
  }

  #evidenceOfCut(answer: Pick<StreamRelay, 'report' | 'estimateOutput' | 'spoken'>) {
    return evidenceOfCut(answer, this.#readingOn, this.#attempts.exchange, this.#attempt!.pace)
  }

  /**
   * Computes the bill, prepares the end of the answer and posts the debit. The end is shown when the debit is durable
   * (ruling C3). If the preparation throws, nothing is billed (B5).
   */
  #settle(evidence: Evidence, lastWords: LastWords, bug?: Error): void {
    const { gateway, call, key } = this.#parts
    const { model } = this.#attempts
    const wasOpen = this.#state === 'open'
    this.#attempts.end(undefined)
    const { target } = this.#attempt!
    const { cost } = target.model
    const aheadMs = model.prices.only && (!cost || cost.only) ? 0 : gateway.aheadMs()
    const createdMs = gateway.nowMs() - aheadMs
    // If the clock was set back since the start, the start is later than `created`, and `verify` accepts no later prices.
    const at = model.prices.counts === 'start' ? Math.min(this.record.startedMs - aheadMs, createdMs) : createdMs
    const bill = weigh(evidence, this.#attempts.exchange, model, this.#attempt!, at)
    const show = lastWords(bill.usage)
    const { requestId, wire: clientWire } = call
    const debit = debitOf({
      requestId,
      key,
      clientWire,
      model,
      target,
      bill,
      createdMs,
      who: this.record,
      form: this.#parts.snapshot.config.ledgerForm,
    })
    const posted = gateway.ledger.debit(debit)
    this.#move('settling')
    noteBill(this.record, bill)
    posted.then(
      (how) => {
        this.record.settled = how === 'spooled' ? how : 'posted'
        try {
          show()
          this.#over(bug)
        } catch (second) {
          // The answer is paid for, but its end cannot be shown.
          call.destroy()
          this.#endByBug(second as Error)
        }
      },
      () => {
        // Neither the database nor the spool took the debit, and the ledger has logged that. Without a recorded debit,
        // the end of the answer is not shown.
        this.record.cause = 'ledger_unsettled'
        this.record.outcome = 'internal_error'
        this.record.costNanos = undefined
        this.record.settled = 'refused'
        if (wasOpen) call.destroy()
        this.#over(wasOpen ? undefined : new GatewayError('internal_error', failureTexts.serviceFailed))
      },
    )
  }

  /** Ends the request. There is no other way to end it. */
  #over(error?: Error): void {
    const { gateway, call, release } = this.#parts
    this.#move('over')
    this.#readingOn?.close()
    this.#readingOn = undefined
    gateway.deliveries.delete(this)
    call.listener = undefined
    try {
      this.#attempts.leave()
      release()
      if (this.#attempt?.isLingering) gateway.lingering.add(this.#attempt)
      else this.#attempt?.abandon()
    } finally {
      // The request is over even if the code above throws.
      if (error) this.#end.reject(error)
      else this.#end.resolve()
    }
  }

  #isEnding(): boolean {
    return this.#state === 'settling' || this.#state === 'over'
  }

  #move(to: DeliveryState): void {
    if (!moves[this.#state].includes(to)) throw new Error(`a delivery cannot go from ${this.#state} to ${to}`)
    this.#state = to
  }
}

/** Whether a stream is complete and the model has reported usage for all of it. */
function hasFinalFigures({ state, report }: StreamRelay): boolean {
  return state === 'finished' && report.outputTokens !== undefined && !report.isOutputPartial
}

/** Makes the end of an answer with the counters that are billed. The returned function sends it. */
type LastWords = (usage: Usage) => () => void

const toNobody: LastWords = () => () => {}

const broken: Fault = { kind: 'broken', text: '' }
