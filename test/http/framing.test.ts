import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { createAuthority } from '../support/certificates.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { raw } from '../support/raw.ts'

/* The same bytes, as they are and over TLS (X9): neither may hide a second request from us. */

let gateways: { over: string; gateway: TestGateway }[]
before(async () => {
  const { certFile, keyFile } = createAuthority().issue('gateway.example')
  const limits = { requests_per_minute: 100_000 }
  const tls = { cert: certFile, key: keyFile }
  gateways = [
    { over: 'TCP', gateway: await startTestGateway({ config: { limits } }) },
    { over: 'TLS', gateway: await startTestGateway({ config: { limits, tls } }) },
  ]
})
after(() => Promise.all(gateways.map(({ gateway }) => gateway.close())))

/** Once for each of them, one after the other. */
async function onBoth(ask: (gateway: TestGateway, over: string) => Promise<void>): Promise<void> {
  for (const { gateway, over } of gateways) await ask(gateway, over)
}

const models = 'GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n'
/** Stands for the key until it is known whose. */
const keyPlace = 'KEY-OF-THE-GATEWAY'
const send = (gateway: TestGateway, bytes: string | Buffer) =>
  raw(gateway.url, typeof bytes === 'string' ? bytes.replaceAll(keyPlace, gateway.key) : bytes)

const body = '{"model":"native-chat","messages":[{"role":"user","content":"canary-framing"}]}'
const length = body.length
const chunked = `${length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
/** The request that an attacker hides after a body whose end two readers see in different places. */
const hidden = 'GET /hidden HTTP/1.1\r\nhost: x\r\n\r\n'

const lengths = [
  '',
  '+2',
  '-1',
  '0x10',
  '2 2',
  '2,2',
  '2, 3',
  '2;',
  '1e1',
  'two',
  '2\t2',
  '2.0',
  '18446744073709551616',
].concat(['99999999999999999999999999', '\xb2', '0b1', "'2'", '2\x0b'])
const encodings = ['gzip, chunked', 'chunked, gzip', 'identity', 'chunked, chunked', 'gzip', 'xchunked', 'chunkedx']
  .concat(['chunked;q=1', '"chunked"', '\x0bchunked', 'chunked\x0b', ',chunked', 'chunked,', 'chun ked', '', 'x'])
  .concat(['chunked, identity', 'identity, chunked', 'trailers', 'deflate', 'cow', '\x00chunked', 'chunked\x00'])
const chunkFaults = [
  '0x5\r\nhello\r\n',
  '-5\r\nhello\r\n',
  '+5\r\nhello\r\n',
  '5g\r\nhello\r\n',
  '\r\nhello\r\n',
  'g\r\n',
]
  .concat([
    'ffffffffffffffffff\r\nhello',
    '5\r\nhelloX\r\n',
    '5\r\nhello world\r\n',
    '5\rhello\r\n',
    '5;a\rb\r\nhello\r\n',
  ])
  .concat([
    '5\nhello\n',
    '5\r\nhello\n',
    '5 5\r\nhello\r\n',
    '5_\r\nhello\r\n',
    ' \r\n',
    '5\r\nhello0\r\n\r\n',
    '5\x00\r\nhello\r\n',
  ])
const headerLines = [
  'bad\x00name: 1',
  'name: a\x00b',
  'name: a\rb',
  'name: a\r\n folded',
  'name: a\r\n\tfolded',
  'no colon here',
].concat([
  'name : 1',
  ': no name',
  ' leading: 1',
  'na(me: 1',
  'na me: 1',
  'name: \x01',
  'name: \x1b[1m',
  'n\xe4me: 1',
  'name: a\x7fb',
])
const requestLines = [
  'POST /v1/messages',
  'POST',
  'POST /v1/messages HTTP/0.9',
  'POST /v1/messages HTTP/2.0',
  'GET  HTTP/1.1',
]
  .concat([
    'POST /v1/messages HTTP/1.2',
    'POST /v1/messages HTTP/1',
    'POST /v1/messages http/1.1',
    'post /v1/messages HTTP/1.1',
  ])
  .concat([
    'POST /v1/messages HTTP/1.1 x',
    'BREW /v1/messages HTTP/1.1',
    'POST\t/v1/messages\tHTTP/1.1',
    'POST /v1/\x00 HTTP/1.1',
  ])
  .concat(['POST /v1/messages HTTP/1.10', 'POST /v1/messages ICE/1.0', 'GET / HTTP/11.1', 'POST v1/messages HTTP/1.1'])
const smuggled = ['content-length', 'Content-Length', 'CONTENT-LENGTH'].flatMap((name) =>
  ['chunked', 'Chunked', ' chunked', 'chunked '].flatMap((encoding) => [
    [`${name}: ${length}`, `transfer-encoding: ${encoding}`],
    [`Transfer-Encoding: ${encoding}`, `${name}: 0`],
  ]),
)

type Payload = { name: string; bytes: string }

function post(path: string, lines: readonly string[], rest: string, version = '1.1', host = 'host: x'): string {
  const head = [`POST ${path} HTTP/${version}`, host, `authorization: Bearer ${keyPlace}`, ...lines].filter(Boolean)
  return `${head.join('\r\n')}\r\n\r\n${rest}`
}

const families: Record<string, (path: string) => Payload[]> = {
  'R11 F-C14 a content-length that is not one plain number': (path) => [
    ...lengths.map((value) => ({ name: value, bytes: post(path, [`content-length: ${value}`], body) })),
    ...[length, 0, 1].map((other) => ({
      name: `two lengths, ${other}`,
      bytes: post(path, [`content-length: ${length}`, `Content-Length: ${other}`], body),
    })),
  ],
  'R11 F-C14 content-length together with transfer-encoding': (path) =>
    smuggled.map((lines) => ({ name: lines.join(' | '), bytes: post(path, lines, chunked) })),
  'R11 F-C15 a transfer-encoding other than chunked': (path) => [
    ...encodings.map((value) => ({ name: value, bytes: post(path, [`transfer-encoding: ${value}`], chunked) })),
    ...['chunked', 'identity', 'gzip'].map((second) => ({
      name: `chunked and ${second}`,
      bytes: post(path, ['transfer-encoding: chunked', `Transfer-Encoding: ${second}`], chunked),
    })),
    { name: 'space before the colon', bytes: post(path, ['transfer-encoding : chunked'], chunked) },
  ],
  'R11 F-C16 transfer-encoding on HTTP/1.0': (path) =>
    ['chunked', 'identity', 'gzip, chunked'].map((value) => ({
      name: value,
      bytes: post(path, [`transfer-encoding: ${value}`], chunked, '1.0'),
    })),
  'R11 F-C13 a fault in a chunk': (path) =>
    chunkFaults.map((chunk) => ({ name: chunk, bytes: post(path, ['transfer-encoding: chunked'], chunk) })),
  'R11 F-C17 missing and repeated host': (path) => [
    { name: 'none', bytes: post(path, [`content-length: ${length}`], body, '1.1', '') },
    { name: 'same twice', bytes: post(path, ['Host: x', `content-length: ${length}`], body) },
    { name: 'two', bytes: post(path, ['HOST: y', `content-length: ${length}`], body) },
  ],
  'R11 F-C21 a header line that is not one': (path) =>
    headerLines.map((line) => ({ name: line, bytes: post(path, [line, `content-length: ${length}`], body) })),
  'R11 F-C17, F-C28 a request line that is not one': (path) =>
    requestLines.map((line) => ({ name: line, bytes: `${line.replace('/v1/messages', path)}\r\nhost: x\r\n\r\n` })),
  'R7 F-C18 a credential header twice with different values': (path) => [
    { name: 'authorization', bytes: post(path, ['Authorization: Bearer other', `content-length: ${length}`], body) },
    { name: 'x-api-key', bytes: post(path, ['x-api-key: a', 'X-Api-Key: b', `content-length: ${length}`], body) },
  ],
}

for (const [title, make] of Object.entries(families)) {
  for (const path of ['/v1/chat/completions', '/v1/messages']) {
    test(`${title} is refused once and the connection closes, on ${path}, in clear and over TLS`, () =>
      onBoth(async (gateway, over) => {
        const before = gateway.simulator.requests.length
        const ids = new Set<string>()
        const payloads = make(path).flatMap(({ name, bytes }) => [
          { name, bytes },
          { name: `${name} + hidden`, bytes: bytes + hidden },
        ])
        await Promise.all(
          payloads.map(async ({ name, bytes }) => {
            const { answers, isClosed, text } = await send(gateway, bytes)
            const shown = `${over} ${JSON.stringify(name)}: ${JSON.stringify(text.slice(0, 400))}`
            assert.equal(answers.length, 1, shown)
            assert.equal(isClosed, true, shown)
            assert.equal(answers[0]!.status, 400, shown)
            assert.equal(answers[0]!.headers.get('connection'), 'close', shown)
            const id = answers[0]!.headers.get('x-request-id') ?? ''
            assert.match(id, /^req_[0-9a-f]{32}$/, shown)
            ids.add(id)
            const read = JSON.parse(answers[0]!.body) as { request_id?: string; error: Record<string, unknown> }
            assert.equal(read.error['type'], 'invalid_request_error')
            if (read.request_id !== undefined) assert.deepEqual([path, read.request_id], ['/v1/messages', id])
            else assert.deepEqual([read.error['code'], read.error['param']], ['invalid_body', null])
          }),
        )
        assert.equal(ids.size, payloads.length)
        assert.equal(gateway.simulator.requests.length, before)
        assert.equal((await raw(gateway.url, models, { answers: 1 })).answers[0]!.status, 200)
      }))
  }
}

test('reliability §8 there are at least 150 framing payloads', () => {
  const count = Object.values(families).reduce((sum, make) => sum + make('/').length * 2, 0)
  assert.ok(count >= 150, String(count))
})

test('R11 F-C28 bytes that are not HTTP get a refusal in HTTP', () =>
  onBoth(async (gateway, over) => {
    const hello = Buffer.from('16030100c5010000c10303000102030405060708090a0b0c0d0e0f', 'hex')
    const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
    for (const bytes of [
      hello,
      preface,
      '\x00\x01\x02\x03',
      'hello there\r\n\r\n',
      '\xff\xfe\xfd\r\n\r\n',
      '{"a":1}',
    ]) {
      const { answers, isClosed } = await send(gateway, bytes)
      assert.deepEqual(
        [answers.length, answers[0]?.status, isClosed],
        [1, 400, true],
        `${over} ${JSON.stringify(bytes)}`,
      )
      assert.match(answers[0]!.headers.get('x-request-id') ?? '', /^req_/)
    }
  }))

test('R11 F-C20 too many headers, too large ones and a too long URL get 431', () =>
  onBoth(async (gateway, over) => {
    const many = Array.from({ length: 99 }, (_, i) => `x-${i}: 1`)
    const cases = {
      'over 100 headers': post('/v1/messages', many, ''),
      'over 200 headers': post('/v1/messages', [...many, ...many.map((line) => `y${line}`)], ''),
      '3,000 headers': post('/v1/messages', Array(3_000).fill('a: 1'), ''),
      '17 KiB of headers': post('/v1/messages', Array(17).fill(`big: ${'a'.repeat(1_000)}`), ''),
      'a line of 9 KiB': post('/v1/messages', [`big: ${'a'.repeat(9_000)}`], ''),
      'a URL of 9 KB': post(`/v1/messages?${'a'.repeat(9_000)}`, [], ''),
      'a URL of 20 KB': post(`/v1/messages?${'a'.repeat(20_000)}`, [], ''),
    }
    for (const [name, bytes] of Object.entries(cases)) {
      const { answers, isClosed } = await send(gateway, bytes)
      assert.deepEqual([answers.length, answers[0]?.status, isClosed], [1, 431, true], `${over} ${name}`)
      assert.match(answers[0]!.headers.get('x-request-id') ?? '', /^req_/, name)
      assert.match(answers[0]!.body, /"error"/, name)
    }
  }))
