/*
 * The upstream behind every server under test: answers that were made beforehand, on bare sockets. The path says which:
 * `/stream-8/v1/messages` is a stream with eight events in each piece. Prints its port.
 */
import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { WireName } from '../src/catalog/model.ts'
import { streamEvents, wholeAnswers } from './answers.ts'
import { createMessageReader } from './message.ts'

/** A piece of every stream goes out this often: slow enough that no server under test lets pieces run together. */
const tickMs = 4

type Pieces = { head: Buffer; pieces: Buffer[] }

const prepared = new Map<string, Buffer | Pieces>()
for (const [wire, path] of [
  ['messages', '/v1/messages'],
  ['chat', '/v1/chat/completions'],
  // To a base URL with a path comes what is behind `/v1`; releases before 0.2.0 added it.
  ['chat', '/chat/completions'],
] as const) {
  prepared.set(`/json${path}`, wholeResponse(wholeAnswers[wire]!))
  for (const size of [1, 8]) prepared.set(`/stream-${size}${path}`, streamResponse(wire, size))
}

const running = new Map<Socket, { pieces: Buffer[]; next: number }>()
setInterval(() => {
  for (const [socket, stream] of running) {
    socket.write(stream.pieces[stream.next++]!)
    if (stream.next === stream.pieces.length) running.delete(socket)
  }
}, tickMs)

const server = createServer({ noDelay: true }, (socket) => {
  const read = createMessageReader((head) => {
    const answer = prepared.get(head.slice(head.indexOf(' ') + 1, head.indexOf(' HTTP/')))
    if (answer === undefined) socket.destroy(new Error(`no answer is prepared for: ${head}`))
    else if (Buffer.isBuffer(answer)) socket.write(answer)
    else {
      socket.write(answer.head)
      running.set(socket, { pieces: answer.pieces, next: 0 })
    }
  })
  socket.on('data', read)
  socket.on('error', () => {})
  socket.on('close', () => running.delete(socket))
})
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port))

function wholeResponse(body: string): Buffer {
  const length = Buffer.byteLength(body)
  return Buffer.from(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n${body}`)
}

function streamResponse(wire: WireName, eventsPerPiece: number): Pieces {
  const { begin, deltas, end } = streamEvents[wire]!
  const pieces: string[] = [begin]
  for (let i = 0; i < deltas.length; i += eventsPerPiece) pieces.push(deltas.slice(i, i + eventsPerPiece).join(''))
  pieces.push(end)
  return {
    head: Buffer.from('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n'),
    pieces: pieces.map((piece, i) => Buffer.from(chunked(piece) + (i === pieces.length - 1 ? '0\r\n\r\n' : ''))),
  }
}

function chunked(piece: string): string {
  return `${Buffer.byteLength(piece).toString(16)}\r\n${piece}\r\n`
}
