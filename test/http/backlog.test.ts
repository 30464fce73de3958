import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import test from 'node:test'
import { connect as connectSecurely, createServer as createSecureServer } from 'node:tls'
import { Backlog } from '../../src/http/http-exchange.ts'
import { atEnd } from '../support/at-end.ts'
import { createAuthority } from '../support/certificates.ts'
import { listen } from '../support/listen.ts'
import { until, untilStill } from '../support/waiting.ts'

/** More than the system takes for a client that reads nothing, in one piece. */
const bytes = 40_000_000

const { cert, key, ca } = (() => {
  const authority = createAuthority()
  return { ...authority.issue('client.example'), ca: authority.ca }
})()

for (const { isCorked, isSecure } of [
  { isCorked: false, isSecure: false },
  { isCorked: true, isSecure: false },
  { isCorked: false, isSecure: true },
  { isCorked: true, isSecure: true },
])
  test(`F-C9 for one large write${isSecure ? ' over TLS' : ''}${isCorked ? ', seen before it left,' : ''} the connection reports whether any more was taken`, async () => {
    const server = isSecure ? createSecureServer({ cert, key }) : createServer()
    const accepted = once(server, isSecure ? 'secureConnection' : 'connection') as Promise<[Socket]>
    const port = await listen(server)
    const client = isSecure
      ? connectSecurely({ port, ca, servername: 'client.example' }).pause()
      : connect(port, '127.0.0.1').pause()
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
      await until(() => backlog.hasShrunk(), 'the system takes some ahead')
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
