import assert from 'node:assert/strict'
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { checkMessage } from '../operations/contract.ts'
import { atEnd } from './at-end.ts'
import type { Pair } from './certificates.ts'
import { listen } from './listen.ts'

export type Received = {
  headers: IncomingHttpHeaders
  text: string
  body: { type: string; timestamp: string; data: Record<string, unknown> }
}

type ReceiverAnswer = number | 'silence' | 'drop'

/** Receives webhooks, until the end of the test. Each gets the next of `answers`, and later ones a 200. */
export function startReceiver(...answers: readonly ReceiverAnswer[]) {
  return start(createServer, answers)
}

/** Receives webhooks over TLS with this certificate. It listens at `place`. */
export function startSecureReceiver(pair: Pair) {
  return start((listener) => createSecureServer(pair, listener), [])
}

async function start(
  create: (listener: RequestListener) => ReturnType<typeof createServer>,
  answers: readonly ReceiverAnswer[],
) {
  const received: Received[] = []
  const mistakes: string[] = []
  let at = 0
  const server = create((request, response) => {
    let text = ''
    request.on('data', (chunk) => (text += chunk))
    request.on('end', () => {
      const body = JSON.parse(text)
      received.push({ headers: request.headers, text, body })
      // Every message, whatever the test, must match the OpenAPI document.
      const mistake = checkMessage(body)
      if (mistake) mistakes.push(mistake)
      const answer = answers[at++] ?? 200
      if (answer === 'silence') return
      if (answer === 'drop') request.socket.destroy()
      else response.writeHead(answer, { location: '/elsewhere' }).end('thanks')
    })
  })
  const port = await listen(server)
  atEnd(() => {
    server.closeAllConnections()
    assert.deepEqual(mistakes, [])
  })
  return { url: `http://127.0.0.1:${port}/hook`, place: `127.0.0.1:${port}`, received }
}
