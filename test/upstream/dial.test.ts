import assert from 'node:assert/strict'
import { connect, createServer, type Socket } from 'node:net'
import test from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import { Secret, type Upstream } from '../../src/config/config.ts'
import { atEnd } from '../support/at-end.ts'
import { type Authority, createAuthority, type Pair } from '../support/certificates.ts'
import { startEgressProxy } from '../support/egress-proxy.ts'
import { collect } from '../support/garbage.ts'
import { listen } from '../support/listen.ts'
import { type RawUpstream, startRawUpstream, stream, whole } from '../support/raw-upstream.ts'
import { turn, until } from '../support/waiting.ts'
import { openWay, type Way } from './flights.ts'

/* The ways to an upstream: directly, through a tunnel, and forwarded by its proxy; each hop with TLS and without (N-F4). */

let made: { authority: Authority; pair: Pair } | undefined
function trusted() {
  if (made === undefined) {
    const authority = createAuthority()
    made = { authority, pair: authority.issue('localhost') }
  }
  return made
}

/** TLS in front of a port. @returns the port of that */
function secure(port: number): Promise<number> {
  const { cert, key } = trusted().pair
  const server = createTlsServer({ cert, key }, (socket) => {
    const onward = connect(port, '127.0.0.1')
    for (const [one, other] of [
      [socket, onward],
      [onward, socket],
    ] as const)
      one.on('error', () => {}).on('close', () => other.destroy())
    socket.pipe(onward).pipe(socket)
  })
  server.on('tlsClientError', () => {})
  return listen(server)
}

const portOf = (url: string) => Number(new URL(url).port)
const throughProxy = (url: string) => ({ proxy: { url: new Secret(url), source: 'test' } })

type Reached = { upstream: RawUpstream; way: Way; asked: readonly string[] }
type Schemes = { origin: 'http' | 'https'; proxy: 'http' | 'https' | undefined }

/** An upstream, and a way to it. */
async function reach({ origin, proxy }: Schemes, more: Partial<Upstream> = {}): Promise<Reached> {
  const upstream = await startRawUpstream()
  upstream.play(whole('{}'))
  const { authority } = trusted()
  const url = origin === 'http' ? upstream.url : `https://localhost:${await secure(portOf(upstream.url))}`
  if (proxy === undefined) return { upstream, way: openWay(url, { ca: authority.ca, ...more }), asked: [] }
  const egress = await startEgressProxy()
  const proxyUrl = proxy === 'http' ? egress.url : `https://localhost:${await secure(portOf(egress.url))}`
  const way = openWay(url, { ca: authority.ca, ...throughProxy(proxyUrl), ...more })
  return { upstream, way, asked: egress.asked }
}

const ways: [name: string, schemes: Schemes][] = [
  ['directly', { origin: 'http', proxy: undefined }],
  ['directly, with TLS', { origin: 'https', proxy: undefined }],
  ['forwarded by a proxy', { origin: 'http', proxy: 'http' }],
  ['forwarded by a proxy with TLS', { origin: 'http', proxy: 'https' }],
  ['in a tunnel', { origin: 'https', proxy: 'http' }],
  ['in a tunnel of a proxy with TLS', { origin: 'https', proxy: 'https' }],
]

for (const [name, schemes] of ways) {
  const isTunnel = schemes.origin === 'https' && schemes.proxy !== undefined

  test(`N-F4 Y14 ${name}: an upstream is asked, and asked again on the same connection after its rest`, async () => {
    const { upstream, way, asked } = await reach(schemes)
    for (const text of ['{}', '{"a":1}']) {
      upstream.play(whole(text))
      const heard = way.send()
      await heard.untilOver()
      assert.deepEqual([heard.head?.status, heard.text, heard.ends, heard.faults], [200, text, 1, []])
      way.pass()
    }
    assert.equal(upstream.connections, 1)
    const [request] = upstream.requests
    assert.deepEqual([request!.method, request!.path], ['POST', '/v1/x'])
    assert.equal(request!.header('proxy-authorization'), undefined)
    const { host, origin } = new URL(way.target.upstream.baseUrl)
    assert.equal(request!.header('host'), host)
    const forwarded = [`POST ${origin}/v1/x`, `POST ${origin}/v1/x`]
    assert.deepEqual(asked, schemes.proxy === undefined ? [] : isTunnel ? [`CONNECT ${host}`] : forwarded)
  })

  test(`Y14 ${name}: a request that does not wait for the rest, and every request with reuse: false, gets its own connection`, async () => {
    const resting = await reach(schemes)
    for (const _ of [1, 2]) await resting.way.send().untilOver()
    const single = await reach(schemes, { reuses: false })
    for (const _ of [1, 2]) {
      await single.way.send().untilOver()
      single.way.pass()
    }
    // What stands before an upstream may keep a connection to it for itself.
    const countOf = ({ upstream, asked }: Reached) => (isTunnel ? asked.length : upstream.connections)
    if (schemes.proxy === undefined || isTunnel) assert.deepEqual([countOf(resting), countOf(single)], [2, 2])
    const options = [...resting.upstream.requests, ...single.upstream.requests].map((one) => one.header('connection'))
    assert.deepEqual(options, ['keep-alive', 'keep-alive', 'close', 'close'])
  })

  test(`H-F4 ${name}: a stream does not keep its request body in memory`, async () => {
    const { upstream, way } = await reach(schemes)
    const ask = async () => {
      upstream.play(stream(['begun'], { end: false }))
      const body = Buffer.alloc(100_000, 'a')
      const heard = way.send({ body, isFresh: true })
      await until(() => heard.text === 'begun')
      return new WeakRef(body)
    }
    const body = await ask()
    // What the test's own servers read of it is gone, too.
    upstream.requests.length = 0
    await until(() => {
      collect()
      return body.deref() === undefined
    })
  })

  test(`F-C5 ${name}: a cancelled request closes its connection`, async () => {
    const { upstream, way } = await reach(schemes)
    upstream.play(stream(['begun'], { end: false }))
    const heard = way.send()
    await until(() => heard.text === 'begun')
    heard.flight.abort()
    await until(() => upstream.closed === 1)
    assert.deepEqual([heard.ends, heard.faults], [0, []])
    await way.upstreams.close()
  })
}

/** An upstream whose connections the test holds, at the end of each way; it answers each request with `[]`. */
const json = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n[]'
for (const [name, schemes] of ways)
  test(`Y14 ${name}: unrequested bytes are an event and close all idle connections`, async () => {
    const sockets: Socket[] = []
    const answer = (socket: Socket) => {
      sockets.push(socket)
      socket.on('error', () => {}).on('data', () => void socket.write(json))
    }
    const { authority, pair } = trusted()
    // A proxy that forwards has the connection that the bytes come on: it is the test's, then.
    const isForwarded = schemes.origin === 'http' && schemes.proxy !== undefined
    const isSecure = (isForwarded ? schemes.proxy : schemes.origin) === 'https'
    const server = isSecure ? createTlsServer(pair, answer) : createServer(answer)
    atEnd(() => sockets.forEach((socket) => void socket.destroy()))
    const port = await listen(server)
    const end = `${isSecure ? 'https' : 'http'}://localhost:${port}`
    const egress = await startEgressProxy()
    const proxyPort = schemes.proxy === 'https' ? await secure(portOf(egress.url)) : portOf(egress.url)
    const proxy = isForwarded ? end : `${schemes.proxy}://localhost:${proxyPort}`
    const way = openWay(isForwarded ? 'http://far.example' : end, {
      ca: authority.ca,
      ...(schemes.proxy && throughProxy(proxy)),
    })
    await Promise.all([way.send().untilOver(), way.send().untilOver()])
    assert.deepEqual([sockets.length, way.unasked], [2, []])
    sockets[0]!.write(json)
    await until(() => sockets.every(({ destroyed }) => destroyed))
    assert.deepEqual(way.unasked, [['sim', 'idle']])
    way.pass()
    const heard = way.send()
    await heard.untilOver()
    assert.deepEqual([heard.text, heard.faults, sockets.length], ['[]', [], 3])
  })

/** A proxy below HTTP: it plays this answer to CONNECT, and is the upstream of the tunnel. */
async function startRawProxy(answer: (socket: Socket, text: string) => void) {
  const sockets: Socket[] = []
  const heads: string[] = []
  /** Pieces after the head of a CONNECT. */
  const later: string[] = []
  const server = createServer((socket) => {
    sockets.push(socket)
    socket
      .on('error', () => {})
      .on('data', (bytes) => {
        const text = bytes.toString('latin1')
        if (!text.startsWith('CONNECT ')) {
          later.push(text)
          return
        }
        heads.push(text)
        answer(socket, text)
      })
  })
  atEnd(() => sockets.forEach((socket) => void socket.destroy()))
  return { url: `http://127.0.0.1:${await listen(server)}`, sockets, heads, later }
}

const proxys = [{ cause: 'upstream_proxy', isReuseRace: false }]
const refusals: [name: string, answer: string, proxyStatus?: number][] = [
  ['wants credentials', 'HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic\r\n\r\n', 407],
  ['forbids it', 'HTTP/1.0 403 Forbidden\r\ncontent-length: 2\r\n\r\nno', 403],
  ['does not reach the host', 'HTTP/1.1 502 Bad Gateway\r\n\r\n', 502],
  ['offers several', 'HTTP/1.1 300 Multiple Choices\r\n\r\n', 300],
  ['redirects', 'HTTP/1.1 302 Found\r\nlocation: /\r\n\r\n', 302],
  ['switches protocols', 'HTTP/1.1 101 Switching\r\n\r\n'],
  ['speaks something else', 'SSH-2.0-x\r\n'],
  ['answers in HTTP/2', 'HTTP/2 200\r\n\r\n'],
  ['sends a broken head', 'HTTP/1.1 200 OK\r\na : b\r\n\r\n'],
  ['sends a head without end', `HTTP/1.1 200 OK\r\na: ${'b'.repeat(20_000)}`],
  ['sends eleven interim answers', 'HTTP/1.1 103 Early\r\n\r\n'.repeat(11)],
  ['says more than the tunnel', 'HTTP/1.1 200 OK\r\n\r\nx'],
]
for (const [name, answer, proxyStatus] of refusals)
  test(`N-F4 U1 a proxy that ${name} when it is asked for a tunnel is upstream_proxy, and its connection is closed`, async () => {
    const proxy = await startRawProxy((socket) => void socket.write(answer))
    const way = openWay('https://far.example', throughProxy(proxy.url))
    const heard = way.send()
    await heard.untilOver()
    const fault = { ...proxys[0], ...(proxyStatus && { proxyStatus }) }
    assert.deepEqual([heard.heads, heard.faults, heard.flight.wasWritten()], [0, [fault], false])
    await until(() => proxy.sockets[0]!.destroyed)
    // No handshake was begun.
    assert.deepEqual(proxy.later, [])
  })

for (const [name, end] of [
  ['ends', (socket: Socket) => void socket.end()],
  ['is reset', (socket: Socket) => void socket.resetAndDestroy()],
  ['ends within its head', (socket: Socket) => void socket.end('HTTP/1.1 2')],
  ['ends behind its head', (socket: Socket) => void socket.end('HTTP/1.1 200 OK\r\n\r\n')],
] as const)
  test(`N-F4 U1 a connection for a tunnel that ${name} is upstream_proxy`, async () => {
    const proxy = await startRawProxy(end)
    const heard = openWay('https://far.example', throughProxy(proxy.url)).send()
    await heard.untilOver()
    assert.deepEqual(heard.faults, proxys)
  })

for (const answer of [
  'HTTP/1.1 200 Connection established\r\n\r\n',
  'HTTP/1.0 200\r\ncontent-length: 9\r\nproxy-agent: x\r\n\r\n',
  'HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 100\r\n\r\nHTTP/1.1 299 OK\r\ntransfer-encoding: chunked\r\n\r\n',
])
  test(`N-F4 a tunnel is open after ${JSON.stringify(answer)}, wherever the network cuts it`, async () => {
    const upstream = await startRawUpstream()
    upstream.play(whole('{}'))
    const port = await secure(portOf(upstream.url))
    for (const cut of [1, 18, 1_000]) {
      const proxy = await startRawProxy(async (socket) => {
        socket.setNoDelay(true)
        for (const piece of answer.match(new RegExp(`[^]{1,${cut}}`, 'g'))!) {
          socket.write(piece)
          await turn()
        }
        socket.removeAllListeners('data')
        const onward = connect(port, '127.0.0.1').on('error', () => {})
        socket.pipe(onward).pipe(socket)
      })
      const way = openWay('https://localhost', { ca: trusted().authority.ca, ...throughProxy(proxy.url) })
      const heard = way.send()
      await heard.untilOver()
      assert.deepEqual([heard.text, heard.faults], ['{}', []], `${cut}`)
    }
  })

for (const [name, userinfo, url, head] of [
  [
    'a host and its usual port',
    '',
    'https://far.example/v1',
    'CONNECT far.example:443 HTTP/1.1\r\nhost: far.example:443\r\n\r\n',
  ],
  ['an address of IPv6', '', 'https://[::1]:8443', 'CONNECT [::1]:8443 HTTP/1.1\r\nhost: [::1]:8443\r\n\r\n'],
  [
    'credentials',
    'ann:s%40f%C3%A9@',
    'https://far.example',
    `CONNECT far.example:443 HTTP/1.1\r\nhost: far.example:443\r\nproxy-authorization: Basic ${Buffer.from('ann:s@fé').toString('base64')}\r\n\r\n`,
  ],
] as const)
  test(`N-F4 a tunnel is requested with ${name}, and without anything of the request`, async () => {
    const proxy = await startRawProxy((socket) => void socket.end('HTTP/1.1 502 No\r\n\r\n'))
    const way = openWay(url, throughProxy(proxy.url.replace('//', `//${userinfo}`)))
    await way.send().untilOver()
    assert.deepEqual(proxy.heads, [head])
  })

for (const [name, answer] of [
  ['the proxy', undefined],
  ['TLS in the tunnel', 'HTTP/1.1 200 OK\r\n\r\n'],
] as const)
  test(`F-U2 N-F4 one deadline covers everything that a connection waits for: ${name} does not respond`, async ({
    mock,
  }) => {
    let pieces = 0
    const proxy = await startRawProxy((socket) => {
      socket.on('data', () => pieces++)
      if (answer) socket.write(answer)
    })
    mock.timers.enable({ apis: ['setTimeout'] })
    const heard = openWay('https://far.example', throughProxy(proxy.url)).send()
    // Nothing else may wait by a timer meanwhile.
    while (answer === undefined ? proxy.heads.length === 0 : pieces === 0) await turn()
    mock.timers.tick(4_999)
    await turn()
    assert.deepEqual(heard.faults, [])
    mock.timers.tick(1)
    mock.timers.reset()
    await heard.untilOver()
    assert.deepEqual(heard.faults, proxys)
    await until(() => proxy.sockets[0]!.destroyed)
  })

test('F-C5 N-F4 a request that is cancelled before its tunnel is open closes the connection to the proxy', async () => {
  const proxy = await startRawProxy(() => {})
  const way = openWay('https://far.example', throughProxy(proxy.url))
  const heard = way.send()
  await until(() => proxy.heads.length === 1)
  heard.flight.abort()
  await until(() => proxy.sockets[0]!.destroyed)
  assert.deepEqual([heard.heads, heard.faults], [0, []])
  await way.upstreams.close()
})

test('N-F4 U1 an answer by the proxy itself to a forwarded request is upstream_proxy, and its connection is closed', async () => {
  const upstream = await startRawUpstream()
  upstream.play(whole('no', 407))
  const heard = openWay('http://far.example', throughProxy(upstream.url)).send()
  await heard.untilOver()
  assert.deepEqual([heard.heads, heard.faults], [0, [{ ...proxys[0], proxyStatus: 407 }]])
  await until(() => upstream.closed === 1)
})

test('N-F4 F-U4 a proxy whose certificate is not trusted gets no request', async () => {
  const egress = await startEgressProxy()
  const url = `https://localhost:${await secure(portOf(egress.url))}`
  for (const base of ['http://far.example', 'https://far.example']) {
    const heard = openWay(base, throughProxy(url)).send()
    await heard.untilOver()
    assert.deepEqual([heard.faults[0]?.cause, egress.asked], ['upstream_tls', []])
  }
})
