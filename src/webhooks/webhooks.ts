import type { Books } from '../accounts/books.ts'
import { type StoredWarning, type Watched, wantsBudgets, warningKeptMs } from '../accounts/warnings.ts'
import type { Config, Webhook } from '../config/config.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { sha256Hex } from '../ids.ts'
import type { Log } from '../log/log.ts'
import type { WebhookState } from '../operations/shapes.ts'
import { families } from '../telemetry/families.ts'
import { Counter, type Family } from '../telemetry/instruments.ts'
import { bodyOf, messageOf, type WebhookMessage, watchIncidents } from './messages.ts'
import { createSender, Lane, type SendResult, sendResults } from './send.ts'
import { isDue, lookAgainMs, type Next, pauseMs, readTries, Telling, type Tries, untried } from './tries.ts'

/** Sends operators the warnings that they configured (ruling X15). */
export type Webhooks = {
  list(): WebhookState[]
  families: readonly Family[]
  /**
   * Called before serving. Stores which warnings the receivers want. If storing fails, the promise still resolves, and
   * every later `look` tries again.
   */
  begin(): Promise<void>
  /** Sends due messages at once, before the next regular search. Resolves when all due messages were tried. */
  look(): Promise<void>
  close(): Promise<void>
}

type WebhookParts = {
  config: Pick<Config, 'webhooks'>
  gateway: Pick<Gateway, 'snapshots' | 'ledger' | 'nowMs' | 'clockMs'>
  clock: Parameters<typeof watchIncidents>[1]
  /** The books of the store. They are opened at the first call. */
  books(): Promise<Books>
  /** Whether other servers use the same store. While a configuration is rolled out, they may have other receivers. */
  isShared: boolean
  log: Log
  /** How long a receiver may take to answer, in ms. Tests use a short time. */
  waitMs?: number | undefined
}

/**
 * The average time between two looks for due messages, in ms. Each time is random, so that no server is always first.
 */
const lookMs = 1_000

/**
 * If a process has taken a message, no other process takes it for this time, in ms. A round of tries takes less time.
 */
const leaseMs = 120_000

/** The most messages that one call to the store returns, and the most such calls in one search for due messages. */
const [atOnceMax, takingsMax] = [10, 10]

/** The most messages of this process that wait. Further messages are dropped, and that is logged. */
const queueMax = 1_000

type LastSend = { atMs: number; result: SendResult }

type Receiver = Webhook & {
  name: string
  lane: Lane
  /**
   * The messages that failed, each with the time by which this process has tried it again. With a shared store, another
   * process may have taken a message that was not tried again by then.
   */
  pending: Map<string, number>
  last: LastSend | undefined
  told: number
  failed: number
  lastFailure: LastSend | undefined
}

type Queued = { message: WebhookMessage; tries: Tries; dueMs: number }

/** Stores the progress of a message. If no receiver is left, `next` is undefined, and the message is deleted. */
type Keep = (next: Next | undefined) => Promise<void>

export function openWebhooks({ config, ...parts }: WebhookParts): Webhooks {
  const nothing = async () => {}
  if (config.webhooks.length > 0) return new Teller(config.webhooks, parts)
  return { families: [new Counter(families.webhooks)], list: () => [], begin: nothing, look: nothing, close: nothing }
}

type TellerParts = Omit<WebhookParts, 'config'>

class Teller implements Webhooks {
  readonly #parts: TellerParts
  readonly #deliveries = new Counter(families.webhooks)
  readonly families = [this.#deliveries]
  readonly #receivers: readonly Receiver[]
  readonly #watched: Watched
  readonly #sender: ReturnType<typeof createSender>
  readonly #findIncidents: () => WebhookMessage[]
  /** The waiting messages about incidents in this process. They are only in memory, not in the store. */
  #queue: Queued[] = []
  /** The messages that are being sent, by id. */
  readonly #tellings = new Map<string, Promise<void>>()
  #isWatched = false
  /** Whether the store did not answer the last time. That is logged only once. */
  #isSilent = false
  #looking: Promise<void> | undefined
  #isClosed = false
  #timer: NodeJS.Timeout

  constructor(webhooks: readonly Webhook[], parts: TellerParts) {
    this.#parts = parts
    this.#receivers = webhooks.map((one) => ({
      ...one,
      name: sha256Hex(one.url.reveal()).slice(0, 12),
      lane: new Lane(parts.gateway.clockMs),
      pending: new Map<string, number>(),
      last: undefined,
      ...{ told: 0, failed: 0, lastFailure: undefined },
    }))
    const lows = webhooks.flatMap(({ belowNanos }) => (belowNanos === undefined ? [] : [belowNanos]))
    this.#watched = {
      lowNanos: [...new Set(lows)],
      ownLows: webhooks.some(({ events }) => events.has('credit_low')),
      budgets: webhooks.some(({ events }) => wantsBudgets(events)),
    }
    // A series that begins with its first failure would not be noticed by an alert on its increase.
    for (const result of sendResults) this.#deliveries.add(0, result)
    this.#sender = createSender(parts.waitMs)
    this.#findIncidents = watchIncidents(parts.gateway, parts.clock)
    this.#timer = this.#lookLater()
  }

  list(): WebhookState[] {
    const nowMs = this.#parts.gateway.nowMs()
    if (this.#parts.isShared)
      for (const { pending } of this.#receivers)
        for (const [id, untilMs] of pending) if (nowMs > untilMs) pending.delete(id)
    return this.#receivers.map(({ shown, events, belowNanos, last, pending, told, failed, lastFailure }) => ({
      url: shown,
      events: [...events],
      below_nanos: belowNanos,
      last: last && formatTold(last),
      pending: pending.size,
      ...{ told, failed },
      last_failure: lastFailure && formatTold(lastFailure),
    }))
  }

  async begin(): Promise<void> {
    try {
      await this.#watch()
    } catch (error) {
      this.#tellSilence(error)
    }
  }

  async look(): Promise<void> {
    await this.#lookOnce()
    await Promise.all(this.#tellings.values())
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    // Sending is cut off. When the message is sent again, the receiver recognizes it by its id.
    this.#sender.close()
    await this.#looking
    await Promise.all(this.#tellings.values())
  }

  #lookLater(): NodeJS.Timeout {
    return setTimeout(
      () => {
        void this.#lookOnce()
        this.#timer = this.#lookLater()
      },
      lookMs * (0.5 + Math.random()),
    )
  }

  /** Searches for due messages, without waiting until they are delivered. While a search runs, no second one begins. */
  #lookOnce(): Promise<void> {
    if (this.#isClosed) return Promise.resolve()
    this.#looking ??= this.#findMessages().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async #findMessages(): Promise<void> {
    try {
      for (const message of this.#findIncidents()) this.#enqueue(message)
      this.#tellOwn()
      await this.#tellStored()
    } catch (error) {
      this.#tellBug(error)
    }
  }

  #enqueue(message: WebhookMessage): void {
    if (this.#queue.length >= queueMax) {
      this.#parts.log.event('error', 'webhook_dropped', { warning: message.event, id: message.id })
      return
    }
    this.#queue.push({ message, tries: untried, dueMs: 0 })
  }

  #tellOwn(): void {
    const { nowMs } = this.#parts.gateway
    for (const one of this.#queue) {
      if (!isDue(one.dueMs, nowMs())) continue
      this.#begin(one.message, one.tries, async (next) => {
        if (next) Object.assign(one, { tries: next.tries, dueMs: nowMs() + next.afterMs })
        else this.#queue = this.#queue.filter((other) => other !== one)
      })
    }
  }

  /**
   * Sends the warnings that the store has recorded. If reading or storing a warning fails, it is taken again after
   * `leaseMs`.
   */
  async #tellStored(): Promise<void> {
    try {
      const books = await this.#watch()
      for (let n = 0; n < takingsMax && !this.#isClosed; n++) {
        const taken = await books.takeWarnings(leaseMs, atOnceMax)
        for (const warning of taken.toSorted(compareAges)) {
          if (this.#tellings.has(warning.id)) continue
          const keep: Keep = (next) =>
            books.settleWarning(warning.id, next && { tries: JSON.stringify(next.tries), afterMs: next.afterMs })
          const tries = readTries(warning.tries)
          // The kind of a warning is checked first, because that rules out most warnings without a read of the store.
          const isOfKind = this.#receivers.some(({ events }) => events.has(warning.event))
          const message = isOfKind ? await messageOf(warning, books) : undefined
          if (message && this.#receivers.some((one) => isFor(one, message))) this.#begin(message, tries, keep)
          else await keep(this.#leave(warning, tries))
        }
        this.#isSilent = false
        if (taken.length < atOnceMax) return
      }
    } catch (error) {
      this.#tellSilence(error)
    }
  }

  async #watch(): Promise<Books> {
    const books = await this.#parts.books()
    if (!this.#isWatched) await books.watch(this.#watched)
    this.#isWatched = true
    return books
  }

  /**
   * Leaves a warning to other servers, because this server has no receiver for it.
   * @returns when this server looks at the warning again; undefined if it does not look again
   */
  #leave({ atMs }: Pick<StoredWarning, 'atMs'>, tries: Tries): Next | undefined {
    const afterMs = this.#parts.isShared ? lookAgainMs(this.#parts.gateway.nowMs() - atMs) : undefined
    return afterMs === undefined ? undefined : { tries, afterMs: Math.ceil(afterMs) }
  }

  /** Begins to send a message, unless it is already being sent. */
  #begin(message: WebhookMessage, tries: Tries, keep: Keep): void {
    const { id } = message
    if (this.#tellings.has(id)) return
    const telling = this.#tell(message, tries, keep)
      .catch((error) => this.#tellSilence(error))
      .finally(() => this.#tellings.delete(id))
    this.#tellings.set(id, telling)
  }

  /** Sends a message to its receivers that are due. No receiver waits for another. Each success is stored at once. */
  async #tell(message: WebhookMessage, tries: Tries, keep: Keep): Promise<void> {
    const telling = new Telling(message.atMs, tries)
    const body = bodyOf(message)
    const meant = this.#receivers.filter((one) => isFor(one, message) && !telling.isOver(one.name))
    let [waiting, keeping] = [meant.length, Promise.resolve()]
    await Promise.all(
      meant.map(async (one) => {
        await this.#tellOne(one, message, body, telling)
        waiting--
        if (waiting === 0 || !telling.isOver(one.name)) return
        keeping = keeping
          .then(() => keep({ tries: telling.tries, afterMs: leaseMs }))
          .catch((error) => this.#tellSilence(error))
      }),
    )
    await keeping
    const names = meant.map(({ name }) => name)
    await keep(telling.nextOf(names, this.#parts.gateway.nowMs()))
  }

  async #tellOne(one: Receiver, message: WebhookMessage, body: string, telling: Telling): Promise<void> {
    const { nowMs } = this.#parts.gateway
    const { count, dueMs } = telling.leftOf(one.name)
    if (!isDue(dueMs, nowMs())) return
    const entered = one.lane.enter(() => this.#send(one, message, body))
    const result = 'comeInMs' in entered ? 'behind' : await entered
    const waitMs = 'comeInMs' in entered ? entered.comeInMs : result === undefined ? 0 : pauseMs(count)
    const isLast = nowMs() - message.atMs + waitMs > warningKeptMs
    if (result === 'ok' || result === 'gone' || isLast) telling.end(one.name)
    else {
      const isTold = result !== undefined && result !== 'behind'
      telling.postpone(one.name, { count: isTold ? count + 1 : count, dueMs: nowMs() + waitMs })
    }
    const isOver = telling.isOver(one.name)
    if (isOver) one.pending.delete(message.id)
    else one.pending.set(message.id, nowMs() + waitMs + leaseMs)
    if (result === 'ok' || result === undefined || (result === 'behind' && !isOver)) return
    this.#parts.log.event('error', isOver ? 'webhook_given_up' : 'webhook_failed', {
      ...{ webhook: one.shown, warning: message.event, id: message.id, result, tries: count + 1 },
    })
  }

  /** Sends a message to one receiver. @returns undefined if the end of this process prevented or cut the sending */
  async #send(one: Receiver, { id }: WebhookMessage, body: string): Promise<SendResult | undefined> {
    if (this.#isClosed) return undefined
    const nowMs = this.#parts.gateway.nowMs()
    const result = await this.#sender.send({ to: one, id, body, nowMs })
    if (this.#isClosed && result !== 'ok') return undefined
    one.last = { atMs: nowMs, result }
    if (result === 'ok') one.told++
    else {
      one.failed++
      one.lastFailure = one.last
    }
    this.#deliveries.add(1, result)
    return result
  }

  #tellSilence(error: unknown): void {
    if (this.#isSilent) return
    this.#isSilent = true
    this.#parts.log.event('error', 'webhooks_silent', { error: (error as Error).message })
  }

  /** Logs a bug of the gateway. The caller has already handled the case that the store does not answer. */
  #tellBug(error: unknown): void {
    this.#parts.log.event('error', 'bug', { error: (error as Error).stack })
  }
}

/** Compares the ages of two messages. The oldest comes first, so receivers get messages in the order of events. */
function compareAges(one: StoredWarning, other: StoredWarning): number {
  return one.atMs - other.atMs || (one.id < other.id ? -1 : 1)
}

function isFor({ events, belowNanos }: Receiver, message: WebhookMessage): boolean {
  return events.has(message.event) && (message.belowNanos === undefined || message.belowNanos === belowNanos)
}

function formatTold({ atMs, result }: LastSend) {
  return { at: new Date(atMs).toISOString(), result }
}
