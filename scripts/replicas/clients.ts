import { Agent, request } from 'undici'
import type { Replica } from './setting.ts'

const paths = { messages: '/v1/messages', chat: '/v1/chat/completions', responses: '/v1/responses' } as const
export type Wire = keyof typeof paths
const terminators = {
  messages: /event: message_stop\n.*\n\n$/,
  chat: /data: \[DONE\]\n\n$/,
  responses: /event: response\.completed\n.*\n\n$/,
}

/** An answer as its client saw it. `status` 0: the connection failed. */
export type Seen = {
  status: number
  code: string | undefined
  requestId: string | undefined
  /** Whether the answer was complete. The client must then pay for it. */
  isWhole: boolean
  ms: number
}

/** The connections suffice for a thousand concurrent requests, so that none waits for a connection. */
const agent = new Agent({ connections: 2_000, pipelining: 1, keepAliveTimeout: 30_000 })

export type Asking = {
  key: string
  wire?: Wire
  stream?: boolean
  /** A model of the catalog in `setting.ts`. */
  model?: string
  maxTokens?: number
  /** The address of the client that a proxy in front would name. */
  ip?: string
}

/** One inference request. Never throws. */
export async function ask(replica: Pick<Replica, 'url'>, asking: Asking): Promise<Seen> {
  const { key, wire = 'chat', stream = false, model = `sim-${wire}`, maxTokens = 200, ip } = asking
  const prompt = 'Hello there'
  const messages = [{ role: 'user', content: prompt }]
  const content = {
    messages: { messages, max_tokens: maxTokens },
    chat: { messages, max_completion_tokens: maxTokens },
    responses: { input: prompt, max_output_tokens: maxTokens },
  }[wire]
  const begun = performance.now()
  let status = 0
  let requestId: string | undefined
  try {
    const answer = await request(`${replica.url}${paths[wire]}`, {
      method: 'POST',
      dispatcher: agent,
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        ...(ip && { 'x-forwarded-for': ip }),
      },
      body: JSON.stringify({ model, stream, ...content }),
    })
    status = answer.statusCode
    requestId = String(answer.headers['x-request-id'])
    const text = await answer.body.text()
    const isWhole = status === 200 && (stream ? terminators[wire].test(text) : isJson(text))
    return { status, code: codeOf(text), requestId, isWhole, ms: performance.now() - begun }
  } catch {
    return {
      status: status === 200 ? 200 : 0,
      code: undefined,
      requestId,
      isWhole: false,
      ms: performance.now() - begun,
    }
  }
}

function isJson(text: string): boolean {
  try {
    return JSON.parse(text) !== undefined
  } catch {
    return false
  }
}

function codeOf(text: string): string | undefined {
  return /"(?:code|type)":\s*"(\w+)"\s*[,}]/.exec(text.replace(/"type":\s*"error"\s*,/, ''))?.[1]
}

export async function get(url: string, headers: Record<string, string> = {}): Promise<{ status: number; ms: number }> {
  const begun = performance.now()
  try {
    const answer = await request(url, { dispatcher: agent, headers, reset: true })
    await answer.body.dump()
    return { status: answer.statusCode, ms: performance.now() - begun }
  } catch {
    return { status: 0, ms: performance.now() - begun }
  }
}

/** Counts the answers of each status. */
export function tally(seen: readonly Seen[]): Record<number, number> {
  const counts: Record<number, number> = {}
  for (const { status } of seen) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

/**
 * Sends requests to the replicas in turns, at a steady rate, even if earlier ones are slow.
 * @returns a function that stops this, and returns all answers
 */
export function keepAsking(
  replicas: () => readonly Pick<Replica, 'url'>[],
  asking: () => Asking,
  perSecond: number,
): () => Promise<Seen[]> {
  const running: Promise<Seen>[] = []
  let turn = 0
  let due = 0
  const everyMs = 10
  const timer = setInterval(() => {
    for (due += (perSecond * everyMs) / 1_000; due >= 1; due--) {
      const among = replicas()
      if (among.length > 0) running.push(ask(among[turn++ % among.length]!, asking()))
    }
  }, everyMs)
  return () => {
    clearInterval(timer)
    return Promise.all(running)
  }
}
