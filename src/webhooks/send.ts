import { createHmac } from 'node:crypto'
import { loadUndici } from '../upstream/undici.ts'

/*
 * Sends a webhook once (ruling X15), signed as in Standard Webhooks (https://www.standardwebhooks.com). By the secret the
 * receiver can check that it is ours, and by its id that it is the same message again.
 */

/** The result of sending; words of the log and of the metrics. */
export type SendResult = 'ok' | 'redirected' | 'refused' | 'gone' | 'failed' | 'timeout' | 'unreachable'

export type WebhookSending = { url: string; secret: string; id: string; body: string; nowMs: number }

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
  const { Agent, request } = loadUndici()
  const dispatcher = new Agent({
    connect: { timeout: waitMs, rejectUnauthorized: true },
    headersTimeout: waitMs,
    bodyTimeout: waitMs,
  })
  return { send, close: () => dispatcher.destroy() }

  /** Never throws. */
  async function send({ url, secret, id, body, nowMs }: WebhookSending): Promise<SendResult> {
    const atSeconds = Math.floor(nowMs / 1_000)
    const abort = new AbortController()
    // This also ends an answer that comes drop by drop.
    const late = setTimeout(() => abort.abort(), waitMs)
    try {
      const answer = await request(url, {
        method: 'POST',
        dispatcher,
        signal: abort.signal,
        headers: {
          'content-type': 'application/json',
          'user-agent': 'triwire-webhooks',
          'webhook-id': id,
          'webhook-timestamp': `${atSeconds}`,
          'webhook-signature': signWebhook(secret, id, atSeconds, body),
        },
        body,
      })
      // Its status says all; a body that does not end is cut.
      answer.body.on('error', () => {})
      answer.body.destroy()
      return resultOf(answer.statusCode)
    } catch (error) {
      const { code = '' } = error as { code?: string }
      return abort.signal.aborted || /TIMEOUT/.test(code) ? 'timeout' : 'unreachable'
    } finally {
      clearTimeout(late)
    }
  }
}

function resultOf(status: number): SendResult {
  if (status >= 200 && status < 300) return 'ok'
  if (status === 410) return 'gone'
  if (status < 400) return 'redirected'
  return status < 500 ? 'refused' : 'failed'
}
