import { createServer, type Socket } from 'node:net'
import { parentPort } from 'node:worker_threads'
import { listen } from '../../test/support/listen.ts'

/* The upstream of scripts/surplus/honest.ts, in a thread of its own: it answers 0.1 ms after a request. */

const takesMs = 0.1
const head = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n'
const answers: readonly (readonly string[])[] = [
  [`${head}content-length: 2\r\n\r\n{}`],
  [`${head}content-length: 2\r\n\r\n{`, '}'],
  [`${head}transfer-encoding: chunked\r\n\r\n1\r\n{\r\n`, '1\r\n}\r\n0\r\n\r\n'],
  [`${head}transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`],
  ['HTTP/1.1 204 No Content\r\n\r\n'],
  [`HTTP/1.1 103 Early\r\n\r\n${head}content-length: 2\r\n\r\n{}`],
]
const due: { atMs: number; socket: Socket; pieces: readonly string[] }[] = []
let connections = 0
let requests = 0

const server = createServer({ noDelay: true }, (socket) => {
  connections++
  socket.on('error', () => {})
  socket.on('data', (bytes) => {
    // A request comes in one piece, since it is smaller than any buffer.
    if (!bytes.toString('latin1').startsWith('POST ')) throw new Error('a piece of a request')
    due.push({ atMs: performance.now() + takesMs, socket, pieces: answers[requests++ % answers.length]! })
    if (due.length === 1) setImmediate(answerDue)
  })
})
parentPort!.on('message', () => parentPort!.postMessage(connections))
parentPort!.postMessage(await listen(server))

/** Answers requests that are due; no timer is as short as this. */
function answerDue(): void {
  const now = performance.now()
  while (due.length > 0 && due[0]!.atMs <= now) {
    const { socket, pieces } = due.shift()!
    for (const piece of pieces) socket.write(piece)
  }
  if (due.length > 0) setImmediate(answerDue)
}
