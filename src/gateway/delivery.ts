import type { Account } from '../accounts/account.ts'
import type { Outcome } from '../accounts/ledger.ts'
import type { Model } from '../catalog/model.ts'
import type { Config } from '../config/config.ts'
import type { GatewayError } from '../errors.ts'
import type { Fault } from '../inference/answer.ts'
import type { Usage, UsageReport } from '../inference/usage.ts'
import { readRetryAfter, refusalOf } from '../upstream/refusal.ts'
import type { Flight, TransportFault, UpstreamListener } from '../upstream/upstreams.ts'
import type { ErrorFacts } from '../wires/answers/envelope.ts'
import type { RelayState, StreamFold, StreamRelay, WholeAnswer } from '../wires/answers/relay.ts'
import type { Call } from './call.ts'
import type { Exchange } from './exchange.ts'
import type { Gateway, Ticking } from './gateway.ts'
import type { CallRecord } from './record.ts'
import { settle } from './settle.ts'

/** The largest answer that is not a stream, and the most that is read of a refusal, in bytes (reliability §3). */
const wholeBytesMax = 32 * 1_048_576
const refusalBytesMax = 65_536

/** A stream's head goes out by now at the latest, if the upstream lives (translation 4.1). */
const commitMs = 10_000

/** How long an upstream may take to end a stream after its last word. */
const lingerMs = 1_000

/** Requests read on after their client left (ruling C4). */
const settlingMax = 200

/** How a started stream is told to end when the evidence is not complete. */
const outcomeOfCause = new Map<string, Outcome>([
  ['upstream_stall', 'upstream_stall'],
  ['client_stall', 'client_stall'],
  ['client_abort', 'client_abort'],
  ['shutdown', 'shutdown'],
])

/**
 * Brings one request to its upstream and the answer to its client, and ends it once, whatever happens: every way out
 * leads through `#over`, once, behind `#settle` where something is to be billed; it releases the hold and lets the walk
 * go on (reliability §1.1).
 *
 *     waiting ──head──▶ reading (a whole body) ──────────────▶ over
 *        │                                                      ▲
 *        └─────head──▶ held (a stream not yet shown) ─▶ open ───┘
 *
 * Until `open` a failure is an ordinary error response; from then on it is a cut stream (spec 7.4.4).
 */
export class Delivery implements UpstreamListener, Ticking {
  readonly #gateway: Gateway
  readonly #call: Call
  readonly #record: CallRecord
  readonly #account: Account
  readonly #model: Model
  readonly #exchange: Exchange
  readonly #release: () => void
  readonly #config: Config
  #phase: 'waiting' | 'reading' | 'refusing' | 'held' | 'open' | 'over' = 'waiting'
  #flight: Flight | undefined
  /** The upstream has closed its side; the connection is free again or gone. */
  #isFlightOver = false
  #relay: StreamRelay | undefined
  #fold: StreamFold | undefined
  #chunks: Buffer[] = []
  #bytes = 0
  #status = 0
  #retryAfterSeconds: number | undefined
  /** Text of a held stream. */
  #held = ''
  #attempts = 0
  #startedMs: number
  #headMs = 0
  #lastByteMs: number
  #lastEventMs: number
  #lastEvents = 0
  #lastWriteMs = 0
  /** Since when the client has not taken what was written. */
  #stalledMs: number | undefined
  /** Since when the client has been gone while the upstream is read on for its usage. */
  #goneMs: number | undefined
  #resolve!: () => void
  #reject!: (error: Error) => void

  constructor(
    gateway: Gateway,
    call: Call,
    record: CallRecord,
    account: Account,
    model: Model,
    exchange: Exchange,
    release: () => void,
  ) {
    this.#gateway = gateway
    this.#call = call
    this.#record = record
    this.#account = account
    this.#model = model
    this.#exchange = exchange
    this.#release = release
    this.#config = gateway.config()
    this.#startedMs = gateway.clockMs()
    this.#lastByteMs = this.#startedMs
    this.#lastEventMs = this.#startedMs
  }

  /** Resolves when the request is over and settled. @throws GatewayError when nothing of an answer was shown. */
  run(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
      this.#gateway.deliveries.add(this)
      this.#call.onGone = () => this.#clientGone()
      this.#call.onDrain = () => this.#clientReady()
      if (this.#call.isGone) this.#clientGone()
      else this.#send()
    })
  }

  #send(): void {
    this.#attempts++
    this.#phase = 'waiting'
    this.#isFlightOver = false
    this.#record.attempts = this.#attempts
    const { path, headers, body } = this.#exchange
    this.#flight = this.#gateway
      .upstreams()
      .send({ upstream: this.#model.upstream, path, headers, body, affinityKey: undefined }, this)
    this.#record.upstream = this.#flight.accountName
  }

  onHead(status: number, contentType: string, headers: Readonly<Record<string, string | string[] | undefined>>): void {
    this.#contain(() => this.#takeHead(status, contentType, headers))
  }

  onData(chunk: Buffer): void {
    this.#contain(() => this.#takeData(chunk))
  }

  onEnd(): void {
    this.#contain(() => this.#takeEnd())
  }

  /** A bug of ours ends this request and no other (faults F-P7). */
  #contain(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#breakOff(error as Error)
    }
  }

  #breakOff(bug: Error): void {
    if (this.#phase === 'over') return
    this.#flight?.abort()
    if (this.#phase !== 'open') this.#over(bug)
    else {
      this.#call.destroy()
      const { report } = this.#relay!
      this.#settle(report, { estimateOutput: () => 0 }, false, 'internal_error', false, () => this.#over(bug))
    }
  }

  #takeHead(status: number, contentType: string, headers: Parameters<UpstreamListener['onHead']>[2]): void {
    this.#headMs = this.#gateway.clockMs()
    this.#lastByteMs = this.#headMs
    this.#lastEventMs = this.#headMs
    this.#status = status
    if (status < 200 || status > 299) {
      this.#retryAfterSeconds = readRetryAfter(headers['retry-after'] as string | undefined, this.#gateway.nowMs())
      this.#phase = 'refusing'
      return
    }
    const encoding = headers['content-encoding']
    if (status !== 200 || (encoding !== undefined && encoding !== 'identity')) {
      this.#fail({ kind: 'broken', text: '' }, 'upstream_protocol')
      return
    }
    const isStream = contentType === 'text/event-stream'
    if (this.#exchange.stream && isStream) {
      this.#relay = this.#exchange.openStream()
      this.#phase = 'held'
    } else if (!this.#exchange.stream && isStream && this.#exchange.openFold) {
      this.#fold = this.#exchange.openFold()
      this.#phase = 'reading'
    } else if (isStream) this.#fail({ kind: 'broken', text: '' }, 'upstream_protocol')
    else this.#phase = 'reading'
  }

  #takeData(chunk: Buffer): void {
    if (this.#phase === 'over') return
    this.#lastByteMs = this.#gateway.clockMs()
    if (this.#relay) {
      this.#show(this.#relay.push(chunk))
      return
    }
    this.#bytes += chunk.length
    if (this.#fold) {
      this.#fold.push(chunk)
      if (this.#fold.state !== 'unseen') this.#deliverWhole(this.#fold.whole())
    } else if (this.#phase === 'refusing') {
      this.#chunks.push(chunk)
      if (this.#bytes > refusalBytesMax) this.#refuse()
    } else if (this.#bytes > wholeBytesMax) this.#fail({ kind: 'broken', text: '' }, 'upstream_oversize')
    else this.#chunks.push(chunk)
  }

  #takeEnd(): void {
    this.#isFlightOver = true
    if (this.#phase === 'over') return
    if (this.#relay) {
      this.#show(this.#relay.end())
      return
    }
    if (this.#fold) {
      this.#fold.end()
      this.#deliverWhole(this.#fold.whole())
      return
    }
    if (this.#phase === 'refusing') {
      this.#refuse()
      return
    }
    const body = Buffer.concat(this.#chunks)
    this.#chunks = []
    if (this.#exchange.stream) {
      this.#relay = this.#exchange.openStream()
      this.#phase = 'held'
      this.#show(this.#relay.pushWhole(body))
    } else this.#deliverWhole(this.#exchange.readWhole(body))
  }

  onError(fault: TransportFault): void {
    this.#isFlightOver = true
    if (this.#phase === 'over') return
    // Nothing was processed on a connection that turned out to be closed: the same account is asked once more (U1).
    if (fault.isReuseRace && this.#attempts < 2 && this.#goneMs === undefined) {
      this.#send()
      return
    }
    if (this.#phase === 'refusing') {
      this.#refuse()
      return
    }
    this.#fail({ kind: this.#phase === 'waiting' ? 'broken' : 'truncated', text: '' }, fault.cause)
  }

  /** An HTTP refusal, as much of it as came: the status alone says enough. */
  #refuse(): void {
    const text = Buffer.concat(this.#chunks).toString('utf8')
    this.#chunks = []
    const fault = this.#status >= 400 ? this.#exchange.readRefusal(this.#status, text) : broken
    this.#fail(fault, this.#status >= 300 && this.#status < 400 ? 'upstream_redirect' : `upstream_${this.#status}`)
  }

  /** What the deadlines say now, by the monotonic clock. Called a few times a second. */
  tick(nowMs: number): void {
    if (this.#phase !== 'over') this.#contain(() => this.#checkDeadlines(nowMs))
  }

  #checkDeadlines(nowMs: number): void {
    const { timeouts } = this.#config
    if (this.#goneMs !== undefined) {
      if (nowMs - this.#goneMs >= timeouts.settleWindowMs) this.#settleCut('client_abort')
    } else if (this.#stalledMs !== undefined && nowMs - this.#stalledMs >= timeouts.writeStallMs) {
      this.#call.destroy()
      this.#settleCut('client_stall')
    } else if (nowMs - this.#startedMs >= timeouts.totalMs) this.#fail(broken, 'upstream_stall')
    else if (this.#phase === 'waiting') {
      const limitMs = this.#exchange.stream ? timeouts.firstByteStreamMs : timeouts.firstByteJsonMs
      if (nowMs - this.#startedMs >= limitMs) this.#fail(broken, 'upstream_ttfb_timeout')
    } else if (this.#stalledMs === undefined) this.#tickReading(nowMs)
  }

  /** The process is going: what is not whole by now is cut and billed (reliability §7). */
  shutDown(): void {
    if (this.#goneMs !== undefined) this.#settleCut('client_abort')
    else this.#fail(broken, 'shutdown')
  }

  #tickReading(nowMs: number): void {
    const { timeouts } = this.#config
    const isSilent = nowMs - this.#lastByteMs >= timeouts.idleMs
    const isStuck = this.#relay !== undefined && nowMs - this.#lastEventMs >= timeouts.progressMs
    if (isSilent || isStuck) this.#fail({ kind: 'truncated', text: '' }, 'upstream_stall')
    else if (this.#phase === 'held' && this.#lastEvents > 0 && nowMs - this.#headMs >= commitMs) this.#open('')
    else if (this.#phase === 'open' && nowMs - this.#lastWriteMs >= timeouts.pingMs)
      this.#write(this.#relay!.keepAlive())
  }

  /** What the relay made of a piece: shows it, opens the stream when it has something to show, ends it at its end. */
  #show(text: string): void {
    const relay = this.#relay!
    if (relay.events !== this.#lastEvents) {
      this.#lastEvents = relay.events
      this.#lastEventMs = this.#lastByteMs
    }
    if (this.#goneMs !== undefined) {
      // Nobody is there to be shown anything; only the end counts, for its usage.
      if (relay.state === 'finished' || relay.state === 'cut')
        this.#settleComplete(relay.report, relay, () => this.#over())
      else if (relay.state === 'failed') this.#fail(relay.fault!, 'upstream_error_event')
      return
    }
    if (relay.state === 'finished' || relay.state === 'cut') {
      if (relay.state === 'cut') this.#flight?.abort()
      this.#settleComplete(relay.report, relay, (usage) => {
        if (this.#phase === 'held') this.#call.begin()
        const rest = this.#phase === 'held' ? this.#held + text : text
        this.#call.end(rest + relay.finish(usage), relay.encoding)
        this.#over()
      })
    } else if (relay.state === 'failed') {
      // What was said before the fault counts however the bytes arrive: the stream has begun (translation 4.1).
      if (this.#phase === 'held' && relay.hasShown) this.#open(text)
      else if (text !== '' && this.#phase === 'open') this.#write(text)
      this.#fail(relay.fault!, 'upstream_error_event')
    } else if (this.#phase === 'open') {
      if (text !== '') this.#write(text)
    } else if (relay.state === 'shown') this.#open(text)
    else this.#held += text
  }

  /** The commit: from here on the status stands. */
  #open(text: string): void {
    this.#phase = 'open'
    this.#call.begin()
    const first = this.#held + text
    this.#held = ''
    if (first !== '') this.#write(first)
    else this.#write(this.#relay!.keepAlive())
  }

  #write(text: string): void {
    this.#lastWriteMs = this.#gateway.clockMs()
    if (!this.#call.write(text, this.#relay!.encoding) && this.#stalledMs === undefined) {
      this.#stalledMs = this.#lastWriteMs
      this.#flight?.pause()
    }
  }

  #clientReady(): void {
    this.#stalledMs = undefined
    // The wait was the client's: the upstream's silence is counted anew.
    this.#lastByteMs = this.#gateway.clockMs()
    this.#lastEventMs = this.#lastByteMs
    this.#flight?.resume()
  }

  #deliverWhole(answer: WholeAnswer): void {
    if (answer.state === 'failed') {
      this.#fail(answer.fault, 'upstream_error_body')
      return
    }
    if (answer.state === 'cut') this.#flight?.abort()
    this.#settleComplete(answer.report, answer, (usage) => {
      this.#call.reply(200, 'application/json', answer.encode(usage))
      this.#over()
    })
  }

  /** The client left. A started stream is cancelled at once; before that the upstream is read on for its usage (C4). */
  #clientGone(): void {
    if (this.#phase === 'over' || this.#goneMs !== undefined) return
    this.#record.outcome = 'client_abort'
    if (this.#phase === 'open' || this.#flight === undefined) this.#settleCut('client_abort')
    else if (this.#phase === 'refusing') {
      this.#flight.abort()
      this.#over()
    } else if (this.#gateway.settling.count >= settlingMax) this.#settleCut('client_abort')
    else {
      this.#goneMs = this.#gateway.clockMs()
      this.#gateway.settling.count++
      this.#held = ''
      this.#stalledMs = undefined
      this.#flight.resume()
    }
  }

  /** The answer failed. In a started stream the evidence is billed and an error frame sent; else it is a refusal. */
  #fail(fault: Fault, cause: string): void {
    if (this.#phase === 'over') return
    this.#record.cause = cause
    const error = refusalOf(
      fault,
      { modelId: this.#model.id, upstreamModel: this.#model.upstreamModel },
      this.#model.profile.accountFaults,
      this.#retryAfterSeconds,
    )
    this.#record.code = error.code
    if (this.#phase === 'open') this.#cutStream(error, outcomeOfCause.get(cause) ?? 'upstream_cut')
    else if (this.#goneMs !== undefined) {
      // A refusal costs nothing, whether or not somebody is left to hear it (ruling C4).
      this.#flight?.abort()
      this.#over()
    } else {
      this.#record.outcome =
        outcomeOfCause.get(cause) ?? (error.code === 'invalid_request' ? 'refused' : 'upstream_error')
      this.#flight?.abort()
      this.#over(error)
    }
  }

  #cutStream(error: GatewayError, outcome: Outcome): void {
    const relay = this.#relay!
    const { status, code, message, param } = error
    const facts: ErrorFacts = { status, code, message, param }
    this.#flight?.abort()
    // The stream was begun for its keep-alives only: a failure before any output costs nothing (ruling C4).
    if (!relay.hasShown) {
      this.#record.outcome = outcome
      this.#call.end(relay.failure(facts, nothing), relay.encoding)
      this.#over()
      return
    }
    const waived = this.#config.billing.cutAnswers === 'waive' && outcome !== 'shutdown'
    this.#settle(relay.report, relay, false, outcome, waived, (usage) => {
      this.#call.end(relay.failure(facts, usage), relay.encoding)
      this.#over()
    })
  }

  /** Bills what an answer without an end has cost so far, to a client that is not there to be told. */
  #settleCut(outcome: Outcome): void {
    if (this.#phase === 'over') return
    const hadConnection = this.#flight !== undefined
    this.#flight?.abort()
    if (!hadConnection) {
      this.#over()
      return
    }
    const source = this.#relay ?? { estimateOutput: () => 0 }
    this.#settle(this.#relay?.report ?? {}, source, false, outcome, false, () => this.#over())
  }

  #settleComplete(report: UsageReport, source: EstimateSource, then: (usage: Usage) => void): void {
    const outcome = this.#goneMs === undefined ? 'ok' : 'client_abort'
    // An answer that we ended at a stop sequence has no final word of the model's (ruling T15).
    this.#settle(report, source, source.state !== 'cut', outcome, false, then)
  }

  /** Weighs, prices and debits; `then` runs when the debit is durable (ruling C3). Takes effect once. */
  #settle(
    report: UsageReport,
    source: EstimateSource,
    isComplete: boolean,
    outcome: Outcome,
    isWaived: boolean,
    then: (usage: Usage) => void,
  ): void {
    const wasOpen = this.#phase === 'open'
    const phase = this.#phase
    // From here on nothing that the upstream or the client does changes the bill.
    this.#phase = 'over'
    const evidence = { report, isComplete, estimateOutput: () => source.estimateOutput(), outcome, isWaived }
    settle(this.#gateway, this.#record, this.#account, this.#model, this.#exchange, evidence).then(
      (usage) => {
        this.#phase = phase
        try {
          then(usage)
        } catch (bug) {
          // It is paid for, and cannot be shown to its end.
          this.#call.destroy()
          this.#over(bug as Error)
        }
      },
      (error: Error) => {
        // Neither database nor spool took it: the client does not get to see an end that is not on record.
        this.#record.cause = 'ledger_unsettled'
        this.#record.outcome = 'internal_error'
        if (wasOpen) this.#call.destroy()
        this.#over(wasOpen ? undefined : error)
      },
    )
  }

  /** The one end of a request. */
  #over(error?: Error): void {
    this.#phase = 'over'
    if (this.#goneMs !== undefined) {
      this.#gateway.settling.count--
      this.#goneMs = undefined
    }
    this.#gateway.deliveries.delete(this)
    this.#call.onGone = undefined
    this.#call.onDrain = undefined
    this.#release()
    // The answer is whole, but the upstream has not ended its stream: it gets a moment, for the connection's sake.
    if (!this.#isFlightOver && this.#flight) setTimeout(endFlight, lingerMs, this.#flight)
    if (error) this.#reject(error)
    else this.#resolve()
  }
}

function endFlight(flight: Flight): void {
  flight.abort()
}

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

type EstimateSource = { estimateOutput(): number; state?: RelayState }
