import assert from 'node:assert/strict'
import test from 'node:test'
import { Secret } from '../../src/config/config.ts'
import { GatewayError } from '../../src/errors.ts'
import { createPoolMemory } from '../../src/upstream/pool-memory.ts'
import { collect } from '../support/garbage.ts'
import { answers, frames } from '../support/native.ts'
import { until } from '../support/waiting.ts'
import { type Rig, type RigOptions, startRig } from './rig.ts'

const bytes = (text: string) => Buffer.from(text)
const json = new Map([['content-type', 'application/json']])
const sse = new Map([['content-type', 'text/event-stream']])

/** What the request came to: the code its client is told, and the cause in the log. */
function endOf({ end, record }: Rig): [code: string | undefined, cause: string | undefined] {
  return [end?.error instanceof GatewayError ? end.error.code : end?.error?.message, record.cause]
}

/** A request whose upstream has said so much of an event stream. */
function streaming(options: RigOptions, ...told: string[]): Rig {
  const rig = startRig({ stream: true, ...options })
  rig.sent[0]!.listener.onHead(200, 'text/event-stream', sse)
  for (const text of told) rig.sent[0]!.listener.onData(bytes(text))
  return rig
}

test('U2 reliability §3 a status that is not an answer is reported by its meaning', async () => {
  const ends: [status: number, ...end: [string, string]][] = [
    [201, 'upstream_error', 'upstream_protocol'],
    [204, 'upstream_error', 'upstream_protocol'],
    [206, 'upstream_error', 'upstream_protocol'],
    [300, 'upstream_error', 'upstream_redirect'],
    [307, 'upstream_error', 'upstream_redirect'],
    [399, 'upstream_error', 'upstream_redirect'],
    [400, 'invalid_request', 'upstream_400'],
    [401, 'no_upstream_account', 'upstream_401'],
    [429, 'rate_limit_exceeded', 'upstream_429'],
    [500, 'upstream_error', 'upstream_500'],
  ]
  for (const [status, ...end] of ends) {
    const rig = startRig()
    const { listener } = rig.sent[0]!
    listener.onHead(status, 'application/json', json)
    listener.onEnd()
    await rig.turn()
    assert.deepEqual(endOf(rig), end, `${status}`)
    assert.deepEqual([rig.debits.length, rig.released], [0, 1], `${status}`)
  }
})

test('Y1 an answer with any 2xx is read by its first bytes, and is a 200 for the client', async () => {
  for (const status of [200, 201, 202, 203, 206]) {
    const rig = startRig()
    const { listener } = rig.sent[0]!
    listener.onHead(status, 'application/json', json)
    listener.onData(bytes(JSON.stringify(answers.chat)))
    listener.onEnd()
    await rig.turn()
    assert.deepEqual([rig.client.reply?.status, ...endOf(rig)], [200, undefined, undefined], `${status}`)
  }
})

test('P2 an answer is read unchanged only if it has no content coding', async () => {
  for (const [encoding, isRead] of [
    [undefined, true],
    // An empty list (RFC 9110 5.6.1.2).
    ['', true],
    ['identity', true],
    ['gzip', false],
  ] as const) {
    const rig = startRig()
    const { listener } = rig.sent[0]!
    listener.onHead(
      200,
      'application/json',
      new Map([...json, ...(encoding === undefined ? [] : [['content-encoding', encoding] as const])]),
    )
    listener.onData(bytes(JSON.stringify(answers.chat)))
    listener.onEnd()
    await rig.turn()
    const told = `${encoding}`
    assert.equal(rig.client.reply?.status, isRead ? 200 : undefined, told)
    assert.deepEqual(endOf(rig), isRead ? [undefined, undefined] : ['upstream_error', 'upstream_protocol'], told)
    assert.equal(rig.sent[0]!.isAborted, !isRead, told)
  }
})

test('reliability §3 exactly 64 KiB of a refusal are read', async () => {
  const rig = startRig()
  const { listener } = rig.sent[0]!
  listener.onHead(400, 'application/json', json)
  listener.onData(Buffer.alloc(65_536, ' '))
  await rig.turn()
  assert.equal(rig.end, undefined)
  listener.onData(bytes(' '))
  await rig.turn()
  assert.deepEqual(endOf(rig), ['invalid_request', 'upstream_400'])
  assert.ok(rig.sent[0]!.isAborted)
})

test('F-U33 a whole answer of 32 MiB is read; one byte more cancels it', async () => {
  const blank = Buffer.alloc(1_048_576, ' ')
  const answer = bytes(JSON.stringify(answers.chat))
  for (const more of ['', ' ']) {
    const rig = startRig()
    const { listener } = rig.sent[0]!
    listener.onHead(200, 'application/json', json)
    listener.onData(answer)
    for (let piece = 0; piece < 31; piece++) listener.onData(blank)
    listener.onData(blank.subarray(answer.length))
    if (more !== '') listener.onData(bytes(more))
    listener.onEnd()
    await rig.turn()
    if (more === '') assert.equal(rig.client.reply?.status, 200)
    else assert.deepEqual(endOf(rig), ['upstream_error', 'upstream_oversize'])
  }
})

test('F-U33 a whole answer that comes octet by octet takes no more memory than its bytes, and is read', async () => {
  const rig = startRig()
  const { listener } = rig.sent[0]!
  listener.onHead(200, 'application/json', json)
  const count = 60_000
  const answer = bytes(JSON.stringify(answers.chat).padEnd(count, ' '))
  collect()
  const before = process.memoryUsage().heapUsed
  for (const octet of answer) listener.onData(Buffer.from([octet]))
  collect()
  const kept = process.memoryUsage().heapUsed - before
  assert.ok(kept < 10 * count, `${kept} bytes are kept`)
  listener.onEnd()
  await rig.turn()
  assert.equal(rig.client.reply?.status, 200)
})

test('F-U7 F-U8 reliability §3 each silence has its limit, to the millisecond, and received bytes restart it', async () => {
  const cases: { name: string; limitMs: number; options?: RigOptions; begin?: (rig: Rig) => void; cause: string }[] = [
    { name: 'no head of a stream', limitMs: 300_000, options: { stream: true }, cause: 'upstream_ttfb_timeout' },
    { name: 'no head of a body', limitMs: 600_000, cause: 'upstream_ttfb_timeout' },
    {
      name: 'nothing behind the head',
      limitMs: 120_000,
      begin: ({ sent }) => sent[0]!.listener.onHead(200, 'application/json', json),
      cause: 'upstream_stall',
    },
    {
      name: 'nothing behind a piece of the body',
      limitMs: 120_000,
      begin(rig) {
        rig.sent[0]!.listener.onHead(200, 'application/json', json)
        rig.advance(100_000)
        rig.sent[0]!.listener.onData(bytes('{'))
      },
      cause: 'upstream_stall',
    },
  ]
  for (const { name, limitMs, options, begin, cause } of cases) {
    const rig = startRig(options)
    begin?.(rig)
    rig.advance(limitMs - 1)
    await rig.turn()
    assert.equal(rig.end, undefined, name)
    rig.advance(1)
    await rig.turn()
    assert.deepEqual(endOf(rig), ['upstream_error', cause], name)
    assert.ok(rig.sent[0]!.isAborted, name)
    assert.equal(rig.debits.length, 0, name)
  }
})

test('F-U15 comments do not count as progress; events and the bytes of a body do', async () => {
  for (const [name, options, text, isStuck] of [
    ['comments', { stream: true }, ': still here\n\n', true],
    ['comments for a translation', { client: 'messages', stream: true }, ': still here\n\n', true],
    ['comments for a fold', { client: 'messages' }, ': still here\n\n', true],
    ['events', { stream: true }, frames.chat[1]!, false],
    ['events for a translation', { client: 'messages', stream: true }, frames.chat[1]!, false],
    ['events for a fold', { client: 'messages' }, frames.chat[1]!, false],
    ['a body', {}, ' ', false],
  ] as const) {
    const rig = startRig(options)
    const { listener } = rig.sent[0]!
    if (name === 'a body') listener.onHead(200, 'application/json', json)
    else listener.onHead(200, 'text/event-stream', sse)
    for (let minute = 1; minute <= 5; minute++) {
      assert.equal(rig.end, undefined, name)
      rig.advance(60_000)
      listener.onData(bytes(text))
      await rig.turn()
    }
    assert.equal(rig.record.cause, isStuck ? 'upstream_stall' : undefined, name)
    assert.equal(rig.sent[0]!.isAborted, isStuck, name)
  }
})

test('m22 a lingering upstream is released as soon as it closes or breaks off, and its further bytes are ignored', async () => {
  for (const how of ['closes', 'breaks off'] as const) {
    const rig = streaming({}, ...frames.chat)
    await rig.turn()
    assert.deepEqual([rig.end, rig.gateway.lingering.size], [{ error: undefined }, 1], how)
    const { text } = rig.client
    const { listener } = rig.sent[0]!
    listener.onData(bytes(frames.chat[1]!))
    rig.advance(0)
    assert.equal(rig.gateway.lingering.size, 1, how)
    if (how === 'closes') listener.onEnd()
    else listener.onError({ cause: 'upstream_reset', isReuseRace: false })
    rig.advance(0)
    assert.equal(rig.gateway.lingering.size, 0, how)
    assert.deepEqual([rig.client.text, rig.debits.length, rig.record.outcome, rig.bugs], [text, 1, 'ok', []], how)
    assert.equal(rig.sent[0]!.isAborted, false, how)
  }
})

test('H-F4 a lingering upstream keeps neither its answer nor the request in memory', async () => {
  const rig = startRig({ stream: true })
  const openStream = rig.exchange.openStream.bind(rig.exchange)
  let relay: WeakRef<object> | undefined
  rig.exchange.openStream = () => {
    const opened = openStream()
    relay = new WeakRef(opened)
    return opened
  }
  rig.sent[0]!.listener.onHead(200, 'text/event-stream', sse)
  rig.sent[0]!.listener.onData(bytes(frames.chat.join('')))
  await rig.turn()
  assert.equal(rig.gateway.lingering.size, 1)
  await until(() => {
    collect()
    return relay!.deref() === undefined
  }, 'the answer is let go')
})

test('reliability §1.1 an attempt that is over reports nothing more, whatever its upstream still sends', async () => {
  const cases: Record<string, (rig: Rig) => void> = {
    'a head': ({ sent }) => sent[0]!.listener.onHead(200, 'application/json', json),
    'a refusal': ({ sent }) => sent[0]!.listener.onHead(500, 'application/json', json),
    'a piece': ({ sent }) => sent[0]!.listener.onData(bytes('{')),
    'an end': ({ sent }) => sent[0]!.listener.onEnd(),
    'an error': ({ sent }) => sent[0]!.listener.onError({ cause: 'upstream_reset', isReuseRace: true }),
    'a silence': (rig) => rig.advance(10_000_000),
  }
  for (const [name, say] of Object.entries(cases)) {
    const rig = startRig()
    rig.sent[0]!.listener.onError({ cause: 'upstream_tls', isReuseRace: false })
    await rig.turn()
    const [end, cause] = endOf(rig)
    let reads = 0
    const read = (): never => {
      reads++
      throw new Error('nobody is there to read for')
    }
    Object.assign(rig.exchange, { readWhole: read, openStream: read })
    say(rig)
    await rig.turn()
    assert.deepEqual(endOf(rig), [end, cause], name)
    assert.deepEqual([rig.sent.length, rig.debits.length, rig.released, rig.bugs], [1, 0, 1, []], name)
    assert.equal(reads, 0, name)
  }
})

test('I10 a translated stream that closes normally without its last event has failed, and what was shown is billed', async () => {
  const rig = streaming({ client: 'messages' }, ...frames.chat.slice(0, 2))
  rig.sent[0]!.listener.onEnd()
  await rig.turn()
  assert.match(rig.client.text, /event: error/)
  assert.doesNotMatch(rig.client.text, /message_stop/)
  assert.deepEqual([rig.client.isEnded, rig.debits[0]?.outcome], [true, 'upstream_cut'])
})

test('U1 a second head of the same answer changes nothing', async () => {
  const rig = startRig()
  const { listener } = rig.sent[0]!
  listener.onHead(200, 'application/json', json)
  listener.onHead(500, 'application/json', json)
  listener.onData(bytes(JSON.stringify(answers.chat)))
  listener.onEnd()
  await rig.turn()
  assert.equal(rig.client.reply?.status, 200)
})

test('U1 F-U5 an answer that breaks off after its head has failed, and costs nothing while nothing was shown', async () => {
  for (const options of [{}, { stream: true }, { client: 'messages' }, { client: 'messages', stream: true }]) {
    const rig = startRig(options as RigOptions)
    const { listener } = rig.sent[0]!
    if (options.stream) listener.onHead(200, 'text/event-stream', sse)
    else listener.onHead(200, 'application/json', json)
    listener.onError({ cause: 'upstream_reset', isReuseRace: true })
    await rig.turn()
    assert.deepEqual(endOf(rig), ['upstream_error', 'upstream_reset'])
    assert.deepEqual([rig.sent.length, rig.debits.length], [1, 0], 'it is not asked again')
  }
})

test('U2 F-U16 a refusal that breaks off or ends early is reported as far as it arrived', async () => {
  for (const how of ['ends', 'breaks off'] as const) {
    const rig = startRig()
    const { listener } = rig.sent[0]!
    listener.onHead(400, 'application/json', json)
    listener.onData(bytes('{"error":{"message":"The tool list '))
    listener.onData(bytes('is too long."}}'))
    if (how === 'ends') listener.onEnd()
    else listener.onError({ cause: 'upstream_reset', isReuseRace: false })
    await rig.turn()
    assert.deepEqual(endOf(rig), ['invalid_request', 'upstream_400'], how)
    assert.equal(rig.end?.error?.message, 'The tool list is too long.', how)
  }
})

test('translation 1.2 a folded stream is answered at its last event, and its upstream may then close normally', async () => {
  const rig = startRig({ client: 'messages' })
  const { listener } = rig.sent[0]!
  listener.onHead(200, 'text/event-stream', sse)
  for (const frame of frames.chat.slice(0, -1)) listener.onData(bytes(frame))
  await rig.turn()
  assert.equal(rig.debits.length, 0)
  listener.onData(bytes(frames.chat.at(-1)!))
  await rig.turn()
  assert.equal(rig.client.reply?.status, 200)
  assert.match(rig.client.reply!.body, /Hé 😀/)
  assert.deepEqual([rig.sent[0]!.isAborted, rig.gateway.lingering.size], [false, 1])
})

test('translation 1.2 a folded stream that ends too early, or contains an error, is a 502 and costs nothing', async () => {
  const error = `data: ${JSON.stringify({ error: { message: 'no', type: 'server_error' } })}\n\n`
  for (const [name, told, cause] of [
    ['nothing at all', [], 'upstream_cut'],
    ['half of it', frames.chat.slice(0, 2), 'upstream_cut'],
    ['an error', [frames.chat[0]!, error], 'upstream_error_body'],
  ] as const) {
    const rig = startRig({ client: 'messages' })
    const { listener } = rig.sent[0]!
    listener.onHead(200, 'text/event-stream', sse)
    for (const frame of told) listener.onData(bytes(frame))
    listener.onEnd()
    await rig.turn()
    assert.deepEqual(endOf(rig), ['upstream_error', cause], name)
    assert.equal(rig.debits.length, 0, name)
  }
})

test('Y25 a JSON answer that has begun does not hang, however long its rest takes; one without its first byte does', () => {
  for (const hasBegun of [true, false]) {
    let nowMs = 0
    const memory = createPoolMemory(
      () => nowMs,
      () => 0.5,
    )
    const accounts = ['a', 'b'].map((name) => ({ name, key: new Secret('upstream-key-1'), isEnabled: true }))
    for (let n = 0; n < 4; n++) {
      const { listener } = startRig({ memory, accounts }).sent[0]!
      listener.onHead(200, 'application/json', json)
      if (hasBegun) listener.onData(bytes('{'))
    }
    nowMs += 61_000
    const { snapshot } = startRig({ memory, accounts })
    const rows = snapshot.pool.list([...snapshot.config.catalog.models.values()])
    assert.equal(
      rows.some(({ state }) => state === 'trial'),
      !hasBegun,
    )
  }
})
