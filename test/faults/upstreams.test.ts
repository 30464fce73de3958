import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { brotliCompressSync, constants, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { answers, chunk, frames, named } from '../support/native.ts'
import { type Answer, writeChunk } from '../support/raw-upstream.ts'
import { until } from '../support/waiting.ts'
import { type Bench, canary, head, openRows, stream, type Told, type Way, whole } from './bench.ts'
import { errorOf } from './upstream-answers.ts'

/* The rows F-U of docs/faults.md that one upstream account shows; what takes several is in pools.test.ts. */

const row = openRows()

const failed = (cause: string, more: object = {}): Told => ({
  client: 502,
  ledger: 'none',
  log: { outcome: 'upstream_error', code: 'upstream_error', cause, attempts: 1, ...more },
})
const cut = (cause: string | RegExp): Told => ({
  client: 'cut',
  ledger: 'evidence',
  log: { outcome: 'upstream_cut', cause },
})
const ok: Told = { client: 'whole', ledger: 'final', log: { outcome: 'ok', status: 200 } }
const json = { 'content-type': 'application/json' }

/** By content coding; without a name of its own, `deflate` without the frame of zlib. */
const packers: Record<string, (text: string | Buffer, isCut?: boolean) => Buffer> = {
  gzip: (text, isCut) => gzipSync(text, isCut ? { finishFlush: constants.Z_SYNC_FLUSH } : {}),
  'X-Gzip': (text, isCut) => gzipSync(text, isCut ? { finishFlush: constants.Z_SYNC_FLUSH } : {}),
  deflate: (text, isCut) => deflateSync(text, isCut ? { finishFlush: constants.Z_SYNC_FLUSH } : {}),
  'deflate ': (text, isCut) => deflateRawSync(text, isCut ? { finishFlush: constants.Z_SYNC_FLUSH } : {}),
  br: (text, isCut) =>
    brotliCompressSync(text, {
      params: { [constants.BROTLI_PARAM_QUALITY]: 4 },
      ...(isCut && { finishFlush: constants.BROTLI_OPERATION_FLUSH }),
    }),
  zstd: (text, isCut) => zstdCompressSync(text, isCut ? { finishFlush: constants.ZSTD_e_flush } : {}),
}

/** An answer with a declared length, of bytes. */
function sent(body: Buffer, status: number, headers: Record<string, string>): Answer {
  return (socket) => {
    socket.write(head(status, { 'content-length': `${body.length}`, ...headers }))
    socket.write(body)
  }
}

/** Asked for JSON and for a stream, the upstream's answer to both being this. */
async function both(bench: Bench, play: Answer, told: Told): Promise<void> {
  for (const isStream of [false, true]) {
    bench.upstream.play(play)
    await bench.check(await bench.ask({ stream: isStream }), told)
  }
}

/** A stream of which the client has seen something; then `go` happens. */
async function begun(bench: Bench, go: (socket: Socket) => unknown, told: Told, to = 'native'): Promise<void> {
  let socket!: Socket
  bench.upstream.play(async (raw, request) => {
    socket = raw
    await stream(bench.shown, { end: false })(raw, request)
  })
  const client = bench.client({ stream: true, to })
  await client.saw('Hé')
  await go(socket)
  await bench.check(await client.got, told)
}

row('F-U1', 'an upstream that refuses connections is a 502 and costs nothing', {}, async (bench) => {
  const port = new URL(bench.network.url).port
  bench.gateway.reload({ upstreams: { ...bench.upstreams, sim: { base_url: 'http://127.0.0.1:9', accounts: [key] } } })
  assert.notEqual(port, '9')
  // The only account is asked once more (ruling Y26).
  const twice = failed('upstream_connect', { attempts: 2 })
  await bench.check(await bench.ask(), twice)
  await bench.check(await bench.ask({ stream: true }), twice)
  bench.gateway.reload({ upstreams: bench.upstreams })
})

for (const [name, trouble] of [
  ['reset', { resetAt: 0 }],
  ['ended', { cutAt: 0 }],
] as const) {
  row(
    'F-U5',
    `a fresh connection that is ${name} before the head is a 502, and is not tried again`,
    {},
    async (bench) => {
      bench.network.play({ down: trouble })
      bench.upstream.play(bench.good.whole)
      await bench.check(await bench.ask({ to: 'far' }), failed('upstream_reset'))
      bench.upstream.play((socket) => void socket.write('HTTP/1.1 20'))
      bench.network.play({ down: name === 'reset' ? { resetAt: 6 } : { cutAt: 6 } })
      await bench.check(await bench.ask({ to: 'far', stream: true }), failed('upstream_reset'))
      assert.equal(bench.upstream.requests.length, 1)
    },
  )

  row(
    'F-U6',
    `a kept connection that is ${name} before any byte: one quiet attempt on a fresh one`,
    {},
    async (bench) => {
      const end: Answer = (socket) => void (name === 'reset' ? socket.resetAndDestroy() : socket.end())
      bench.upstream.play(bench.good.whole, end, bench.good.stream)
      await bench.check(await bench.ask(), ok)
      bench.gateway.rest()
      await bench.check(await bench.ask({ stream: true }), { ...ok, log: { ...ok.log, attempts: 2 } })
      assert.equal(bench.upstream.requests.length, 3)
      assert.notEqual(bench.upstream.requests[2]!.connection, bench.upstream.requests[1]!.connection)
    },
  )
}

row('F-U7', 'silence before the first byte is a 502 at its deadline, and never a second attempt', {}, async (bench) => {
  for (const [isStream, ms] of [
    [true, 300_000],
    [false, 600_000],
  ] as const) {
    bench.upstream.play(() => {})
    const client = bench.client({ stream: isStream })
    await bench.isAsked()
    bench.gateway.advance(ms - 1_000)
    assert.equal(bench.gateway.server.gateway.deliveries.size, 1, 'too early')
    bench.gateway.advance(1_000)
    await bench.check(await client.got, failed('upstream_ttfb_timeout'))
    assert.equal(bench.upstream.requests.length, 1)
  }
})

row('F-U7', 'half-open: a connection that nobody answers is a 502 at its deadline', {}, async (bench) => {
  bench.network.play({ isHalfOpen: true })
  const client = bench.client({ stream: true, to: 'far' })
  await until(() => bench.network.open === 1 && bench.gateway.server.gateway.deliveries.size === 1)
  bench.gateway.advance(300_000)
  await bench.check(await client.got, failed('upstream_ttfb_timeout'))
})

row('F-U8', 'silence within a stream cuts it after idle, billed by the evidence', {}, async (bench) => {
  const told = cut('upstream_stall')
  await begun(bench, () => bench.gateway.advance(120_000), { ...told, log: { outcome: 'upstream_stall' } }, 'far')
})

row('F-U9', 'a reset within a stream cuts it, billed by the evidence', {}, async (bench) => {
  await begun(bench, (socket) => socket.resetAndDestroy(), cut('upstream_reset'), 'far')
})

row('F-U10', 'a chunked stream that ends early is cut, billed by the evidence', {}, async (bench) => {
  await begun(bench, (socket) => socket.write('0\r\n\r\n'), cut('upstream_cut'))
  await begun(bench, (socket) => socket.end(), cut('upstream_reset'))
})

row('F-U11', 'a stream that ends with its connection is cut, unless its end was seen', {}, async (bench) => {
  const endless = (text: string): Answer => {
    const begin = head(200, { 'content-type': 'text/event-stream', connection: 'close' })
    return (socket) => void socket.end(begin + text)
  }
  bench.upstream.play(endless(bench.shown.join('')))
  await bench.check(await bench.ask({ stream: true }), cut(/upstream_/))
  bench.upstream.play(endless([...bench.shown, ...bench.rest].join('')))
  await bench.check(await bench.ask({ stream: true }), ok)
})

row('F-U12', 'an answer without its terminator behind reason and usage is whole', {}, async (bench, way) => {
  // On responses only the terminal event proves that it was complete (T19).
  const told = way.model === 'responses' ? cut(/upstream_/) : ok
  bench.upstream.play(stream(frames[way.model].slice(0, -1)))
  await bench.check(await bench.ask({ stream: true }), told)
})

row(
  'F-U13',
  'a terminator without a reason is whole, on messages cut (Y3), billed by the evidence',
  {},
  async (bench, way) => {
    const rest = frames[way.model]
    const without: Record<string, string[]> = {
      messages: [...rest.slice(0, 5), rest[6]!],
      chat: [...rest.slice(0, 3), rest[5]!],
      responses: [
        ...rest.slice(0, 8),
        named({ type: 'response.completed', sequence_number: 8, response: { ...answers.responses, usage: null } }),
      ],
    }
    bench.upstream.play(stream(without[way.model]!))
    const told: Told = { client: 'whole', ledger: 'evidence', log: { outcome: 'ok' } }
    await bench.check(await bench.ask({ stream: true }), way.model === 'messages' ? cut('upstream_protocol') : told)
  },
)

row('F-U14', 'two terminators, and data behind them: exactly one is told', {}, async (bench, way) => {
  const all = frames[way.model]
  bench.upstream.play(stream([...all, all.at(-1)!, all[2]!, all.at(-1)!]))
  await bench.check(await bench.ask({ stream: true }), ok)
})

row('F-U15', 'comments alone are no progress: keep-alives, then a cut after progress', {}, async (bench) => {
  let socket!: Socket
  bench.upstream.play(async (raw, request) => {
    socket = raw
    await stream(bench.shown, { end: false })(raw, request)
  })
  const client = bench.client({ stream: true })
  await client.saw('Hé')
  for (let i = 0; i < 30; i++) {
    writeChunk(socket, ': alive\n\n')
    await bench.upstream.untilHeard()
    bench.gateway.advance(10_000)
  }
  const got = await client.got
  assert.ok(got.text.split(/^(?:: |event: )ping$/m).length > 20, 'the client hears that it is alive')
  await bench.check(got, { client: 'cut', ledger: 'evidence', log: { outcome: 'upstream_stall' } })
})

row('F-U19', '400, 404 and 422 about the request keep their status, in scrubbed words', {}, async (bench, way) => {
  for (const status of [400, 404, 422]) {
    const refusal = errorOf(
      way.model,
      'invalid_request_error',
      `No document is named page-7 at https://${canary}.example`,
    )
    await both(bench, whole(refusal, status), {
      client: status,
      ledger: 'none',
      log: { outcome: 'refused', code: 'invalid_request', attempts: 1 },
    })
  }
})

row(
  'F-U20',
  '404 and 405 about our path or our name for the model are a 502 that an operator sees',
  {},
  async (bench, way) => {
    const misnamed = errorOf(way.model, 'not_found_error', `The model up-${way.model} does not exist`)
    await both(bench, whole(misnamed, 404), failed('upstream_404'))
    await both(bench, whole('', 405), failed('upstream_405'))
  },
)

row('F-U23', '200 with a page, nothing, another type, or 204 is a 502 that shows nothing of it', {}, async (bench) => {
  const plays: Answer[] = [
    whole(`<html>${canary}</html>`, 200, { 'content-type': 'text/html' }),
    whole(''),
    (socket) => void socket.write(head(204, {})),
    whole(canary, 200, { 'content-type': 'application/octet-stream' }),
  ]
  for (const play of plays) await both(bench, play, failed('upstream_protocol'))
})

const labels = [
  'text/plain; charset=utf-8',
  'application/json',
  'application/x-ndjson',
  'application/octet-stream',
  'text/html',
  '',
]

row('F-U23', 'Y1 BUG-5 FID-4 an event stream is read under any label, from its first bytes', {}, async (bench, way) => {
  const text = frames[way.model].join('')
  for (const label of labels) {
    const headers = { 'content-type': label }
    for (const start of ['', '\ufeff', ': comment\n\n', 'id: 1\n', 'retry: 9\n\n', '\r\n\r\n']) {
      bench.upstream.play(stream([`${start}${text}`], { headers }))
      await bench.check(await bench.ask({ stream: true }), ok)
    }
    bench.upstream.play(stream([...`\ufeff${text.slice(0, 20)}`, text.slice(20)], { headers }))
    await bench.check(await bench.ask({ stream: true }), ok)
  }
  bench.upstream.play((socket) => void socket.end(`${head(203, {})}${text}`))
  await bench.check(await bench.ask({ stream: true }), ok)
})

row('F-U23', 'Y1 a whole answer, or an error, is read under the label of a stream', {}, async (bench, way) => {
  const headers = { 'content-type': 'text/event-stream' }
  for (const start of ['', '\ufeff', ' \n'])
    for (const isStream of [false, true]) {
      bench.upstream.play(whole(`${start}${JSON.stringify(answers[way.model])}`, 200, headers))
      await bench.check(await bench.ask({ stream: isStream }), ok)
    }
  for (const isStream of [false, true]) {
    bench.upstream.play(whole(errorOf(way.model, 'invalid_request_error', 'Bad field'), 200, headers))
    const got = await bench.ask({ stream: isStream })
    assert.match(got.text, /Bad field/)
    await bench.check(got, { client: 400, ledger: 'none', log: { outcome: 'refused', cause: /upstream_error_/ } })
  }
})

row('F-U23', 'Y1 the log has the media type of what could not be read', {}, async (bench) => {
  for (const [label, told] of [
    ['text/html; charset=utf-8', 'text/html'],
    [`text/${canary}-${'a'.repeat(99)}`, 'other'],
    ['', 'none'],
  ] as const)
    await both(
      bench,
      whole('<html></html>', 200, { 'content-type': label }),
      failed('upstream_protocol', { content_type: told }),
    )
})

row('F-U24', '200 with what is no JSON, or breaks off, is a 502 that shows nothing of it', {}, async (bench) => {
  const short: Answer = (socket) => void socket.end(`${head(200, { ...json, 'content-length': '99' })}{}`)
  for (const play of [whole(`{"id":"${canary}","choices":[`), whole(canary)]) {
    bench.upstream.play(play)
    await bench.check(await bench.ask(), failed('upstream_protocol'))
  }
  bench.upstream.play(short)
  await bench.check(await bench.ask(), failed('upstream_reset'))
})

row('F-U25', '200 with an error as its body is that error', {}, async (bench, way) => {
  bench.upstream.play(whole(errorOf(way.model, 'invalid_request_error', `Bad at https://${canary}.example`), 200))
  await bench.check(await bench.ask(), {
    client: 400,
    ledger: 'none',
    log: { outcome: 'refused', code: 'invalid_request' },
  })
  bench.upstream.play(whole(errorOf(way.model, 'api_error', `at https://${canary}.example`), 200))
  await bench.check(await bench.ask(), failed('upstream_error_body'))
})

row('F-U26', 'an error as the first event of a stream is an ordinary error', {}, async (bench, way) => {
  for (const before of [[], frames[way.model].slice(0, 1)]) {
    bench.upstream.play(stream([...before, errorEvent(way)]))
    await bench.check(await bench.ask({ stream: true }), failed('upstream_error_event'))
  }
})

row('F-U27', 'an error event behind content cuts the stream, billed by the evidence', {}, async (bench, way) => {
  bench.upstream.play(stream([...bench.shown, errorEvent(way)]))
  const got = await bench.ask({ stream: true })
  assert.doesNotMatch(got.text, new RegExp(canary))
  await bench.check(got, cut('upstream_error_event'))
})

row(
  'F-U28',
  'ten interim responses are passed over, a bare 100 among them; the eleventh is a 502',
  {},
  async (bench) => {
    for (const interim of [
      'HTTP/1.1 100\r\n\r\n',
      'HTTP/1.1 100 Continue\r\n\r\n',
      'HTTP/1.1 103 Early\r\nlink: x\r\n\r\n',
    ]) {
      for (const times of [1, 10]) {
        bench.upstream.play((socket, request) => {
          socket.write(interim.repeat(times))
          return bench.good.whole(socket, request)
        })
        await bench.check(await bench.ask(), ok)
      }
      bench.network.play({ down: { slice: 1 } })
      bench.upstream.play((socket, request) => {
        socket.write(interim.repeat(3))
        return bench.good.whole(socket, request)
      })
      await bench.check(await bench.ask({ to: 'far' }), ok)
      bench.upstream.play((socket) => void socket.write(interim.repeat(11)))
      await bench.check(await bench.ask(), failed('upstream_protocol'))
    }
    bench.upstream.play((socket) => void socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n'))
    await bench.check(await bench.ask(), failed('upstream_protocol'))
  },
)

row('F-U29', 'a redirect is a 502 and is not followed', {}, async (bench) => {
  const requests = () => bench.upstream.requests.length
  for (const status of [301, 302, 303, 307, 308]) {
    bench.upstream.play(whole('', status, { location: `${bench.upstream.url}/${canary}` }))
    await bench.check(await bench.ask(), failed('upstream_redirect'))
    assert.equal(requests(), 1)
  }
})

row(
  'F-U30',
  'heads over 16 KiB, two lengths and bad line ends are a 502, the connection destroyed',
  {},
  async (bench) => {
    const twice = `${head(200, { ...json, 'content-length': '2' }).slice(0, -2)}content-length: 3\r\n\r\n{}`
    const both = `${head(200, { ...json, 'content-length': '2' }).slice(0, -2)}transfer-encoding: chunked\r\n\r\n0\r\n\r\n`
    const lines = 'HTTP/1.1 200 OK\ncontent-type: application/json\ncontent-length: 2\n\n{}'
    for (const text of [head(200, { 'x-big': 'a'.repeat(20_000) }), twice, both, lines]) {
      const closed = bench.upstream.closed
      bench.upstream.play((socket) => void socket.write(text))
      await bench.check(await bench.ask(), failed('upstream_protocol'))
      await until(() => bench.upstream.closed > closed, 'the connection is destroyed')
    }
  },
)

row(
  'F-U31',
  'bytes behind the declared body do not touch the answer, are reported, and the connection is not used again',
  {},
  async (bench, way) => {
    const text = JSON.stringify(answers[way.model])
    const answer = `${head(200, { ...json, 'content-length': `${Buffer.byteLength(text)}` })}${text}`
    bench.upstream.play((socket) => void socket.write(`${answer}HTTP/1.1 200 OK\r\n\r\n`), bench.good.whole)
    await bench.check(await bench.ask(), ok)
    await bench.gateway.logWith({ event: 'upstream_unasked', upstream: 'sim', place: 'behind_answer' })
    bench.gateway.rest()
    await bench.check(await bench.ask(), ok)
    const [first, second] = bench.upstream.requests
    assert.notEqual(first!.connection, second!.connection)
  },
)

row(
  'F-U32',
  'an event or a line above 8 MiB cuts the stream; empty data lines do not hold the loop',
  { isSlow: true },
  async (bench) => {
    for (const piece of [`data: ${'a'.repeat(9 * 1_048_576)}`, `${'a'.repeat(9 * 1_048_576)}`]) {
      bench.upstream.play(stream([...bench.shown, piece], { end: false }))
      await bench.check(await bench.ask({ stream: true }), cut('upstream_oversize'))
    }
    bench.upstream.play(stream([...bench.shown, 'data:\n\n'.repeat(100_000), ...bench.rest]))
    const got = await bench.ask({ stream: true })
    assert.equal(got.status, 200)
  },
)

row('F-U33', 'a JSON answer above 32 MiB is a 502, and the upstream is stopped', { isSlow: true }, async (bench) => {
  bench.upstream.play(async (socket) => {
    socket.write(head(200, { ...json, 'content-length': `${1024 * 1_048_576}` }))
    const piece = Buffer.alloc(1_048_576, 0x20)
    while (!socket.destroyed) await new Promise<unknown>((done) => socket.write(piece, done))
  })
  const closed = bench.upstream.closed
  await bench.check(await bench.ask(), failed('upstream_oversize'))
  await until(() => bench.upstream.closed > closed)
})

row(
  'F-U34',
  'Y1 an answer that is compressed unasked is decompressed, whole, streamed and refused',
  {},
  async (bench, way) => {
    const text = frames[way.model].join('')
    const refusal = JSON.stringify(errorOf(way.model, 'invalid_request_error', 'Bad field'))
    for (const [coding, pack] of Object.entries(packers)) {
      const headers = { 'content-encoding': coding }
      bench.upstream.play(sent(pack(JSON.stringify(answers[way.model])), 200, { ...json, ...headers }))
      await bench.check(await bench.ask(), ok)
      const bytes = pack(text)
      for (const pieces of [[bytes], Array.from(bytes, (byte) => Buffer.from([byte]))]) {
        bench.upstream.play(stream(pieces, { headers }))
        await bench.check(await bench.ask({ stream: true }), ok)
      }
      bench.upstream.play(sent(pack(refusal), 400, { ...json, ...headers }))
      const got = await bench.ask()
      assert.match(got.text, /Bad field/)
      await bench.check(got, { client: 400, ledger: 'none', log: { outcome: 'refused', cause: 'upstream_400' } })
    }
  },
)

row('F-U34', 'an answer of an unknown coding, or that is not what its coding says, is a 502', {}, async (bench) => {
  for (const coding of ['gzip, gzip', 'compress', ...Object.keys(packers)])
    await both(bench, whole(canary, 200, { 'content-encoding': coding }), failed('upstream_protocol'))
  bench.upstream.play(sent(Buffer.from(canary), 400, { 'content-encoding': 'compress' }))
  const got = await bench.ask()
  assert.doesNotMatch(got.text, new RegExp(canary))
  await bench.check(got, { client: 400, ledger: 'none', log: { outcome: 'refused', cause: 'upstream_400' } })
})

row('F-U34', 'a compressed stream that breaks off is cut, and billed by the evidence', {}, async (bench) => {
  for (const [coding, pack] of Object.entries(packers)) {
    const bytes = pack(bench.shown.join(''), true)
    bench.upstream.play(async (socket, request) => {
      await stream([bytes], { end: false, headers: { 'content-encoding': coding } })(socket, request)
      socket.end()
    })
    await bench.check(await bench.ask({ stream: true }), cut('upstream_reset'))
  }
})

row(
  'F-U34',
  'a bomb is given up at the limits of an answer that is not compressed',
  { isSlow: true },
  async (bench, way) => {
    const blank = Buffer.alloc(40 * 1_048_576, 0x20)
    for (const [coding, pack] of Object.entries(packers)) {
      const headers = { 'content-encoding': coding }
      bench.upstream.play(sent(pack(blank), 200, { ...json, ...headers }))
      await bench.check(await bench.ask(), failed('upstream_oversize'))
      const event = pack(Buffer.concat([Buffer.from(frames[way.model][0]!), Buffer.from('data: '), blank]))
      bench.upstream.play(stream([event], { headers }))
      const got = await bench.ask({ stream: true })
      assert.equal(got.status, 502)
      bench.upstream.play(sent(pack(blank), 400, { ...json, ...headers }))
      assert.equal((await bench.ask()).status, 400)
    }
  },
)

row(
  'F-U35',
  'events that are cut at every byte, with any line ends and a mark before them, come out the same',
  { isSlow: true },
  async (bench, way) => {
    const text = frames[way.model].join('')
    bench.upstream.play(stream([text]))
    const plain = await bench.ask({ stream: true })
    await bench.check(plain, ok)
    const bytes = Buffer.from(text)
    const rough: (string | Buffer)[][] = [
      Array.from(bytes, (byte) => Buffer.from([byte])),
      [text.replaceAll('\n', '\r\n')],
      [text.replaceAll('\n', '\r')],
      [`\ufeff${text}`],
    ]
    for (const pieces of rough) {
      bench.upstream.play(stream(pieces))
      const got = await bench.ask({ stream: true })
      assert.equal(shapeOf(got.text), shapeOf(plain.text))
      await bench.check(got, ok)
    }
    // The network cuts them too.
    bench.network.play({ down: { slice: 7 } })
    bench.upstream.play(stream([text]))
    const sliced = await bench.ask({ stream: true, to: 'far' })
    assert.equal(shapeOf(sliced.text), shapeOf(plain.text))
    await bench.check(sliced, ok)
  },
)

row(
  'F-U36',
  'unknown events and fields, odd indexes and deltas for closed blocks leave a well-formed answer',
  {},
  async (bench, way) => {
    const odd: Record<string, string[]> = {
      messages: [named({ type: 'surprise', index: 7 })],
      chat: [chunk({ surprise: 1, choices: [{ index: 0, delta: { surprise: 'x' }, finish_reason: null }] })],
      responses: [named({ type: 'response.surprise', sequence_number: 99, output_index: 9 })],
    }
    bench.upstream.play(stream([...bench.shown, ...odd[way.model]!, ...bench.rest]))
    await bench.check(await bench.ask({ stream: true }), ok)
  },
)

row(
  'F-U37',
  'arguments that are no JSON, or cut within an escape, come as they were made, and fail a messages stream (Y5)',
  {},
  async (bench, way) => {
    for (const said of ['{"a": "\\ud83', '{"a": nothing}', '[1, 2]']) {
      bench.upstream.play(stream(callOf(way, said)))
      const { id, text } = await bench.ask({ stream: true, more: toolOf(way) })
      const isFailed = way.client === 'messages'
      if (isFailed) assert.ok(said.startsWith(argumentsIn(text)), text)
      else assert.equal(argumentsIn(text), said)
      assert.equal(/^event: error$/m.test(text), isFailed, text)
      assert.equal(/content_block_stop|message_stop/.test(text), false, text)
      const log = isFailed ? cut(/upstream_/).log : ok.log
      await bench.check({ id }, { client: 'gone', ledger: isFailed ? 'evidence' : 'final', log })
    }
  },
)

row('F-U38', 'no usage at all: a whole answer, estimated, marked in its entry', {}, async (bench, way) => {
  bench.upstream.play(stream(withUsage(way, undefined)))
  await bench.check(await bench.ask({ stream: true }), {
    client: 'whole',
    ledger: 'evidence',
    log: { outcome: 'ok', usage_source: 'estimated' },
  })
})

row('F-U39', 'usage that falls: the last value of each counter counts', {}, async (bench, way) => {
  const all = frames[way.model]
  const first = {
    messages: { output_tokens: 50 },
    chat: { prompt_tokens: 9, completion_tokens: 50, total_tokens: 59 },
    responses: {},
  }
  const early: Record<string, string[]> = {
    messages: [
      named({ type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: first.messages }),
    ],
    chat: [chunk({ choices: [], usage: first.chat })],
    responses: [],
  }
  bench.upstream.play(stream([...bench.shown, ...early[way.model]!, ...all.slice(bench.shown.length)]))
  const line = await bench.check(await bench.ask({ stream: true }), ok)
  assert.equal((line['usage'] as { output: number }).output, 3)
})

row('F-U40', 'usage that is negative, fractional, text or huge is never a credit', {}, async (bench, way) => {
  for (const bad of [-5, 0.5, '7', 1e300]) {
    bench.upstream.play(stream(withUsage(way, bad)))
    const got = await bench.ask({ stream: true })
    const line = await bench.check(got, { client: 'whole', ledger: 'evidence', log: { outcome: 'ok' } })
    assert.ok((line['flags'] as string[]).includes('usage_invalid'), `${bad}: ${line['flags']}`)
  }
})

row(
  'F-U41',
  'output far above the cap is believed up to twice the cap, beyond that estimated and flagged',
  {},
  async (bench, way) => {
    const cap = { messages: { max_tokens: 10 }, chat: { max_tokens: 10 }, responses: { max_output_tokens: 10 } }[
      way.client
    ]
    bench.upstream.play(stream(withUsage(way, 20)))
    await bench.check(await bench.ask({ stream: true, more: cap }), ok)
    bench.upstream.play(stream(withUsage(way, 5_000)))
    const line = await bench.check(await bench.ask({ stream: true, more: cap }), {
      client: 'whole',
      ledger: 'evidence',
      log: { outcome: 'ok' },
    })
    assert.ok((line['flags'] as string[])?.length > 0)
    assert.ok((line['usage'] as { output: number }).output <= 20)
  },
)

row('F-U42', 'an upstream that leaves the configuration: its streams end normally', {}, async (bench) => {
  let socket!: Socket
  bench.upstream.play(async (raw, request) => {
    socket = raw
    await stream(bench.shown, { end: false })(raw, request)
  })
  const client = bench.client({ stream: true })
  await client.saw('Hé')
  bench.gateway.reload({ upstreams: { ...bench.upstreams, sim: { base_url: 'http://127.0.0.1:9', accounts: [key] } } })
  for (const frame of bench.rest) writeChunk(socket, frame)
  socket.write('0\r\n\r\n')
  await bench.check(await client.got, ok)
  bench.gateway.reload({ upstreams: bench.upstreams })
})

row('F-U45', 'what comes after an upstream was given up is discarded', {}, async (bench) => {
  let late!: Socket
  bench.upstream.play((socket) => {
    late = socket
  })
  const first = bench.client({ stream: true })
  await bench.isAsked()
  bench.upstream.play(bench.good.stream)
  bench.gateway.advance(300_000)
  await bench.check(await first.got, failed('upstream_ttfb_timeout'))
  const second = bench.client({ stream: true })
  late.write(`${head(200, { ...json, 'content-length': '20' })}${canary}`)
  const got = await second.got
  assert.doesNotMatch(got.text, new RegExp(canary))
  await bench.check(got, ok)
})

row('F-U46', 'ids, hosts, cookies and headers of the upstream are not seen by the client', {}, async (bench) => {
  const headers = {
    server: canary,
    via: canary,
    'set-cookie': canary,
    'x-ratelimit-remaining-requests': canary,
    'request-id': canary,
    'x-request-id': canary,
    'openai-organization': canary,
  }
  const text = JSON.stringify(answers[bench.way.model])
  const told = { ...json, 'content-length': `${Buffer.byteLength(text)}`, ...headers }
  bench.upstream.play((socket) => void socket.write(head(200, told) + text))
  const got = await bench.ask()
  assert.doesNotMatch(JSON.stringify(got.headers), new RegExp(canary))
  await bench.check(got, ok)
})

row('F-U47', 'an error text with our key, a host, an address or a region is a generic text', {}, async (bench, way) => {
  for (const secret of [
    'upstream-key-a',
    `host ${canary}.internal`,
    'at 10.1.2.3',
    `see https://${canary}.example/x`,
    'in us-east-1',
  ]) {
    bench.upstream.play(whole(errorOf(way.model, 'invalid_request_error', `It failed, ${secret}.`), 400))
    const got = await bench.ask()
    assert.doesNotMatch(got.text, /upstream-key|10\.1\.2\.3|us-east/)
    await bench.check(got, { client: 400, ledger: 'none', log: { outcome: 'refused', code: 'invalid_request' } })
  }
})

/** What is looked at in events of all three wires. */
type SomeEvent = Record<string, unknown> & {
  message: Record<string, unknown>
  response: Record<string, unknown>
  delta?: string & { partial_json?: string }
  choices?: { delta?: { tool_calls?: { function?: { arguments?: string } }[] } }[]
}

const key = { name: 'a', key: 'upstream-key-a' }

function errorEvent({ model }: Way): string {
  return `event: error\ndata: ${JSON.stringify(errorOf(model, 'api_error', `at https://${canary}.example`))}\n\n`
}

/** Two streams of one answer differ in what is made from the request's id and in how the text is spread. */
function shapeOf(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .replaceAll('\r', '\n')
    .replace(/"(?:id|item_id)":"[^"]+"/g, '"id"')
    .replace(/far-/g, 'native-')
    .replace(/"input_tokens":\d+/, '')
    .replace(/"created(?:_at)?":[\d.]+/g, '"created"')
}

/** The stream with this as its output tokens; undefined: without any usage. */
function withUsage({ model }: Way, output: unknown): string[] {
  const usage = {
    messages: { input_tokens: 5, cache_read_input_tokens: 4, cache_creation_input_tokens: 0, output_tokens: output },
    chat: { prompt_tokens: 9, completion_tokens: output, prompt_tokens_details: { cached_tokens: 4 } },
    responses: { input_tokens: 9, input_tokens_details: { cached_tokens: 4 }, output_tokens: output },
  }[model]
  return frames[model].flatMap((frame) => {
    const read = JSON.parse(/^data: (\{.*)$/m.exec(frame)?.[1] ?? 'null') as SomeEvent | null
    if (read === null) return [frame]
    const told = output === undefined ? undefined : usage
    if (model === 'chat') return !('usage' in read) ? [frame] : told ? [chunk({ choices: [], usage: told })] : []
    if (read['type'] === 'message_start') read.message['usage'] = told && { ...told, output_tokens: 0 }
    if (read['type'] === 'message_delta') read['usage'] = told
    if (read['type'] === 'response.completed') read.response['usage'] = told ?? null
    return [named(read)]
  })
}

/** A stream that calls a tool with these arguments, in two pieces. */
function callOf({ model }: Way, said: string): string[] {
  const [first, second] = [said.slice(0, -3), said.slice(-3)]
  if (model === 'messages') {
    const [start, , , , stop, delta, end] = frames.messages
    const block = { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }
    const piece = (text: string) =>
      named({ type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: text } })
    const open = named({ type: 'content_block_start', index: 0, content_block: block })
    return [start!, open, piece(first), piece(second), stop!, delta!.replace('end_turn', 'tool_use'), end!]
  }
  if (model === 'chat') {
    const call = (more: object) =>
      chunk({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, ...more }] }, finish_reason: null }] })
    return [
      frames.chat[0]!,
      call({ id: 'call_1', type: 'function', function: { name: 'look', arguments: first } }),
      call({ function: { arguments: second } }),
      chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] }),
      ...frames.chat.slice(4),
    ]
  }
  const item = {
    type: 'function_call',
    id: 'fc_1',
    call_id: 'call_1',
    name: 'look',
    arguments: '',
    status: 'in_progress',
  }
  const done = { ...item, arguments: said, status: 'completed' }
  const event = (type: string, sequence_number: number, more: object) =>
    named({ type: `response.${type}`, sequence_number, output_index: 0, ...more })
  return [
    frames.responses[0]!,
    event('output_item.added', 1, { item }),
    event('function_call_arguments.delta', 2, { item_id: 'fc_1', delta: first }),
    event('function_call_arguments.delta', 3, { item_id: 'fc_1', delta: second }),
    event('function_call_arguments.done', 4, { item_id: 'fc_1', arguments: said, name: 'look' }),
    event('output_item.done', 5, { item: done }),
    named({ type: 'response.completed', sequence_number: 6, response: { ...answers.responses, output: [done] } }),
  ]
}

function toolOf({ client }: Way): Record<string, unknown> {
  const schema = { type: 'object', properties: {} }
  if (client === 'messages') return { tools: [{ name: 'look', input_schema: schema }] }
  if (client === 'chat') return { tools: [{ type: 'function', function: { name: 'look', parameters: schema } }] }
  return { tools: [{ type: 'function', name: 'look', parameters: schema, strict: false }] }
}

/** The arguments of a told call, put together from their deltas. */
function argumentsIn(text: string): string {
  const events = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => JSON.parse(data!) as SomeEvent)
  return events
    .map((event) => {
      if (event['type'] === 'response.function_call_arguments.delta') return event.delta ?? ''
      return event.delta?.partial_json ?? event.choices?.[0]?.delta?.tool_calls?.[0]?.function?.arguments ?? ''
    })
    .join('')
}
