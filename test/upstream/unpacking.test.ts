import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import test from 'node:test'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { frameType } from '../../src/clouds/event-frames.ts'
import type { Flight, UpstreamListener } from '../../src/upstream/target.ts'
import { Unpacking } from '../../src/upstream/unpacking.ts'
import { exceptionOf, frameOf } from '../support/event-frames.ts'
import { until } from '../support/waiting.ts'

/* A flight whose answer is decompressed (Y1): its pace and its end, beside the rows F-U34 of the faults. */

type Told = { flight: Unpacking; calls: string[]; pieces: Buffer[]; told: string[] }

function fly(coding: string, type = 'text/event-stream'): Told {
  const [calls, told]: string[][] = [[], []]
  const pieces: Buffer[] = []
  const note = (call: string) => () => void calls!.push(call)
  const under: Flight = {
    abort: note('abort'),
    pause: note('pause'),
    resume: note('resume'),
    isSent: () => true,
    wasWritten: () => true,
  }
  const listener: UpstreamListener = {
    onHead: (_status, _type, headers) => void told!.push(`head ${headers.get('content-encoding')} ${headers.get('x')}`),
    onData: (piece) => void pieces.push(piece),
    onEnd: () => void told!.push('end'),
    onError: ({ cause }) => void told!.push(cause),
  }
  const flight = new Unpacking(listener)
  flight.over(under)
  flight.onHead(200, type, new Map(Object.entries({ 'content-encoding': coding, x: 'y' })))
  return { flight, calls: calls!, pieces, told: told! }
}

test('Y1 a paused flight unpacks no more of a decompression bomb than its buffers hold, and continues when resumed', async () => {
  const { flight, calls, pieces, told } = fly('gzip')
  const bytes = Buffer.concat([gzipSync(Buffer.alloc(8 * 1_048_576)), gzipSync(randomBytes(300_000))])
  flight.pause()
  flight.onData(bytes)
  flight.onEnd()
  await until(() => calls.length === 2, 'the connection is paused by the client, and for what waits')
  assert.deepEqual([pieces.length, calls], [0, ['pause', 'pause']])
  flight.resume()
  await until(() => told.includes('end'), 'the end')
  assert.equal(Buffer.concat(pieces).length, 8 * 1_048_576 + 300_000)
  assert.ok(pieces.every(({ length }) => length <= 65_536))
  assert.deepEqual([told, calls.at(-1)], [['head undefined y', 'end'], 'resume'])
  assert.ok(flight.isSent() && flight.wasWritten())
})

test('Y1 a cancelled flight delivers nothing more', async () => {
  const { flight, calls, pieces, told } = fly(' GZIP')
  flight.onData(gzipSync(Buffer.alloc(1_048_576)))
  await until(() => pieces.length > 0, 'the first piece')
  const { length } = pieces
  flight.abort()
  flight.onEnd()
  const other = fly('gzip')
  other.flight.onData(gzipSync(Buffer.alloc(1_048_576)))
  other.flight.onEnd()
  await until(() => other.told.includes('end'), 'another flight is over')
  assert.deepEqual([pieces.length, told, calls.at(-1)], [length, ['head undefined y'], 'abort'])
})

test('Y1 bytes that are invalid in their coding end the flight, and the failure follows the bytes before it', async () => {
  const { flight, calls, told } = fly('br')
  flight.onData(Buffer.alloc(64, 0xff))
  await until(() => told.length === 2, 'the fault')
  assert.deepEqual([told, calls], [['head undefined y', 'upstream_protocol'], ['abort']])
  const broken = fly('gzip')
  broken.flight.onData(gzipSync(Buffer.alloc(99)).subarray(0, 16))
  broken.flight.onError({ cause: 'upstream_reset', isReuseRace: false })
  await until(() => broken.told.length === 2, 'the fault')
  assert.deepEqual(broken.told[1], 'upstream_reset')
})

/** Each coding, and both forms of `deflate`. */
const packings: [coding: string, pack: (bytes: Buffer) => Buffer][] = [
  ['br', brotliCompressSync],
  ['deflate', deflateSync],
  ['deflate', deflateRawSync],
  ['zstd', zstdCompressSync],
  ['gzip', gzipSync],
]

test('Y1 bytes after the end of a compressed answer leave no open connection without an owner', async () => {
  const whole = Buffer.from('data: {"a":1}\n\n'.repeat(99))
  for (const [coding, pack] of packings)
    for (const rest of ['xxxx', 'x'.repeat(70_000)]) {
      const { flight, calls, pieces, told } = fly(coding)
      flight.onData(pack(whole))
      await until(() => pieces.length > 0, coding)
      flight.onData(Buffer.from(rest))
      await until(() => told.length > 1, 'the end, or the fault')
      assert.ok(calls.includes('abort'), coding)
      assert.deepEqual([Buffer.concat(pieces), told.length], [whole, 2])
    }
})

test('Y1 RFC 1952 2.2, RFC 8878 3: consecutive members are one answer, and other bytes after a gzip member are an error', async () => {
  const parts = ['data: 1\n\n', '', 'data: 2\n\n'].map((part) => Buffer.from(part))
  for (const [coding, pack] of packings.filter(([coding]) => coding === 'gzip' || coding === 'zstd')) {
    const bytes = Buffer.concat(parts.map(pack))
    for (let at = 1; at <= bytes.length; at++) {
      const { flight, pieces, told } = fly(coding)
      flight.onData(bytes.subarray(0, at))
      if (at % 2) await new Promise((resolve) => void setImmediate(resolve))
      if (at < bytes.length) flight.onData(bytes.subarray(at))
      flight.onEnd()
      await until(() => told.length > 1, coding)
      assert.deepEqual([told[1], Buffer.concat(pieces)], ['end', Buffer.concat(parts)], `${coding} ${at}`)
    }
  }
  const { flight, told } = fly('gzip')
  flight.onData(Buffer.concat([gzipSync('Hi'), Buffer.from('xx')]))
  await until(() => told.length > 1, 'the fault')
  assert.equal(told[1], 'upstream_protocol')
})

test('Y1 a connection is kept after a compressed answer, with or without bytes after its end', async () => {
  for (const [coding, pack] of packings)
    for (const rest of coding === 'gzip' ? ['', '\0\0'] : ['', 'xx']) {
      const { flight, calls, told } = fly(coding)
      flight.onData(Buffer.concat([pack(Buffer.from('Hi')), Buffer.from(rest)]))
      flight.onEnd()
      await until(() => told.length > 1, coding)
      assert.deepEqual([told[1], calls.includes('abort')], ['end', false], coding)
    }
})

test('Y1 an answer that is not compressed, contrary to its head, is an error and delivers no garbage', async () => {
  const answers = [
    '{"hello":1}',
    '[{"a":1}]',
    ': ping\n\ndata: {"a":1}\n\n',
    'data: {"a":1}\n\n',
    'event: ping\ndata: {}\n\n',
    'id: 1\n\n',
  ]
  for (const [coding, pack] of packings)
    for (const answer of answers) {
      const { flight, pieces, told } = fly(coding)
      flight.onData(Buffer.from(answer))
      flight.onEnd()
      await until(() => told.length > 1, answer)
      assert.deepEqual([told[1], pieces.length], ['upstream_protocol', 0], `${coding}: ${answer}`)
      const packed = fly(coding)
      packed.flight.onData(pack(Buffer.from(answer)))
      packed.flight.onEnd()
      await until(() => packed.told.length > 1, answer)
      assert.deepEqual([packed.told[1], packed.pieces.join('')], ['end', answer])
    }
})

test('Y1 an answer without a coding, or with an unknown one, is delivered unchanged', () => {
  for (const coding of ['', 'identity', 'compress', 'gzip, gzip', 'constructor']) {
    const { flight, pieces, told } = fly(coding)
    flight.onData(Buffer.from('Hi'))
    flight.onEnd()
    const empty = fly(coding)
    empty.flight.onError({ cause: 'upstream_reset', isReuseRace: false })
    assert.deepEqual([pieces.join(''), told], ['Hi', [`head ${coding} y`, 'end']])
    assert.deepEqual(empty.told[1], 'upstream_reset')
  }
  const empty = fly('gzip')
  empty.flight.onEnd()
  assert.deepEqual(empty.told, ['head undefined y', 'end'])
})

test('clouds 2 an error frame or an exception becomes an error event, whatever it leaves out', () => {
  for (const [frame, error] of [
    [frameOf({ ':message-type': 'error' }, ''), { type: '', message: '' }],
    [
      frameOf({ ':message-type': 'error', ':error-code': 'busy', ':error-message': 'no' }, ''),
      { type: 'Busy', message: 'no' },
    ],
    [exceptionOf('throttlingException', {}), { type: 'ThrottlingException', message: '' }],
    [
      exceptionOf('modelStreamErrorException', { message: 'x', originalStatusCode: 529, originalMessage: 'full' }),
      { type: 'ModelStreamErrorException', message: 'full', status: 529 },
    ],
    [
      exceptionOf('modelStreamErrorException', { message: 'x', originalStatusCode: '529' }),
      { type: 'ModelStreamErrorException', message: 'x' },
    ],
  ] as const) {
    const { flight, pieces, told } = fly('identity', frameType)
    flight.onData(frame)
    flight.onEnd()
    assert.equal(pieces.join(), `event: error\ndata: ${JSON.stringify({ type: 'error', error })}\n\n`)
    assert.equal(told.at(-1), 'end')
  }
})
