import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, readFileSync, readSync } from 'node:fs'
import { dirname, join } from 'node:path'
import test, { after, before } from 'node:test'
import fc from 'fast-check'
import type { CallRecord } from '../../src/gateway/record.ts'
import { createLog, type Log } from '../../src/log/log.ts'
import { characters } from '../support/characters.ts'
import { testFolder } from '../support/folder.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { raw } from '../support/raw.ts'
import { runsUpTo } from '../support/runs.ts'
import { until } from '../support/waiting.ts'

/* What may stand in a line of the log, whoever caused it, and what becomes of lines that cannot be written. */

let gateway: TestGateway
before(async () => {
  gateway = await startTestGateway()
})
after(() => gateway.close())

/** Requests that are refused before they are routed, and some that are not; what stands for the key in each. */
const requests: Record<string, (key: string) => string> = {
  'a key and a control byte': (key) => `GET /v1/${key}\x01 HTTP/1.1\r\nhost: x\r\n\r\n`,
  'a control byte in a key': (key) => `GET /v1/${key.slice(0, 20)}\x01${key.slice(20)} HTTP/1.1\r\nhost: x\r\n\r\n`,
  'a key and two hosts': (key) => `GET /v1/${key} HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n`,
  'a key and an expectation': (key) => `GET /v1/${key} HTTP/1.1\r\nhost: x\r\nexpect: canary\r\n\r\n`,
  'a key without its scheme': (key) => `GET /v1/${key.slice(7)} HTTP/1.1\r\nhost: x\r\n\r\n`,
  'a key to connect to': (key) => `CONNECT ${key}:443 HTTP/1.1\r\nhost: x\r\n\r\n`,
  'a key behind other letters': (key) => `GET /v1/x${key} HTTP/1.1\r\nhost: x\r\n\r\n`,
  "a provider's key": () => `GET /v1/sk-ant-api03-${'abcdefgh'.repeat(5)}\x01 HTTP/1.1\r\nhost: x\r\n\r\n`,
  'a title for the terminal': () => 'GET /\x1b]0;PWNED\x07 HTTP/1.1\r\nhost: x\r\n\r\n',
  'a colour for the terminal': () => 'GET /\x1b[31mX HTTP/1.1\r\nhost: x\r\n\r\n',
  'a control sequence of one byte': () => 'GET /\x9b31mX HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n',
  'a long path': () => `GET /${'canary'.repeat(2_000)} HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n`,
  'a long path that is routed': () => `GET /${'x'.repeat(12_000)} HTTP/1.1\r\nhost: x\r\n\r\n`,
  'a long path with a control byte': () => `GET /${'x'.repeat(6_000)}\x01 HTTP/1.1\r\nhost: x\r\n\r\n`,
  'a long method': () => `${'X'.repeat(5_000)} / HTTP/1.1\r\nhost: x\r\n\r\n`,
}

for (const [name, request] of Object.entries(requests)) {
  test(`B11, X11: the log has one line for ${name}: without a key or an escape, and of at most 8 KB`, async () => {
    const { answers } = await raw(gateway.url, request(gateway.key), { answers: 1 })
    const id = answers[0]!.headers.get('x-request-id')!
    await gateway.logOf(id)
    const log = readFileSync(join(dirname(gateway.configPath), 'access.log'), 'utf8')
    const line = log.split('\n').find((one) => one.includes(id))!
    assertFit(line)
    // JSON hides escapes, and whoever takes its texts out brings them back.
    for (const value of Object.values(JSON.parse(line))) if (typeof value === 'string') assertFit(value)
    assert.ok(!line.includes(gateway.key.slice(20)), line)
    assert.doesNotMatch(line, /sk-ant-api03|(canary){40}/)
  })
}

function assertFit(line: string): void {
  assert.ok(Buffer.byteLength(line) < 8_192, `${Buffer.byteLength(line)} bytes`)
  assert.doesNotMatch(line.replaceAll('\n', ''), /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/)
}

/** A log into a file of its own, and its lines. */
function logTo(isPretty: boolean): { log: Log; lines(): Promise<string[]> } {
  const path = join(testFolder('lines'), 'log')
  const log = createLog({ level: 'info', isPretty, descriptor: openSync(path, 'a'), nowMs: () => 0 })
  return {
    log,
    async lines() {
      await log.flush()
      return readFileSync(path, 'utf8').split('\n').slice(0, -1)
    },
  }
}

const key = `sk-tri-${'Ab1'.repeat(16).slice(0, 46)}`
/** Tokens of operators, and of sessions (rulings Y20, Y28), whole and as a path is cut. */
const tokens = ['op', 'at', 'rt'].flatMap((kind) => {
  const token = `tri-${kind}-${'Ab1'.repeat(18).slice(0, kind === 'op' ? 43 : kind === 'at' ? 54 : 48)}`
  return [token, token.slice(0, 40), `${token.slice(0, 20)}\u200b${token.slice(20)}`]
})
const hostile = fc.array(
  fc.oneof(
    fc.string({ unit: characters, maxLength: 20 }),
    fc.constantFrom(...tokens),
    fc.constantFrom(key, '\u001b]0;x\u0007', '\u009b31m', '\n', '\r', '\u202e', '/', `sk-ant-${'a'.repeat(30)}`, 'é😀'),
    fc.integer({ min: 0, max: 9_000 }).map((length) => 'long '.repeat(length / 5)),
  ),
  { maxLength: 5 },
)
const text = hostile.map((parts) => parts.join(''))

for (const isPretty of [false, true]) {
  test(`B11, X11: law: every record and event is one line without key or escape, at most 8 KB, ${isPretty ? 'for people' : 'as JSON'}`, async () => {
    const { log, lines } = logTo(isPretty)
    let count = 0
    await fc.assert(
      fc.asyncProperty(text, text, text, fc.array(text, { maxLength: 80 }), async (path, other, error, list) => {
        const losses = list.map((field) => ({ field, what: 'dropped' as const, why: '' }))
        const record: CallRecord = { id: 'req_1', startedMs: 0, method: other, path, ip: other, losses, model: other }
        log.access({ ...record, account: path, keyPrefix: 'sk-tri-abcdefgh', status: 400 }, new Error(error))
        log.event('error', 'trouble', { error, list, more: { [other]: path }, amount: 5n })
        const all = await lines()
        count += 3
        assert.equal(all.length, count)
        for (const line of all.slice(-3)) {
          assertFit(line)
          assert.ok(!line.includes(key.slice(7, 25)) && !line.includes('a'.repeat(30)), line)
          if (isPretty) continue
          const fields = JSON.parse(line) as Record<string, unknown>
          assert.ok(typeof fields['time'] === 'string')
        }
      }),
      { numRuns: runsUpTo(60) },
    )
  })
}

test('Y28, B11 no line has more than the first letters of an operator’s token or a session token, wherever it occurs', async () => {
  for (const isPretty of [false, true]) {
    const { log, lines } = logTo(isPretty)
    const record = { id: 'req_1', startedMs: 0, method: 'GET', ip: '::1' }
    for (const token of tokens) {
      log.access({ ...record, path: `/v1/${token}` })
      log.access({ ...record, path: `/${'x/'.repeat(80)}${token}` })
      log.access({ ...record, path: '/', model: token })
      log.access({ ...record, path: '/', keyPrefix: token.slice(0, 13), account: token })
      log.event('info', 'line', { text: `got ${token}, and ${token}.`, [token]: 1 })
    }
    const all = await lines()
    assert.equal(all.length, tokens.length * 5)
    for (const line of all) assert.doesNotMatch(line, /tri-(?:op|at|rt)-[0-9A-Za-z]{7}|(?:Ab1){4}/)
    if (!isPretty) assert.ok(all.some((line) => line.includes('"key":"tri-at-Ab1Ab1"')))
  }
})

test('B11, X11: text that may be logged is logged unchanged', async () => {
  const { log, lines } = logTo(false)
  log.event('info', 'line', {
    text: 'Zoë: task-force says “risk-free” 😀\n  at x.ts:1',
    prefix: 'sk-tri-abcdefgh',
    amount: 5n,
  })
  log.access({ id: 'req_1', startedMs: 0, method: 'GET', path: '/v1/models', ip: '::1', keyPrefix: 'sk-tri-abcdefgh' })
  const [line, access] = (await lines()).map((one) => JSON.parse(one))
  assert.equal(line.text, 'Zoë: task-force says “risk-free” 😀\n  at x.ts:1')
  assert.deepEqual(
    [line.prefix, line.amount, access.key, access.path],
    ['sk-tri-abcdefgh', '5', 'sk-tri-abcdefgh', '/v1/models'],
  )
})

/** A log whose reader comes and goes: while there is none every write fails, as it does on a full disk. */
function openFifo() {
  const fifo = join(testFolder('log'), 'sink')
  execFileSync('mkfifo', [fifo])
  const openReader = () => openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK)
  // Without one the log could not be opened at all.
  const reader = openReader()
  const log = createLog({ level: 'info', isPretty: false, descriptor: openSync(fifo, 'w'), nowMs: () => 0 })
  closeSync(reader)
  return { log, openReader }
}

test('B24: lines that could not be written are counted, also those of other processes, and reported when writing works again', async () => {
  const { log, openReader } = openFifo()
  // Nobody reads.
  for (const round of [1, 2, 3]) {
    for (let i = 0; i < 100; i++) log.event('info', 'lost', { round })
    log.pass('{"event":"lost"}')
    await log.flush()
  }
  const reader = openReader()
  log.event('info', 'kept')
  log.pass('{"event":"passed"}')
  await log.flush()
  assert.deepEqual(readLines(reader), [
    { time: '1970-01-01T00:00:00.000Z', level: 'info', event: 'kept' },
    { event: 'passed' },
    { time: '1970-01-01T00:00:00.000Z', level: 'error', event: 'log_dropped', lines: 303 },
  ])
  log.event('info', 'kept')
  await log.flush()
  assert.deepEqual(
    readLines(reader).map(({ event }) => event),
    ['kept'],
  )
  closeSync(reader)
})

test('B24: lines lost at the end are reported at the end, without a further line', async () => {
  const { log, openReader } = openFifo()
  log.event('info', 'lost')
  await log.flush()
  const reader = openReader()
  await log.flush()
  assert.deepEqual(
    readLines(reader).map(({ event, lines }) => [event, lines]),
    [['log_dropped', 1]],
  )
  closeSync(reader)
})

test('B24: a partly written line counts as lost, and the next one starts on a new line', async () => {
  const fifo = join(testFolder('log'), 'sink')
  execFileSync('mkfifo', [fifo])
  const reader = openSync(fifo, constants.O_RDWR | constants.O_NONBLOCK)
  const log = createLog({ level: 'info', isPretty: false, descriptor: openSync(fifo, 'w'), nowMs: () => 0 })
  // Twice as much as a pipe takes: when some of it can be read, the rest waits for a reader.
  for (let i = 0; i < 32; i++) log.event('info', 'long', { text: 'x '.repeat(2_000) })
  await until(() => {
    try {
      return readSync(reader, Buffer.alloc(100)) > 0
    } catch {
      return false
    }
  }, 'the beginning is written')
  closeSync(reader)
  // The rest of it is lost now.
  await log.flush()
  const again = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK)
  log.event('info', 'kept')
  let written = ''
  await until(() => {
    try {
      written += readText(again)
    } catch {}
    return written.includes('log_dropped')
  }, 'the next lines are written')
  assert.match(written, /[x ]\n\{"time":"1970-01-01T00:00:00.000Z","level":"info","event":"kept"\}\n/)
  closeSync(again)
})

function readText(reader: number): string {
  const buffer = Buffer.alloc(65_536)
  return buffer.toString('utf8', 0, readSync(reader, buffer))
}

function readLines(reader: number): Record<string, unknown>[] {
  return readText(reader)
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
}
