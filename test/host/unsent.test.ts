import assert from 'node:assert/strict'
import { connect, createServer, type Socket } from 'node:net'
import test from 'node:test'
import { listen } from '../../src/host/listen.ts'
import { atEnd } from '../support/at-end.ts'
import { untilStill } from '../support/waiting.ts'

/** Both ends of a connection take this much without a bound: 4 MB of the sender's, and the first window of the receiver's. */
const withoutBound = 2_000_000
const isLinux = process.platform === 'linux'

for (const address of isLinux ? ['127.0.0.1', '::1'] : [])
  test(`the system buffers little of an answer that is not read, at ${address}`, async () => {
    const sockets: Socket[] = []
    let taken = 0
    const server = createServer((socket) => {
      sockets.push(socket)
      socket.on('error', () => {})
      const write = () => {
        const piece = Buffer.alloc(16_384)
        socket.write(piece, (error) => {
          if (error) return
          taken += piece.length
          write()
        })
      }
      write()
    })
    atEnd(() => {
      for (const socket of sockets) socket.destroy()
      server.close()
    })
    const { port } = await listen(server, { host: address, port: 0 })
    sockets.push(connect(port, address).pause())
    await untilStill(() => taken)
    assert.ok(taken < withoutBound / 4, `${taken} bytes were taken`)
  })
