import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import test from 'node:test'
import { Backlog } from '../../src/http/backlog.ts'
import { atEnd } from '../support/at-end.ts'
import { listen } from '../support/listen.ts'
import { until, untilStill } from '../support/waiting.ts'

/** More than the system takes for a client that reads nothing, in one piece. */
const bytes = 40_000_000

for (const isCorked of [false, true])
  test(`F-C9 of one large write${isCorked ? ', seen before it left,' : ''} it is told whether any more was taken`, async () => {
    const server = createServer()
    const accepted = once(server, 'connection') as Promise<[Socket]>
    const port = await listen(server)
    const client = connect(port, '127.0.0.1').pause()
    const [socket] = await accepted
    atEnd(() => {
      client.destroy()
      socket.destroy()
    })
    if (isCorked) socket.cork()
    socket.write(Buffer.alloc(bytes))
    const backlog = new Backlog(socket)
    if (isCorked) {
      assert.equal(backlog.hasShrunk(), false)
      socket.uncork()
      assert.equal(backlog.hasShrunk(), true)
    }
    // What the system takes ahead comes to an end.
    await until(() => !backlog.hasShrunk())
    let read = 0
    client.on('data', (piece) => {
      read += piece.length
      if (read > 8_000_000) client.pause()
    })
    client.resume()
    await until(() => backlog.hasShrunk(), 'some of it was taken')
    assert.equal(socket.writableLength, bytes)
    await untilStill(() => read)
    await until(() => !backlog.hasShrunk())
    client.removeAllListeners('data')
    client.resume()
    await until(() => socket.writableLength === 0)
    assert.equal(backlog.hasShrunk(), true)
    assert.equal(backlog.hasShrunk(), false)
  })
