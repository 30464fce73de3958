import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import fc from 'fast-check'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { openRaw } from '../support/raw.ts'
import { runsUpTo } from '../support/runs.ts'

/* The edge parses HTTP itself: the places at which the network cuts a client's bytes must not matter. */

let gateway: TestGateway
before(async () => {
  gateway = await startTestGateway({ config: { limits: { requests_per_minute: 100_000 } } })
})
after(() => gateway.close())

const question = '{"model":"native-chat","messages":[{"role":"user","content":"canary-cuts \xc3\xa9"}]}'
const streamed = question.replace('{', '{"stream":true,')

function post(lines: readonly string[], body: string): string {
  const head = ['POST /v1/chat/completions HTTP/1.1', 'Host: x', `authorization: Bearer ${gateway.key}`, ...lines]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}

test('F-C1 F-C2 F-C11 F-C22 requests in a row are answered in order, wherever they are cut', async () => {
  const size = question.length.toString(16)
  const requests: [bytes: string, status: number, body: RegExp][] = [
    [post([`content-length: ${question.length}`], question), 200, /^\{"id":"chatcmpl-/],
    [
      post(['transfer-encoding: chunked'], `${size};a=b\r\n${question}\r\n0\r\nx: y\r\n\r\n`),
      200,
      /^\{"id":"chatcmpl-/,
    ],
    [post([`content-length: ${streamed.length}`], streamed), 200, /data: \[DONE\]\n\n$/],
    ['\r\n\r\nGET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n', 200, /^\{"object":"list"/],
    [post(['content-length: 2'], '[]'), 400, /JSON object/],
    ['POST /v1/nowhere HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc', 404, /unknown_url/],
  ]
  const rows = fc.array(fc.constantFrom(...requests), { minLength: 1, maxLength: 4 })
  const cuts = fc.array(fc.nat(1_000), { maxLength: 12 })
  await fc.assert(
    fc.asyncProperty(rows, cuts, async (row, at) => {
      const bytes = row.map(([text]) => text).join('')
      const { socket, write, read } = await openRaw(gateway.url)
      socket.setNoDelay()
      const places = [...new Set([...at, bytes.length])].filter((cut) => cut <= bytes.length).sort((a, b) => a - b)
      for (const [i, end] of places.entries()) {
        write(bytes.slice(places[i - 1] ?? 0, end))
        // What is written in two turns is mostly read in two.
        await new Promise(setImmediate)
      }
      const { answers } = await read({ answers: row.length })
      assert.deepEqual(
        answers.map(({ status }) => status),
        row.map(([, status]) => status),
      )
      for (const [i, { body }] of answers.entries()) assert.match(body, row[i]![2])
      socket.destroy()
    }),
    { numRuns: runsUpTo(60) },
  )
})

test('R11 reliability §3 a head that comes octet by octet is read in linear time, and refused if it is too long', async () => {
  const { socket, write, read } = await openRaw(gateway.url)
  socket.setNoDelay()
  const bytes = `GET /v1/models HTTP/1.1\r\nhost: x\r\nx-long: ${'a'.repeat(700)}\r\n\r\n`
  for (const octet of bytes) {
    write(octet)
    await new Promise(setImmediate)
  }
  assert.equal((await read({ answers: 1 })).answers[0]!.status, 200)
  write(`GET / HTTP/1.1\r\nhost: x\r\n${'x: y\r\n'.repeat(2_000)}`)
  for (let i = 0; i < 2_000; i++) write('x: y\r\n')
  const { answers, isClosed } = await read()
  assert.deepEqual([answers[1]!.status, isClosed], [431, true])
})

test('RFC 9112 9.3 a connection is kept or closed as its client asks, and the answer says which', async () => {
  const ask = async (version: string, lines: string) => {
    const { socket, write, read } = await openRaw(gateway.url)
    write(`GET /v1/models HTTP/${version}\r\nhost: x\r\n${lines}\r\n`)
    const { answers } = await read({ answers: 1 })
    const told = answers[0]!.headers.get('connection')
    // One that is let go is closed without another request.
    const isClosed = told === 'close' && (await read()).isClosed
    socket.destroy()
    return [told, isClosed]
  }
  assert.deepEqual(await ask('1.1', ''), ['keep-alive', false])
  assert.deepEqual(await ask('1.1', 'Connection: Close\r\n'), ['close', true])
  assert.deepEqual(await ask('1.1', 'connection: te, close\r\n'), ['close', true])
  assert.deepEqual(await ask('1.1', 'connection: closed\r\n'), ['keep-alive', false])
  assert.deepEqual(await ask('1.0', ''), ['close', true])
  assert.deepEqual(await ask('1.0', 'connection: keep-alive\r\n'), ['keep-alive', false])
})

test('RFC 9110 6.6.1 an answer has the date at which it was made', async () => {
  const response = await fetch(`${gateway.url}/v1/models`)
  const madeMs = Date.parse(response.headers.get('date') ?? '')
  assert.ok(Math.abs(madeMs - Date.now()) < 60_000, `${response.headers.get('date')}`)
  const { write, read } = await openRaw(gateway.url)
  write('no HTTP\r\n\r\n')
  const [refused] = (await read()).answers
  assert.equal(Date.parse(refused!.headers.get('date')!) >= madeMs, true, 'and one to what is no request')
})

test('RFC 9110 6.6.1 F-S20 the date of an answer follows a clock that is set back', async (t) => {
  const dateOf = async () => Date.parse((await fetch(`${gateway.url}/v1/models`)).headers.get('date')!)
  await dateOf()
  const nowMs = Date.now() - 3_600_000
  t.mock.timers.enable({ apis: ['Date'], now: nowMs })
  assert.equal(await dateOf(), nowMs - (nowMs % 1_000))
})
