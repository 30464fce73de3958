import assert from 'node:assert/strict'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { checkMessage } from '../operations/contract.ts'
import { atEnd } from './at-end.ts'
import { listen } from './listen.ts'

export type Received = {
  headers: IncomingHttpHeaders
  text: string
  body: { type: string; timestamp: string; data: Record<string, unknown> }
}

/** Receives webhooks, until the end of the test. Each gets the next of `answers`, and later ones a 200. */
export async function startReceiver(...answers: readonly (number | 'silence' | 'drop')[]) {
  const received: Received[] = []
  const mistakes: string[] = []
  let at = 0
  const server = createServer((request, response) => {
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
  return { url: `http://127.0.0.1:${port}/hook`, received }
}
