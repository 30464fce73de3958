import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { ClientWire } from '../../../src/catalog/wire-names.ts'
import { startTestGateway, type TestGateway, type TestOptions, testModel } from '../../support/gateway.ts'
import { listen } from '../../support/listen.ts'
import { untilRead } from '../../support/peer.ts'
import type { Json } from '../cases.ts'
import { checkChatStream, checkMessagesStream, checkResponsesStream } from '../grammar.ts'

/** A request as the upstream got it. */
export type Asked = {
  path: string
  headers: IncomingHttpHeaders
  text: string
  body: Json
  response: ServerResponse
  /** Resolves when the connection is closed; true if that was before the answer was whole. */
  left: Promise<boolean>
}

export type Reply = (response: ServerResponse) => void

export type ScriptedGateway = TestGateway & {
  /** What the upstream was asked since the last `play`. */
  asked: Asked[]
  /** From here on requests get these answers, the last one for ever. */
  play(...replies: Reply[]): void
}

export const wires: readonly ClientWire[] = ['messages', 'chat', 'responses']

/** The six pairs that are translated. */
export const directions: readonly { client: ClientWire; wire: ClientWire }[] = wires.flatMap((client) =>
  wires.filter((wire) => wire !== client).map((wire) => ({ client, wire })),
)

export const paths: Record<ClientWire, string> = {
  messages: '/v1/messages',
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
}

export const checkStream = { messages: checkMessagesStream, chat: checkChatStream, responses: checkResponsesStream }

/** Answers with an event stream; `reset` closes the connection before it is whole, `hold` leaves it open. */
export function sse(text: string, how: 'end' | 'reset' | 'hold' = 'end'): Reply {
  return (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.flushHeaders()
    if (how === 'end') response.end(text)
    else if (how === 'hold') response.write(text)
    else
      response.write(text, async () => {
        await untilRead(response.socket!)
        response.destroy()
      })
  }
}

export function json(body: string, status = 200): Reply {
  return (response) => response.writeHead(status, { 'content-type': 'application/json' }).end(body)
}

/** A gateway in front of an upstream that says what the test tells it to. Model ids are `plain-<wire>` or of `models`. */
export async function startScriptedGateway(options: TestOptions = {}): Promise<ScriptedGateway> {
  const asked: Asked[] = []
  let replies: Reply[] = []
  const upstream = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', (piece: string) => {
      text += piece
    })
    request.on('end', () => {
      const left = new Promise<boolean>((resolve) => response.on('close', () => resolve(!response.writableFinished)))
      asked.push({ path: request.url!, headers: request.headers, text, body: JSON.parse(text), response, left })
      const reply = replies.length > 1 ? replies.shift()! : replies[0]!
      reply(response)
    })
  })
  const port = await listen(upstream)
  const gateway = await startTestGateway({
    models: plainModels(),
    upstreamUrl: `http://127.0.0.1:${port}`,
    ...options,
  })
  return {
    ...gateway,
    asked,
    play(...next) {
      replies = next
      asked.length = 0
    },
    async close() {
      upstream.closeAllConnections()
      await new Promise((resolve) => upstream.close(resolve))
      await gateway.close()
    },
  }
}

/** One model of each wire that reasons where it is asked to. The upstream's name for it must never be seen. */
export function plainModels(): Record<string, unknown>[] {
  const reasoning = { style: 'effort', levels: ['low', 'medium', 'high'], can_disable: true }
  return [
    testModel('plain-messages', 'messages', {
      upstream_model: 'hosted-model',
      profile: { reasoning: { ...reasoning, style: 'adaptive' } },
    }),
    testModel('plain-chat', 'chat', { upstream_model: 'hosted-model', profile: { reasoning } }),
    testModel('plain-responses', 'responses', { upstream_model: 'hosted-model', profile: { reasoning } }),
  ]
}

/** The smallest request of a wire, and more. */
export function say(client: ClientWire, wire: ClientWire, more: Json = {}): Json {
  const model = `plain-${wire}`
  if (client === 'messages') return { model, max_tokens: 500, messages: [{ role: 'user', content: 'Hello' }], ...more }
  if (client === 'chat') return { model, messages: [{ role: 'user', content: 'Hello' }], ...more }
  return { model, input: 'Hello', ...more }
}

/** What a client of each wire sends to be shown reasoning. */
export const wishes: Record<ClientWire, Json> = {
  messages: { thinking: { type: 'enabled', budget_tokens: 8_000 } },
  chat: { reasoning_effort: 'high' },
  responses: { reasoning: { effort: 'high', summary: 'auto' } },
}

/** The error object of either envelope, or of a frame. */
export function errorOf(text: string): Json {
  return JSON.parse(text).error
}
