import { createHmac } from 'node:crypto'
import { fetchHttp } from '../upstream/http-fetch.ts'

/*
 * Sends a webhook once (ruling X15), signed as in Standard Webhooks (https://www.standardwebhooks.com). By the secret the
 * receiver can check that it is ours, and by its id that it is the same message again.
 */

/** The result of sending; words of the log and of the metrics. */
export type SendResult = 'ok' | 'redirected' | 'refused' | 'gone' | 'failed' | 'timeout' | 'unreachable'

type WebhookSending = { url: string; secret: string; id: string; body: string; nowMs: number }

/** A receiver that is slower is asked again. */
const patienceMs = 10_000

/** By secret and content (Standard Webhooks: `v1`). @param atSeconds Unix time */
export function signWebhook(secret: string, id: string, atSeconds: number, body: string): string {
  const prefix = 'whsec_'
  const key = secret.startsWith(prefix) ? Buffer.from(secret.slice(prefix.length), 'base64') : Buffer.from(secret)
  return `v1,${createHmac('sha256', key).update(`${id}.${atSeconds}.${body}`).digest('base64')}`
}

/** Creates a sender that follows no redirect and discards the body of every answer. */
export function createSender(waitMs = patienceMs) {
  const closing = new AbortController()
  return { send, close: () => closing.abort() }

  /** Never throws. */
  async function send({ url, secret, id, body, nowMs }: WebhookSending): Promise<SendResult> {
    const atSeconds = Math.floor(nowMs / 1_000)
    const late = AbortSignal.timeout(waitMs)
    try {
      const answer = await fetchHttp(url, {
        method: 'POST',
        signal: AbortSignal.any([late, closing.signal]),
        headers: {
          'content-type': 'application/json',
          'user-agent': 'triwire-webhooks',
          'webhook-id': id,
          'webhook-timestamp': `${atSeconds}`,
          'webhook-signature': signWebhook(secret, id, atSeconds, body),
        },
        body,
      })
      // The status is the result; a body that does not end is cut.
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
