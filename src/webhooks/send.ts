import { createHmac } from 'node:crypto'
import type { Webhook } from '../config/config.ts'
import { openRoute } from '../upstream/dial.ts'
import { fetchHttp } from '../upstream/http-fetch.ts'

/*
 * This module sends a webhook once (ruling X15), signed as in Standard Webhooks (https://www.standardwebhooks.com).
 * With the secret, the receiver checks that the message is ours. By the id it recognizes a message that is sent again.
 */

/** The result of sending a message. The log and the metrics use the same words. */
export const sendResults = ['ok', 'redirected', 'refused', 'gone', 'failed', 'timeout', 'unreachable'] as const
export type SendResult = (typeof sendResults)[number]

type WebhookSending = { to: Pick<Webhook, 'url' | 'secret' | 'proxy' | 'ca'>; id: string; body: string; nowMs: number }

/** How long a receiver may take to answer, in ms. After that, the message is sent again later. */
const patienceMs = 10_000

/**
 * Makes the signature of a message with the secret of its receiver (Standard Webhooks: `v1`).
 * @param atSeconds Unix time
 */
export function signWebhook(secret: string, id: string, atSeconds: number, body: string): string {
  const prefix = 'whsec_'
  const key = secret.startsWith(prefix) ? Buffer.from(secret.slice(prefix.length), 'base64') : Buffer.from(secret)
  return `v1,${createHmac('sha256', key).update(`${id}.${atSeconds}.${body}`).digest('base64')}`
}

/** Creates a sender that follows no redirect and discards the body of every answer. */
export function createSender(waitMs = patienceMs) {
  const closing = new AbortController()
  return { send, close: () => closing.abort() }

  /** Sends one message. Never throws. */
  async function send({ to, id, body, nowMs }: WebhookSending): Promise<SendResult> {
    const atSeconds = Math.floor(nowMs / 1_000)
    const late = AbortSignal.timeout(waitMs)
    try {
      const answer = await fetchHttp(to.url.reveal(), {
        ...openRoute(to),
        method: 'POST',
        signal: AbortSignal.any([late, closing.signal]),
        headers: {
          'content-type': 'application/json',
          'user-agent': 'triwire-webhooks',
          'webhook-id': id,
          'webhook-timestamp': `${atSeconds}`,
          'webhook-signature': signWebhook(to.secret.reveal(), id, atSeconds, body),
        },
        body,
      })
      // Only the status counts, so the body is not read.
      answer.body.destroy()
      return resultOf(answer.status)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      return late.aborted || code === 'ETIMEDOUT' ? 'timeout' : 'unreachable'
    }
  }
}

function resultOf(status: number): SendResult {
  if (status >= 200 && status < 300) return 'ok'
  if (status === 410) return 'gone'
  if (status < 400) return 'redirected'
  return status < 500 ? 'refused' : 'failed'
}

/** The most messages that wait for a receiver, including the one being sent. This many can be sent within `leaseMs`. */
const waitingMax = 10

/** If too many messages wait for a receiver, its next message is offered again after this time, in ms. */
const behindMs = 5_000

/**
 * Sends messages to one receiver, one after the other, in the order of their arrival. So a slow receiver delays only
 * its own messages. Only a few messages wait here. All other messages stay in the store or in the queue.
 */
export class Lane {
  readonly #clockMs: () => number
  #last: Promise<unknown> = Promise.resolve()
  #waiting = 0
  #behindUntilMs = Number.NEGATIVE_INFINITY

  /** @param clockMs monotonic */
  constructor(clockMs: () => number) {
    this.#clockMs = clockMs
  }

  /**
   * Sends a message after the messages that wait already. If too many wait, sends nothing.
   * @returns the result; or, if nothing was sent, the time after which to offer the message again
   */
  enter<T>(tell: () => Promise<T>): Promise<T> | { comeInMs: number } {
    const nowMs = this.#clockMs()
    const leftMs = this.#behindUntilMs - nowMs
    // After one message was turned away, later messages are turned away too, even if fewer are waiting by then. All of them
    // are offered again at the same time, the oldest first.
    if (leftMs > 0) return { comeInMs: leftMs }
    if (this.#waiting >= waitingMax) {
      this.#behindUntilMs = nowMs + behindMs
      return { comeInMs: behindMs }
    }
    this.#waiting++
    const telling = this.#last.then(tell).finally(() => this.#waiting--)
    this.#last = telling.catch(() => {})
    return telling
  }
}
