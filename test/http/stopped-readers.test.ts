import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import test from 'node:test'
import { atEnd } from '../support/at-end.ts'
import { watchExchanges } from '../support/exchanges.ts'
import { chunk, paths, startNative } from '../support/native.ts'
import { gatewayEnd } from '../support/peer.ts'
import { head } from '../support/raw-upstream.ts'
import { untilStill } from '../support/waiting.ts'

const delta = chunk({ choices: [{ index: 0, delta: { content: 'canary-words '.repeat(70) }, finish_reason: null }] })
const frame = `${delta.length.toString(16)}\r\n${delta}\r\n`
/** A model that is faster than any: as much at once as the network takes. */
const flood = Buffer.from(frame.repeat(64))

for (const client of ['chat', 'messages'] as const) {
  test(`B10 R18 if a ${client} client stops reading while the model continues, 64 KiB are held`, async () => {
    const { gateway, upstream, close } = await startNative()
    let model!: Socket
    upstream.play((socket) => {
      model = socket
      socket.write(head(200, { 'content-type': 'text/event-stream', 'transfer-encoding': 'chunked' }))
      const go = () => {
        while (!socket.destroyed && socket.write(flood)) {}
      }
      socket.on('drain', go)
      go()
    })
    const exchanges = watchExchanges()
    const body = JSON.stringify({
      model: 'native-chat',
      stream: true,
      max_tokens: 9,
      messages: [{ role: 'user', content: 'Hi' }],
    })
    const stopped = connect(gateway.server.address.port, '127.0.0.1')
    atEnd(() => stopped.destroy())
    stopped.on('error', () => {}).pause()
    const auth = `authorization: Bearer ${gateway.key}`
    stopped.write(
      `POST ${paths[client]} HTTP/1.1\r\nhost: x\r\n${auth}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    )
    await untilStill(() => {
      // What is held back for its share of the work goes on.
      gateway.advance(0)
      return upstream.bytesWritten
    })
    exchanges.close()
    const [waiting, ahead] = [exchanges.newest()!.socket.writableLength, gatewayEnd(model).readableLength]
    assert.ok(waiting <= 2 * 16_384 + 4_096, `${waiting} bytes wait for the client`)
    assert.ok(ahead <= 16_384, `${ahead} bytes are read ahead`)
    stopped.destroy()
    model.destroy()
    await close()
  })
}
