import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import test from 'node:test'
import { takeContinue } from '../../src/upstream/interim.ts'

/** What a reader gets of these pieces, on a connection whose next answer is awaited. */
function readThrough(pieces: readonly string[]): string {
  const socket = new PassThrough()
  const awaitHead = takeContinue(socket as never)
  awaitHead()
  let text = ''
  for (const piece of pieces) {
    socket.write(Buffer.from(piece, 'latin1'))
    for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) text += chunk.toString('latin1')
  }
  return text
}

const answer = 'HTTP/1.1 200 OK\r\ncontent-length: 14\r\n\r\nHTTP/1.1 100\r\n'

test('F-U28 a 100 before an answer is read as a 102, however the network cuts it, and nothing else is touched', () => {
  const cases: [told: string, read: string][] = [
    ['HTTP/1.1 100 Continue\r\n\r\n', 'HTTP/1.1 102 Continue\r\n\r\n'],
    ['HTTP/1.1 100\r\n\r\n', 'HTTP/1.1 102\r\n\r\n'],
    [
      'HTTP/1.1 103 Early\r\nx: HTTP/1.1 100\r\n\r\nHTTP/1.1 100\r\n\r\n',
      'HTTP/1.1 103 Early\r\nx: HTTP/1.1 100\r\n\r\nHTTP/1.1 102\r\n\r\n',
    ],
    ['HTTP/1.1 101 Up\r\n\r\n', 'HTTP/1.1 101 Up\r\n\r\n'],
    ['', ''],
  ]
  for (const [told, read] of cases) {
    for (const cut of [1, 7, 1_000]) {
      const pieces = (told + answer).match(new RegExp(`[^]{1,${cut}}`, 'g'))!
      assert.equal(readThrough(pieces), read + answer)
    }
  }
})
