import assert from 'node:assert/strict'
import { createServer, request, type ServerResponse } from 'node:http'
import test, { before } from 'node:test'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { collect } from '../support/garbage.ts'
import { startTestGateway, type TestGateway, testModel } from '../support/gateway.ts'
import { listen } from '../support/listen.ts'
import { asks, frames, paths } from '../support/native.ts'
import { turn } from '../support/waiting.ts'

// Every stream here is open at once, with the first words shown: what is kept then is kept as long as an answer takes.
const streams = 20
const bodyBytes = 1_048_576

let live: ServerResponse[] = []
let gateway: TestGateway
before(async () => {
  const upstream = createServer((asked, response) => {
    asked.resume().on('end', () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(frames.chat.slice(0, 2).join(''))
      live.push(response)
    })
  })
  gateway = await startTestGateway({
    upstreamUrl: `http://127.0.0.1:${await listen(upstream)}`,
    models: [testModel('native-chat', 'chat')],
  })
})

/** What live objects hold, in the heap and in buffers beside it. */
function usedBytes(): number {
  for (let i = 0; i < 3; i++) collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** Opens a stream whose request is large, and waits for its first words. */
function open(path: string, body: Buffer): Promise<() => Promise<void>> {
  const headers = { authorization: `Bearer ${gateway.key}`, 'content-length': body.length }
  return new Promise((resolve, reject) => {
    const asked = request(gateway.url + path, { method: 'POST', headers, agent: false }, (response) => {
      const ended = new Promise<void>((done) => response.on('end', done))
      response.once('data', () => resolve(() => ended))
    })
    asked.on('error', reject)
    asked.end(body)
  })
}

for (const wire of ['chat', 'messages', 'responses'] as readonly ClientWire[]) {
  test(`H-F4 live streams of ${wire} clients keep no request in memory, on the same wire and translated`, async () => {
    const text = 'word '.repeat(bodyBytes / 5)
    const said = wire === 'responses' ? { input: text } : { messages: [{ role: 'user', content: text }] }
    const body = Buffer.from(JSON.stringify({ ...asks[wire], ...said, model: 'native-chat', stream: true }))
    // The first one pays for what is made once.
    const first = await open(paths[wire], body)
    const before = usedBytes()
    const ends = await Promise.all(Array.from({ length: streams }, () => open(paths[wire], body)))
    await turn()
    const keptBytes = (usedBytes() - before) / streams
    for (const response of live) response.end(frames.chat.slice(2).join(''))
    live = []
    await Promise.all([first, ...ends].map((end) => end()))
    assert.ok(keptBytes < bodyBytes / 4, `a live stream keeps ${Math.round(keptBytes / 1024)} KiB`)
  })
}
