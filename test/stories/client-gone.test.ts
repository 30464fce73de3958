import assert from 'node:assert/strict'
import { request } from 'node:http'
import test, { after, before } from 'node:test'
import { clientWireNames } from '../../src/catalog/wire-names.ts'
import { Backlog } from '../../src/http/http-exchange.ts'
import { createAuthority } from '../support/certificates.ts'
import { watchExchanges } from '../support/exchanges.ts'
import { answerNanos, answers, asks, chunk, frames, type Native, paths, startNative } from '../support/native.ts'
import { assertQuiet } from '../support/quiet.ts'
import { openRaw } from '../support/raw.ts'
import { type Answer, stream, whole, writeChunk } from '../support/raw-upstream.ts'
import { passUntil, until, untilStill } from '../support/waiting.ts'

let native: Native
before(async () => {
  native = await startNative()
})
after(() => native.close())

type Wire = (typeof clientWireNames)[number]

/** A client that can leave: by a reset, as a closed laptop does not, but as a stopped program does. */
function leaver(wire: Wire, more: Record<string, unknown> = { stream: true }) {
  const started = request(native.gateway.url + paths[wire], {
    method: 'POST',
    headers: { authorization: `Bearer ${native.gateway.key}` },
    agent: false,
  })
  started.on('error', () => {})
  const text = new Promise<string>((resolve) => {
    started.on('response', (response) => {
      let got = ''
      response.on('data', (piece) => {
        got += piece
        if (got.includes('Hé ')) resolve(got)
      })
      response.on('error', () => {})
      response.on('end', () => resolve(got))
    })
  })
  started.end(JSON.stringify({ ...asks[wire], ...more }))
  return { text, leave: () => void started.destroy() }
}

/** The line and the entry of the last request. */
async function last() {
  await assertQuiet(native.gateway)
  const line = (await native.gateway.logLines()).findLast((candidate) => 'outcome' in candidate)!
  return { line, entry: native.gateway.store.findEntry(line['id'] as string) }
}

const isAsked = () => native.upstream.requests.length > 0
const isReadOn = () => native.gateway.server.gateway.readers.count > 0

for (const wire of clientWireNames) {
  test(`C4 F-C4 client gone before the head of a ${wire} answer: an answer that comes within the window is billed in full`, async () => {
    for (const isStream of [false, true]) {
      let go = () => {}
      const play = isStream ? stream(frames[wire]) : whole(answers[wire])
      native.upstream.play((socket, asked) => {
        go = () => void play(socket, asked)
      })
      const client = leaver(wire, { stream: isStream })
      await until(isAsked)
      client.leave()
      await until(isReadOn)
      go()
      const { line, entry } = await last()
      assert.equal(line['outcome'], 'client_abort')
      assert.deepEqual([entry?.amountNanos, entry?.bill?.usageSource], [answerNanos, 'final'])
    }
  })

  test(`C4 client gone before the head of a ${wire} answer that never comes: the input estimate is billed after 30 s`, async () => {
    native.upstream.play(() => {})
    const client = leaver(wire)
    await until(isAsked)
    client.leave()
    await until(isReadOn)
    native.gateway.advance(29_000)
    assert.ok(isReadOn())
    const closed = native.upstream.closed
    native.gateway.advance(1_000)
    const { entry } = await last()
    const { usage, usageSource } = entry!.bill!
    assert.equal(usageSource, 'estimated')
    assert.ok(usage.inputTokens > 0)
    assert.equal(usage.outputTokens, 0)
    await until(() => native.upstream.closed > closed)
  })

  const isLate = wire !== 'messages'
  const becomes = isLate ? 'is read on for its cached share, then cancelled' : 'has told its input, and is cancelled'
  test(`C12 F-C5 client gone in the middle of a ${wire} stream: the upstream ${becomes}; the evidence is billed`, async () => {
    const half = { messages: 3, chat: 2, responses: 4 }
    native.upstream.play(stream(frames[wire].slice(0, half[wire]), { end: false }))
    const client = leaver(wire, { stream: true })
    await client.text
    const closed = native.upstream.closed
    client.leave()
    if (isLate) {
      await until(isReadOn)
      native.gateway.advance(9_000)
      assert.ok(isReadOn())
      native.gateway.advance(1_000)
    }
    await until(() => native.upstream.closed > closed)
    const { line, entry } = await last()
    assert.equal(line['outcome'], 'client_abort')
    assert.equal(entry!.bill!.outcome, 'client_abort')
    assert.ok(entry!.bill!.usage.outputTokens > 0)
    if (!isLate) assert.deepEqual([entry!.bill!.usage.inputTokens, entry!.bill!.usage.cacheReadTokens], [5, 4])
  })

  test(`C4 client gone and the ${wire} upstream refuses, fails or breaks off: nothing is billed`, async () => {
    const event = 'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"x"}}\n\n'
    const plays: Answer[] = [
      whole({ error: { message: 'x' } }, 500),
      (socket) => void socket.resetAndDestroy(),
      stream([event]),
      stream(frames[wire].slice(0, 1)),
    ]
    for (const play of plays) {
      let go = () => {}
      native.upstream.play((socket, asked) => {
        go = () => void play(socket, asked)
      })
      const client = leaver(wire)
      await until(isAsked)
      client.leave()
      await until(isReadOn)
      go()
      const { line, entry } = await last()
      assert.deepEqual([line['outcome'], entry], ['client_abort', undefined])
    }
  })

  test(`C4 F-C6 client gone after the terminator of a ${wire} stream: billed as an ordinary answer`, async () => {
    native.upstream.play(stream(frames[wire]))
    const client = leaver(wire)
    await client.text
    await until(() => native.gateway.server.gateway.deliveries.size === 0)
    client.leave()
    const { line, entry } = await last()
    assert.deepEqual([line['outcome'], entry!.bill!.usageSource, entry!.amountNanos], ['ok', 'final', answerNanos])
  })
}

test('C4 client gone after the head and before content: the upstream is read on for its usage', async () => {
  let rest = () => {}
  native.upstream.play(async (socket, asked) => {
    await stream(frames.messages.slice(0, 2), { end: false })(socket, asked)
    rest = () => {
      for (const frame of frames.messages.slice(2)) writeChunk(socket, frame)
      socket.write('0\r\n\r\n')
    }
  })
  const client = leaver('messages')
  await native.upstream.untilHeard()
  client.leave()
  await until(isReadOn)
  rest()
  assert.equal((await last()).entry!.amountNanos, answerNanos)
})

test('C4 C12 at most 20 answers of an account are read on at once; the others are billed by estimate immediately', async () => {
  native.upstream.play(() => {})
  const clients = Array.from({ length: 23 }, () => leaver('chat', { stream: false }))
  await until(() => native.upstream.requests.length === 23)
  for (const client of clients) client.leave()
  const { deliveries, readers } = native.gateway.server.gateway
  await until(() => deliveries.size === 20)
  assert.equal(readers.count, 20)
  native.gateway.advance(30_000)
  await assertQuiet(native.gateway)
})

test('C12: a client that returns while the answer it left is read on is answered like any other, and both are billed', async () => {
  let rest = () => {}
  native.upstream.play(async (socket, asked) => {
    await stream(frames.chat.slice(0, 2), { end: false })(socket, asked)
    rest = () => {
      for (const frame of frames.chat.slice(2)) writeChunk(socket, frame)
      socket.write('0\r\n\r\n')
    }
  }, whole(answers.chat))
  const client = leaver('chat')
  await client.text
  client.leave()
  await until(isReadOn)
  const back = await native.ask('chat')
  assert.equal(back.status, 200)
  assert.equal(JSON.parse(back.text).choices[0].message.content, 'Hé 😀')
  assert.equal(native.gateway.store.findEntry(back.id)?.amountNanos, answerNanos)
  assert.ok(isReadOn())
  rest()
  const { line, entry } = await last()
  assert.deepEqual(
    [line['outcome'], entry?.bill?.usageSource, entry?.amountNanos],
    ['client_abort', 'final', answerNanos],
  )
})

test('C12: a reload ends the reading of answers under the old configuration, and closes their connections', async () => {
  const other = await startNative()
  other.upstream.play(stream(frames.chat.slice(0, 2), { end: false }))
  const leaving = new AbortController()
  const response = await fetch(other.gateway.url + paths.chat, {
    method: 'POST',
    headers: { authorization: `Bearer ${other.gateway.key}` },
    body: JSON.stringify({ ...asks.chat, stream: true }),
    signal: leaving.signal,
  })
  leaving.abort()
  const { readers } = other.gateway.server.gateway
  await until(() => readers.count > 0)
  other.gateway.reload({ billing: { read_on: '1m' } })
  other.gateway.advance(0)
  const id = response.headers.get('x-request-id')!
  assert.equal((await other.gateway.logOf(id))['outcome'], 'client_abort')
  assert.equal(other.gateway.store.findEntry(id)?.bill?.usageSource, 'estimated')
  await until(() => other.upstream.closed === 1, 'the connection closes')
  await other.close()
})

test('F-C3 client gone in the middle of its body: no upstream contact, nothing billed', async () => {
  const linesBefore = (await native.gateway.logLines()).length
  native.upstream.play(whole(answers.chat))
  const started = request(native.gateway.url + paths.chat, {
    method: 'POST',
    headers: { authorization: `Bearer ${native.gateway.key}`, 'content-length': '1000' },
  })
  started.on('error', () => {})
  const begun = native.gateway.begun()
  started.write('{"model":')
  await until(() => native.gateway.begun() > begun)
  started.destroy()
  await until(async () => (await native.gateway.logLines()).length > linesBefore)
  const { line, entry } = await last()
  assert.deepEqual([line['outcome'], entry, native.upstream.requests.length], ['client_abort', undefined, 0])
})

test('F-C9 a client that stops reading: the upstream is paused; after 60 s the connection is closed and the answer billed', async () => {
  let written = 0
  native.upstream.play(async (socket, asked) => {
    await stream(frames.chat.slice(0, 2), { end: false })(socket, asked)
    const piece = chunk({ choices: [{ index: 0, delta: { content: 'Hello' }, finish_reason: null }] }).repeat(300)
    while (!socket.destroyed && written < 100_000_000) {
      socket.write(`${piece.length.toString(16)}\r\n`)
      await new Promise((resolve) => socket.write(`${piece}\r\n`, resolve))
      written += piece.length
    }
  })
  const client = request(native.gateway.url + paths.chat, {
    method: 'POST',
    headers: { authorization: `Bearer ${native.gateway.key}` },
    agent: false,
  })
  client.on('error', () => {})
  client.on('response', (response) => response.on('error', () => {}).pause())
  client.end(JSON.stringify({ ...asks.chat, stream: true }))
  await until(isAsked)
  // The kernel's buffers and ours fill up; then nothing moves any more.
  await untilStill(() => written)
  assert.ok(written < 50_000_000, `${written} bytes were taken for a client that reads nothing`)
  native.gateway.advance(59_000)
  assert.equal(native.gateway.server.gateway.deliveries.size, 1)
  const closed = native.upstream.closed
  await passUntil(native.gateway, isReadOn)
  native.gateway.advance(10_000)
  await until(() => native.upstream.closed > closed)
  const { line, entry } = await last()
  assert.equal(line['outcome'], 'client_stall')
  assert.ok(entry!.bill!.usage.outputTokens > 100)
})

for (const isSecure of [false, true])
  test(`F-C8 F-C9 a client that takes large pieces of a stream slowly${isSecure ? ', over TLS,' : ''} gets all of it`, async () => {
    const { certFile: cert, keyFile: key } = createAuthority().issue('gateway.example')
    const own = await startNative(isSecure ? { config: { tls: { cert, key } } } : {})
    const large = chunk({ choices: [{ index: 0, delta: { content: 'x'.repeat(6_000_000) }, finish_reason: null }] })
    own.upstream.play(stream([...frames.chat.slice(0, 2), ...Array(5).fill(large), ...frames.chat.slice(2)]))
    const { socket, write } = await openRaw(isSecure ? own.gateway.url.replace('http:', 'https:') : own.gateway.url)
    let [room, tail] = [0, '']
    socket.on('data', (piece: Buffer) => {
      tail = (tail + piece.toString('latin1')).slice(-100)
      room -= piece.length
      if (room <= 0) socket.pause()
    })
    const exchanges = watchExchanges()
    const body = JSON.stringify({ ...asks.chat, stream: true })
    const lines = ['host: x', `authorization: Bearer ${own.gateway.key}`, `content-length: ${body.length}`]
    write(`POST ${paths.chat} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`)
    const isOver = () => socket.closed || tail.includes('[DONE]')
    let looks = 0
    for (; !isOver(); looks++) {
      const exchange = exchanges.newest()
      const backlog = exchange && new Backlog(exchange.socket)
      // What the kernel has for it already is no sign of life to the gateway.
      do {
        room = 750_000
        socket.resume()
        await until(() => {
          // What is held back for its share of the work goes on.
          own.gateway.advance(0)
          return socket.isPaused() || isOver()
        }, 'it has taken some more')
      } while (backlog?.hasShrunk() === false && !isOver())
      own.gateway.advance(30_000)
    }
    exchanges.close()
    assert.ok(looks > 6, `${looks}`)
    const line = await own.gateway.logWith({ outcome: 'ok' })
    assert.equal(line['status'], 200)
    socket.destroy()
    await own.close()
  })
