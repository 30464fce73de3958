import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import test from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import type { TransportFault } from '../../src/upstream/target.ts'
import { judgeDial } from '../../src/upstream/transport-fault.ts'
import { deafPort } from '../faults/deaf.ts'
import { atEnd } from '../support/at-end.ts'
import { listen } from '../support/listen.ts'
import { gatewayEnd } from '../support/peer.ts'
import { type Answer, startRawUpstream, stream, whole } from '../support/raw-upstream.ts'
import { turn, until } from '../support/waiting.ts'
import { openWay } from './flights.ts'

/** The gateway's end of the connection fails as the operating system or TLS lets it fail. */
function failing(code: string | undefined, message = 'it failed'): Answer {
  const error = code === undefined ? new Error(message) : Object.assign(new Error(message), { code })
  return (socket) => void gatewayEnd(socket).destroy(error)
}

const causes: Record<
  Exclude<TransportFault['cause'], 'upstream_oversize' | 'upstream_proxy'>,
  [fault: string, answer: Answer][]
> = {
  upstream_connect: [
    ['F-U1 ECONNREFUSED', failing('ECONNREFUSED')],
    ['F-U1 EADDRNOTAVAIL', failing('EADDRNOTAVAIL')],
  ],
  upstream_silent: [
    ['F-U7 ETIMEDOUT', failing('ETIMEDOUT')],
    ['F-U7 EHOSTUNREACH', failing('EHOSTUNREACH')],
    ['F-U7 ENETUNREACH', failing('ENETUNREACH')],
  ],
  upstream_dns: [
    ['F-U3 ENOTFOUND', failing('ENOTFOUND')],
    ['F-U3 EAI_AGAIN', failing('EAI_AGAIN')],
  ],
  upstream_tls: [
    ['F-U4 CERT_HAS_EXPIRED', failing('CERT_HAS_EXPIRED')],
    ['F-U4 DEPTH_ZERO_SELF_SIGNED_CERT', failing('DEPTH_ZERO_SELF_SIGNED_CERT')],
    ['F-U4 ERR_TLS_HANDSHAKE_TIMEOUT', failing('ERR_TLS_HANDSHAKE_TIMEOUT')],
    ['F-U4 ERR_SSL_WRONG_VERSION_NUMBER', failing('ERR_SSL_WRONG_VERSION_NUMBER')],
    [
      'F-U4 a certificate that only the text speaks of',
      failing('UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'unable to verify the first certificate'),
    ],
  ],
  upstream_reset: [
    ['F-U5 a reset', (socket) => void socket.resetAndDestroy()],
    ['F-U5 a clean end', (socket) => void socket.end()],
    ['F-U5 ECONNRESET', failing('ECONNRESET')],
    ['F-U5 EPIPE', failing('EPIPE')],
  ],
  no_descriptors: [
    ['B24 F-P11 EMFILE', failing('EMFILE')],
    ['B24 F-P11 ENFILE', failing('ENFILE')],
  ],
  upstream_protocol: [
    ['F-U30 bytes that are no HTTP', (socket) => void socket.write('SSH-2.0\r\n\r\n')],
    ['F-U30 an error with an unknown code', failing('HPE_INVALID_CONSTANT')],
    ['F-U30 a code that only ends like one of TLS', failing('NO_ERR_TLS')],
    ['F-U30 a code that only ends like one of OpenSSL', failing('NO_ERR_SSL')],
    ['F-U30 an error without a code', failing(undefined)],
  ],
}

for (const [cause, faults] of Object.entries(causes)) {
  for (const [name, answer] of faults) {
    test(`${name} on a fresh connection is ${cause}, reported once and not a race (U1)`, async () => {
      const upstream = await startRawUpstream()
      upstream.play(answer)
      const { upstreams, send } = openWay(upstream.url)
      const heard = send()
      await heard.untilOver()
      await upstreams.close()
      const { reason, ...fault } = heard.faults[0]!
      assert.deepEqual([heard.heads, heard.ends, heard.faults.length, fault], [0, 0, 1, { cause, isReuseRace: false }])
      assert.equal(reason !== undefined, cause === 'upstream_tls')
    })
  }
}

for (const [code, syscall, isSecured, fault, isOwn = false] of [
  ['EACCES', 'connect', true, { cause: 'upstream_connect' }],
  ['EINVAL', 'connect', false, { cause: 'upstream_connect' }],
  ['EAI_FAIL', 'getaddrinfo', true, { cause: 'upstream_dns' }],
  ['PATH_LENGTH_EXCEEDED', undefined, true, { cause: 'upstream_tls', reason: 'PATH_LENGTH_EXCEEDED' }, true],
  [undefined, undefined, false, { cause: 'upstream_connect' }],
  ['EMFILE', 'connect', true, { cause: 'no_descriptors' }, true],
  ['ETIMEDOUT', 'connect', true, { cause: 'upstream_connect' }],
  ['EHOSTUNREACH', 'connect', false, { cause: 'upstream_connect' }],
  ['ENETUNREACH', 'connect', false, { cause: 'upstream_connect' }],
] as const) {
  const error = Object.assign(new Error('no'), { code, syscall })
  test(`U1 F-U1 F-U3 F-U4 a connection that cannot be opened because of ${code} in ${syscall} is ${fault.cause}`, () => {
    assert.deepEqual(judgeDial(error, isSecured, false), { ...fault, isReuseRace: false })
  })
  test(`N-F4 ${code} in ${syscall} on the way through a proxy is ${isOwn ? 'no fault of the proxy' : 'upstream_proxy'}`, () => {
    const judged = judgeDial(error, isSecured, true)
    assert.deepEqual(judged, { ...(isOwn ? fault : { cause: 'upstream_proxy' }), isReuseRace: false })
  })
}

test('F-U2 connecting ends at its deadline', async ({ mock }) => {
  const { port } = await deafPort()
  mock.timers.enable({ apis: ['setTimeout'] })
  const heard = openWay(`http://127.0.0.1:${port}`).send()
  await turn()
  mock.timers.tick(4_999)
  await turn()
  assert.deepEqual(heard.faults, [])
  mock.timers.tick(1)
  mock.timers.reset()
  await heard.untilOver()
  assert.deepEqual(heard.faults, [{ cause: 'upstream_connect', isReuseRace: false }])
})

test('F-U1 a port without a listener is upstream_connect', async () => {
  // One that the system never gives: of those that it does, any may be somebody's a moment later.
  const heard = openWay('http://127.0.0.1:9').send()
  await heard.untilOver()
  assert.deepEqual(heard.faults, [{ cause: 'upstream_connect', isReuseRace: false }])
})

test('F-U4 an untrusted certificate is upstream_tls, and no request is sent, whatever the environment says', async () => {
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
  atEnd(() => void delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'])
  // Made for this test by `openssl req -x509`, for a hundred years; the key opens nothing.
  const pem = (name: string) => readFileSync(join(import.meta.dirname, `../fixtures/tls/self-signed.${name}.pem`))
  let bytes = 0
  const server = createTlsServer({ key: pem('key'), cert: pem('cert') }, (socket) => {
    socket.on('data', (chunk) => {
      bytes += chunk.length
    })
  })
  server.on('tlsClientError', () => {})
  const heard = openWay(`https://localhost:${await listen(server)}`).send()
  await heard.untilOver()
  assert.deepEqual(heard.faults, [{ cause: 'upstream_tls', isReuseRace: false, reason: 'DEPTH_ZERO_SELF_SIGNED_CERT' }])
  assert.equal(bytes, 0)
})

test('F-U4 an upstream that speaks no TLS where TLS is configured is upstream_tls; only HTTP/1.1 is offered', async () => {
  let hello = ''
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      hello += chunk.toString('latin1')
      socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')
    })
  })
  const heard = openWay(`https://127.0.0.1:${await listen(server)}`).send()
  await heard.untilOver()
  assert.deepEqual(heard.faults, [
    { cause: 'upstream_tls', isReuseRace: false, reason: 'ERR_SSL_WRONG_VERSION_NUMBER' },
  ])
  assert.ok(hello.includes('\x08http/1.1'))
  assert.ok(!hello.includes('\x02h2'))
})

/** What happens to the second request of a connection, and what is judged of that. */
const seconds: [name: string, answer: Answer, fault: TransportFault][] = [
  ['reset before any byte', (socket) => void socket.resetAndDestroy(), { cause: 'upstream_reset', isReuseRace: true }],
  ['ended before any byte', (socket) => void socket.end(), { cause: 'upstream_reset', isReuseRace: true }],
  ['reset behind a part of a head', cutAfter('HTTP/1.1 200 O'), { cause: 'upstream_reset', isReuseRace: false }],
  [
    'reset behind an interim answer',
    cutAfter('HTTP/1.1 103 Early\r\n\r\n'),
    { cause: 'upstream_reset', isReuseRace: false },
  ],
  ['unreachable of a sudden', failing('EHOSTUNREACH'), { cause: 'upstream_silent', isReuseRace: false }],
]
for (const [name, answer, fault] of seconds) {
  test(`U1 F-U6 a reused connection that is ${name} is ${fault.isReuseRace ? 'a race' : 'no race'}`, async () => {
    const upstream = await startRawUpstream()
    upstream.play(whole('{}'), answer)
    const { send, pass } = openWay(upstream.url)
    await send().untilOver()
    pass()
    const heard = send()
    await heard.untilOver()
    assert.deepEqual(
      upstream.requests.map(({ connection }) => connection),
      [1, 1],
    )
    assert.deepEqual(heard.faults, [fault])
  })
}

test('U1 F-U6 other requests of the process do not change the recorded state of a connection', async () => {
  const upstream = await startRawUpstream()
  const other = await startRawUpstream()
  other.play(whole('{}'))
  let socket: Socket | undefined
  upstream.play(whole('{}'), (asked) => {
    socket = asked
  })
  const { send, pass } = openWay(upstream.url)
  await send().untilOver()
  pass()
  const heard = send()
  await until(() => socket)
  assert.equal(await (await fetch(other.url, { method: 'POST', body: '{}' })).text(), '{}')
  socket!.resetAndDestroy()
  await heard.untilOver()
  assert.deepEqual(heard.faults, [{ cause: 'upstream_reset', isReuseRace: true }])
})

test('F-U9 a reset within an answer is upstream_reset, reported once after all bytes that had arrived', async () => {
  const upstream = await startRawUpstream()
  let socket: Socket | undefined
  upstream.play(async (asked, request) => {
    socket = asked
    await stream(['begun'], { end: false })(asked, request)
  })
  const heard = openWay(upstream.url).send()
  await until(() => heard.text === 'begun')
  socket!.resetAndDestroy()
  await heard.untilOver()
  assert.deepEqual([heard.text, heard.ends], ['begun', 0])
  assert.deepEqual(heard.faults, [{ cause: 'upstream_reset', isReuseRace: false }])
})

/** Writes, and resets when the gateway has read that. */
function cutAfter(text: string): Answer {
  return async (socket) => {
    socket.write(text)
    const end = gatewayEnd(socket)
    const from = end.bytesRead
    await until(() => end.bytesRead === from + text.length)
    socket.resetAndDestroy()
  }
}
