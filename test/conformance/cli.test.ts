import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { writeAnswer, writeStream } from '../../conformance/src/answer.ts'
import { createProofs } from '../../conformance/src/bad-traces.ts'
import { type Case, type Json, type Wire, wires } from '../../conformance/src/case.ts'
import { explain } from '../../conformance/src/explain.ts'
import { isObject, type JsonObject, parse } from '../../conformance/src/json.ts'
import { loadCases, pairsOf } from '../../conformance/src/load-cases.ts'
import { advice, whyUnreachable } from '../../conformance/src/reach.ts'
import { clientWires } from '../../conformance/src/wires/index.ts'
import { createWarm } from '../cli/run.ts'
import { testFolder } from '../support/folder.ts'
import { freePort, listen } from '../support/listen.ts'
import { until } from '../support/waiting.ts'
import { readPrinted } from './support/printed.ts'
import { isRunning } from './support/running.ts'

const root = join(import.meta.dirname, '../../conformance')
const program = join(root, 'bin/bothsides.mjs')

async function bothsides(...words: string[]): Promise<{ code: number | null; out: string }> {
  return bothsidesWith({}, ...words)
}

async function bothsidesWith(
  env: NodeJS.ProcessEnv,
  ...words: string[]
): Promise<{ code: number | null; out: string }> {
  const child = spawn(process.execPath, [program, ...words], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, BOTHSIDES_KEY: '', ...env },
  })
  let out = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (out += chunk))
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  return { code, out }
}

/** The same in the one process of this file that runs them. */
const runWarm = createWarm(join(import.meta.dirname, '../../conformance/src/cli.ts'))

async function bothsidesWarm(...words: string[]): Promise<{ code: number; out: string }> {
  const { code, stdout, stderr } = await runWarm(words, { env: { BOTHSIDES_KEY: '' } })
  return { code, out: stdout + stderr }
}

/** An address where nothing listens, with a key. */
const here = ['--gateway', 'http://127.0.0.1:9', '--key', 'k']

/** Command lines with what is wrong with them, and the exit code. */
const wrong: [words: string[], code: number, says: RegExp][] = [
  [[], 2, /Usage: bothsides COMMAND/],
  [['--help'], 0, /--upstream-port N/],
  [['walk'], 2, /there is no command walk/],
  [['run', '--fast'], 2, /Unknown option '--fast'/],
  [['run'], 2, /run needs --adapter NAME, or --gateway URL and --key KEY/],
  [['run', '--gateway', 'here', '--key', 'k'], 2, /--gateway is a URL/],
  [['run', '--gateway', 'http://127.0.0.1:9', '--key', 'k', '--jobs', '0'], 2, /--jobs is a number from 1 to 65535/],
  [
    ['run', '--gateway', 'http://127.0.0.1:9', '--key', 'k', '--wires', 'gemini'],
    2,
    /--wires has gemini; there are chat/,
  ],
  [['run', '--gateway', 'http://127.0.0.1:9', '--key', 'k'], 3, /127\.0\.0\.1:9 cannot be reached/],
  [['run', '--gateway', 'http://127.0.0.1:9', '--key', 'k', '--endpoint'], 2, /--endpoint needs --model NAME/],
  [['run', '--adapter', '../x'], 2, /there is no adapter \.\.\/x/],
  [['run', '--adapter', 'nobody'], 2, /there is no adapter nobody/],
  [['run', '--adapter', '../adapters/triwire'], 2, /there is no adapter \.\.\/adapters\/triwire/],
  [['run', '--only', 'nothing-like-this'], 2, /no case has "nothing-like-this" in its id/],
  [['run', '--only', 'money/', '--level', 'MAY'], 2, /no case is chosen/],
  [['run', '--level', 'must'], 2, /--level is one of MUST, SHOULD, MAY/],
  [['explain', 'nothing'], 2, /there is no case nothing/],
  [['report', program], 2, /cannot be read as JSON/],
  [['report', join(import.meta.dirname, '../../conformance/package.json')], 2, /is no results\.json of a run/],
  [['run', '--adapter', 'triwire', '--upstream-port', 'abc'], 2, /--upstream-port is a number/],
  [['report'], 2, /report needs the results\.json/],
  [['explain'], 2, /explain needs the id of a case/],
  [['run', 'litellm'], 2, /run --gateway does not take the word litellm/],
  [['check', 'tools'], 2, /check does not take the word tools/],
  [['explain', 'a', 'b'], 2, /explain does not take the word b/],
  [['explain', 'a', '--out', 'b'], 2, /--out does not go with explain/],
  [['run', '--adapter', 'triwire', '--gateway', 'http://127.0.0.1:9'], 2, /--gateway does not go with run --adapter/],
  [['run', '--adapter', 'triwire', '--lanes', '2'], 2, /--lanes does not go with run --adapter/],
  [['run', ...here, '--model', 'm'], 2, /--model does not go with run --gateway/],
  [['run', ...here, '--endpoint', '--model', 'm', '--lanes', '2'], 2, /--lanes does not go with run --endpoint/],
  [['run', ...here, '--only', 'tools/', '--only', 'tols/'], 2, /--only: no case has "tols\/" in its id/],
  [['run', ...here, '--only', 'tools/', '--only', 'money/'], 3, /cannot be reached/],
  [['run', ...here, '--upstream-port', '65536'], 2, /--upstream-port is a number from 1 to 65535/],
  [['run', ...here, '--out', join(program, 'x')], 2, /--out: .+ cannot be written to: /],
  [['run', ...here, '--key', ''], 2, /--key KEY/],
]

test('a wrong command line reports the error, with the exit code of its kind', async () => {
  for (const [words, code, says] of wrong) {
    const ran = await bothsidesWarm(...words)
    assert.match(ran.out, says)
    assert.equal(ran.code, code, words.join(' '))
  }
})

/** Command lines with every option that goes with them, and the last error of each. */
const whole: [words: string[], says: RegExp][] = [
  [['run', '--adapter', 'nobody', '--upstream-port', '1', '--jobs', '1'], /^there is no adapter nobody\n$/],
  [
    ['run', ...here, '--upstream-port', '1', '--wires', 'chat', '--jobs', '1', '--lanes', '1'],
    /\nhttp:\/\/127\.0\.0\.1:9 cannot be reached: bad port\n$/,
  ],
  [
    ['run', ...here, '--endpoint', '--model', 'm', '--jobs', '1'],
    /^http:\/\/127\.0\.0\.1:9 cannot be reached: bad port\n$/,
  ],
]

test('each kind of run takes its options, and makes the folder of its report before it runs', async () => {
  const folder = testFolder('bothsides')
  const baseline = join(folder, 'baseline.json')
  writeFileSync(baseline, '[]')
  for (const [at, [words, says]] of whole.entries()) {
    const out = join(folder, String(at), 'out')
    const more = [
      '--only',
      'answers/',
      '--only',
      'tools/',
      '--level',
      'MUST',
      '--baseline',
      baseline,
      '--prove',
      '--out',
      out,
    ]
    if (at === 2) more.splice(0, 6, '--only', '/')
    const ran = await bothsidesWarm(...words, ...more)
    assert.match(ran.out, says)
    assert.deepEqual(readdirSync(out), [])
  }
})

test('the address of a gateway loses its /v1 and slashes at the end, and the key may be in the environment', async () => {
  for (const [address, origin] of [
    ['http://127.0.0.1:9/v1', 'http://127.0.0.1:9'],
    ['http://127.0.0.1:9//v1//', 'http://127.0.0.1:9'],
    ['http://127.0.0.1:9/a/v1/', 'http://127.0.0.1:9/a'],
    ['http://127.0.0.1:9/v1/a/', 'http://127.0.0.1:9/v1/a'],
    ['https://127.0.0.1:9/', 'https://127.0.0.1:9'],
  ] as const) {
    const { stderr } = await runWarm(['run', '--gateway', address], { env: { BOTHSIDES_KEY: 'k' } })
    assert.equal(stderr, `${origin} cannot be reached: bad port\n`)
  }
  for (const address of ['ftp://127.0.0.1:9', 'xhttp://127.0.0.1:9', '127.0.0.1:9']) {
    const { stderr, code } = await runWarm(['run', '--gateway', address, '--key', 'k'])
    assert.deepEqual([code, stderr], [2, '--gateway is a URL such as http://127.0.0.1:8080\n'])
  }
})

test('the models to configure are listed by lane up to four lanes, and shortened from five on', async () => {
  const setting = async (...words: string[]) => (await runWarm(['run', ...here, ...words])).stdout
  const [before, after] = readPrinted('setting.txt').split(
    '\n  bothsides-chat           chat\n  bothsides-chat-2         chat\n',
  )
  const listed = (port: number, lines: string[]) =>
    `${before}\n${lines.join('\n')}\n${after}\n`.replace('PORT', String(port))
  const line = (wire: string, lane: string) => `  bothsides-${wire}${lane}`.padEnd(27) + wire
  const wires = ['chat', 'responses', 'messages']
  assert.equal(
    await setting(),
    `${listed(
      8970,
      wires.map((wire) => line(wire, '')),
    )}`,
  )
  assert.equal(
    await setting('--wires', 'messages,chat', '--lanes', '4', '--upstream-port', '65535'),
    listed(
      65535,
      ['messages', 'chat'].flatMap((wire) => ['', '-2', '-3', '-4'].map((lane) => line(wire, lane))),
    ),
  )
  assert.equal(
    await setting('--wires', 'chat', '--jobs', '5', '--lanes', '2'),
    listed(8970, ['  bothsides-chat, bothsides-chat-2 … bothsides-chat-5   chat']),
  )
})

test('the help equals the text in test/conformance/printed, to the byte', async () => {
  assert.equal((await bothsidesWarm('--help')).out, readPrinted('help.txt'))
})

test('check lists all cases, and counts them by level', async () => {
  const cases = loadCases()
  const lines = cases.map((one) => {
    const count = pairsOf(one).length
    return `${`${one.level}   `.slice(0, 6)} ${one.id}, ${count} pairs: ${one.title}`
  })
  const count = (level: string) => cases.filter((one) => one.level === level).length
  lines.push(`${cases.length} cases: ${count('MUST')} MUST, ${count('SHOULD')} SHOULD, ${count('MAY')} MAY\n`)
  assert.deepEqual(await bothsidesWarm('check'), { code: 0, out: lines.join('\n') })
})

test('a report with invalid entries is refused with its name', async () => {
  const file = join(testFolder('bothsides'), 'results.json')
  const whole = { gateway: { name: 'a', version: '1' }, switchedOn: [], results: [] }
  const entry = { case: 'a/b', area: 'a', level: 'MUST', pair: 'chat>chat', verdict: 'pass', differences: [] }
  const faults = [
    [],
    null,
    { ...whole, results: [null] },
    { ...whole, results: [{ ...entry, case: 1 }] },
    { ...whole, results: [{ ...entry, level: 'must' }] },
    { ...whole, results: [{ ...entry, differences: undefined }] },
    { ...whole, results: [{ ...entry, verdict: 'good' }] },
    { ...whole, gateway: undefined },
    { ...whole, gateway: {} },
    { ...whole, results: 'none' },
    { ...whole, results: [entry, {}] },
    { ...whole, switchedOn: undefined },
  ]
  for (const content of faults) {
    writeFileSync(file, JSON.stringify(content))
    const ran = await bothsidesWarm('report', file)
    assert.match(ran.out, /^.+ is no results\.json of a run\n$/, JSON.stringify(content))
    assert.equal(ran.code, 2)
  }
  writeFileSync(file, JSON.stringify({ ...whole, results: [entry] }))
  assert.equal((await bothsidesWarm('report', file)).code, 0)
  const out = join(testFolder('bothsides'), 'pages')
  assert.deepEqual(await bothsidesWarm('report', file, '--out', out), { code: 0, out: '' })
  const written = ['may.svg', 'must.svg', 'results.json', 'results.md', 'results.xml', 'should.svg']
  assert.deepEqual(readdirSync(out).sort(), written)
})

test('explain prints the page of a case, which is named by its id or by the end of it', async () => {
  const id = 'streams/text-deltas-join-to-the-text'
  const page = `${explain(loadCases().find((one) => one.id === id)!)}\n`
  assert.deepEqual(await bothsidesWarm('explain', id), { code: 0, out: page })
  assert.deepEqual(await bothsides('explain', 'text-deltas-join-to-the-text'), { code: 0, out: page })
})

/** A gateway of one wire for each model, which passes on what it is sent. `x` in its key breaks texts. */
async function startGateway(port: () => number): Promise<string> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    if (request.method === 'GET') return response.end()
    if (Buffer.concat(chunks).includes('bothsides-messages')) return response.writeHead(404).end()
    const answer = await fetch(`http://127.0.0.1:${port()}${request.url}`, {
      method: 'POST',
      body: Buffer.concat(chunks),
    })
    const text = await answer.text()
    const isBroken = request.headers.authorization === 'Bearer x'
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type')! })
    response.end(isBroken ? text.replaceAll('Grüße', '') : text)
  })
  return `http://127.0.0.1:${await listen(server)}/v1`
}

test('run against a gateway prints what to configure, reports, and exits with a code for its failures', async () => {
  const folder = testFolder('bothsides')
  const port = await freePort()
  const gateway = await startGateway(() => port)
  const run = (...words: string[]) =>
    bothsidesWarm(
      'run',
      '--gateway',
      gateway,
      '--upstream-port',
      String(port),
      '--wires',
      'chat',
      '--only',
      'text-is-kept',
      ...words,
    )

  const good = await run('--key', 'k', '--out', folder, '--jobs', '2')
  assert.ok(good.out.startsWith(readPrinted('setting.txt').replace('PORT', String(port))), good.out)
  const kept = JSON.parse(readFileSync(join(folder, 'results.json'), 'utf8'))
  const verdicts = Object.fromEntries(
    kept.results.map((one: { pair: string; verdict: string }) => [one.pair, one.verdict]),
  )
  assert.equal(verdicts['chat>chat'], 'pass')
  assert.equal(verdicts['chat>messages'], 'unsupported')
  for (const name of ['results.md', 'results.xml', 'must.svg', 'should.svg', 'may.svg'])
    assert.ok(readFileSync(join(folder, name), 'utf8').length > 100)
  const page = await bothsidesWarm('report', join(folder, 'results.json'))
  assert.equal(page.out.trim(), readFileSync(join(folder, 'results.md'), 'utf8').trim())

  assert.deepEqual(kept.gateway, { name: gateway.replace('/v1', ''), version: 'unknown' })
  for (const { ms } of kept.results) assert.ok(ms >= 0 && ms < 60_000, `${ms} ms`)
  assert.ok(kept.seconds >= 0 && kept.seconds < 60, `${kept.seconds} s`)
  assert.match(kept.day, /^\d{4}-\d\d-\d\d$/)
  const proved = await run('--key', 'k', '--prove')
  assert.match(
    proved.out,
    /\n(\d+) of \1 expectations of \d+ runs noticed one of \d+ wrong runs; \d+ wrong runs were noticed\n$/,
  )
  assert.equal(proved.code, 0)

  const same = ['--key', 'x']
  const bad = await run(...same)
  assert.match(bad.out, /fail +MUST +answers\/text-is-kept chat>chat\n +client, step 1: text is/)
  assert.equal(bad.code, 1)
  const runsOf = (out: string) => Number(/ expectations of (\d+) runs /.exec(out)![1])
  assert.ok(runsOf((await run(...same, '--prove')).out) < runsOf(proved.out), 'what fails proves nothing')
  const baseline = join(folder, 'baseline.json')
  writeFileSync(baseline, JSON.stringify([{ case: 'answers/text-is-kept', why: 'It drops greetings.' }]))
  assert.equal((await run(...same, '--baseline', baseline)).code, 0)
  const half = await run('--key', 'k', '--wires', 'chat,messages')
  assert.match(
    half.out,
    /does not ask the model:\n {2}bothsides-messages on messages: 404\nConfigure it, or leave it out/,
  )
  assert.match(half.out, /\n\d+ expansions in \d+ s; \d+ of MUST and SHOULD fail unexpectedly\n$/)
  const stale = await run('--key', 'k', '--baseline', baseline)
  assert.match(stale.out, /stale: the baseline expects answers\/text-is-kept to fail, and it does not/)
  assert.equal(stale.code, 1)
  writeFileSync(baseline, '[{"case":"answers/text-is-kept"}]')
  assert.equal((await run(...same, '--baseline', baseline)).code, 2)
})

test('all that a run against a gateway prints is what test/conformance/printed has, but for port and time', async () => {
  const port = await freePort()
  const gateway = await startGateway(() => port)
  const baseline = join(testFolder('bothsides'), 'baseline.json')
  const why = 'It drops greetings.'
  writeFileSync(
    baseline,
    JSON.stringify([
      { case: 'answers/text-is-kept', pair: 'chat>chat', why },
      { case: 'answers/text-is-kept', pair: 'chat>messages', why },
      { case: 'errors/chat-wrong-key', why },
      { case: 'money/money-failed-free', why },
    ]),
  )
  const words = ['run', '--gateway', gateway, '--key', 'x', '--upstream-port', String(port), '--wires', 'chat,messages']
  for (const id of ['text-is-kept', 'chat-wrong-key', 'chat-json-content-type', 'chat-stream-done'])
    words.push('--only', id)
  const ran = await bothsidesWarm(...words, '--baseline', baseline)
  assert.equal(ran.out.replace(`:${port} `, ':PORT ').replace(/ in \d+ s;/, ' in N s;'), readPrinted('run.txt'))
  assert.equal(ran.code, 1)
})

test('the cases for any model pass at an endpoint that answers well, and fail at one that does not', async () => {
  const answer = { text: 'Hello there.' }
  const path = (wire: Wire) => clientWires[wire].path
  let isGood = true
  const endpoint = await serve(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = parse(Buffer.concat(chunks).toString())
    const wire = wires.find((name) => request.url === path(name))
    if (!wire) return response.end()
    const refuse = (status: number, type: string) =>
      response.writeHead(status).end(JSON.stringify({ type: 'error', error: { type, message: 'no' } }))
    const keys = [request.headers.authorization ?? 'Bearer k', request.headers['x-api-key'] ?? 'k']
    if (keys.join() !== 'Bearer k,k') return refuse(401, 'authentication_error')
    if (!isObject(body) || (wire === 'messages' && !body['max_tokens'])) return refuse(400, 'invalid_request_error')
    const whole = writeAnswer(wire, answer, body['model'] as string)
    if (!body['stream']) return response.end(isGood ? JSON.stringify(whole) : '{}')
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const event of writeStream(wire, whole, {})) {
      const { data } = event as { data: Json }
      if (wire === 'messages') response.write(`event: ${(data as JsonObject)['type']}\n`)
      response.write(`data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`)
    }
    response.end()
  })
  const run = () => bothsidesWarm('run', '--endpoint', '--gateway', endpoint, '--key', 'k', '--model', 'm')
  const good = await run()
  assert.match(
    good.out,
    /^\nA case .*\n\n.*\n.*\n\| MUST \| 16 \| 0 \|.*\n\| SHOULD \| 1 \| 0 \|.*\n\| MAY \| 0 .*\n\n17 expansions in \d+ s; 0 of/,
  )
  assert.equal(good.code, 0)
  isGood = false
  const bad = await run()
  assert.match(bad.out, /^fail +MUST +answers\/chat-answer-envelope chat>chat\n/m)
  assert.equal(bad.code, 1)
})

test('a gateway that keeps the model away from more than five cases gets advice', async () => {
  const port = await freePort()
  let left = 0
  const model = `http://127.0.0.1:${port}/v1/messages`
  const gateway = await serve(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    if (request.method !== 'POST' || left-- <= 0) return response.writeHead(503).end('{}')
    response.end(await (await fetch(model, { method: 'POST', body: Buffer.concat(chunks) })).text())
  })
  const run = async (...only: string[]) => {
    left = 1
    const words = ['--gateway', gateway, '--key', 'k', '--upstream-port', String(port), '--wires', 'messages']
    return (await bothsidesWarm('run', ...words, ...only.flatMap((text) => ['--only', `answers/chat-${text}`]))).out
  }
  const six = await run('answer-', 'json-content-type')
  assert.equal(six.match(/^fail /gm)?.length, 6)
  assert.ok(six.includes(`\n${advice}\n`), six)
  const five = await run('answer-')
  assert.equal(five.match(/^fail /gm)?.length, 5)
  assert.ok(!five.includes('--lanes 120'), five)
})

test('an expectation that no wrong run can fail is called blind, and a run that differs proves nothing', () => {
  const anything = { $oneOf: [{ $present: true }, { $absent: true }] }
  const one = { id: 'a/b', client: { '*': { steps: [{ request: {}, expect: { status: 200, text: anything } }] } } }
  const step = { status: 200, headers: {}, raw: '', events: [], ended: 'complete', done: false }
  const prove = (...statuses: number[]) => {
    const proofs = createProofs()
    for (const status of statuses)
      proofs.add(
        one as unknown as Case,
        { client: 'chat', model: 'messages' },
        { steps: [{ ...step, status }], asked: [] } as never,
        { client: 'm', upstream: 'm' },
      )
    return proofs.tell()
  }
  assert.deepEqual(prove(500), {
    text: '0 of 0 expectations of 0 runs noticed one of 0 wrong runs; 0 wrong runs were noticed',
    isBlind: false,
  })
  const blind = 'blind: no wrong run was noticed by a/b chat>messages, client, step 1: text\n'
  assert.deepEqual(prove(500, 200), {
    text: `${blind}1 of 2 expectations of 1 runs noticed one of 49 wrong runs; 13 wrong runs were noticed`,
    isBlind: true,
  })
  assert.deepEqual(prove(200, 200), {
    text: `${blind}${blind}2 of 4 expectations of 2 runs noticed one of 98 wrong runs; 26 wrong runs were noticed`,
    isBlind: true,
  })
})

/** A gateway that answers each request with nothing in JSON, and leaves a file when it is stopped. */
const empty = `
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
const [, program, verb, ...words] = process.argv
if (verb === '--version') console.log('7')
else if (verb !== 'serve') console.log('{"key":"k","token":"t"}')
else {
  const config = readFileSync(words[words.indexOf('--config') + 1], 'utf8')
  writeFileSync(program + '.config', config)
  const { listen, admin_listen } = JSON.parse(config)
  for (const address of [listen, admin_listen])
    createServer((_, response) => response.end('{}')).listen(Number(address.split(':')[1]), '127.0.0.1')
  process.once('SIGTERM', () => process.exit(writeFileSync(program + '.stopped', '')))
}`

test('an adapter is run and stopped, and at most four reasons of its failures are shown', async () => {
  const folder = testFolder('bothsides')
  const program = join(folder, 'empty.mjs')
  writeFileSync(program, empty)
  const ran = await bothsidesWith({ TRIWIRE: program }, 'run', '--adapter', 'triwire', '--only', 'answers/')
  const reasons = ran.out.matchAll(/^fail .+\n((?: {14}.+\n)+)/gm).map(([, lines]) => lines!.trim().split('\n').length)
  assert.equal(Math.max(...reasons), 4)
  assert.equal(ran.code, 1)
  const [port, out] = [String(await freePort()), join(folder, 'out')]
  const words = ['run', '--adapter', 'triwire', '--level', 'MAY', '--upstream-port', port, '--out', out]
  const may = await bothsidesWith({ TRIWIRE: program }, ...words)
  assert.match(may.out, /\nfail +MAY /)
  assert.equal(may.code, 0)
  assert.equal(readFileSync(`${program}.stopped`, 'utf8'), '')

  const { catalog, upstreams } = JSON.parse(readFileSync(`${program}.config`, 'utf8'))
  const names = catalog.models.map((model: { id: string; upstream: string }) => [model.id, model.upstream])
  const expected = ['chat', 'responses', 'messages'].flatMap((wire) =>
    Array.from({ length: 120 }, (_, at) => `bothsides-${wire}${at === 0 ? '' : `-${at + 1}`}`),
  )
  assert.deepEqual(
    names,
    expected.map((name) => [name, name]),
  )
  assert.deepEqual(catalog.models[0].prices, { input: '2', cache_read: '0.5', cache_write: '2.5', output: '8' })
  assert.deepEqual(upstreams['bothsides-chat'], {
    base_url: `http://127.0.0.1:${port}`,
    accounts: [{ name: 'main', key: 'bothsides-upstream-key' }],
  })
  const kept = readFileSync(join(out, 'results.json'), 'utf8')
  const report = JSON.parse(kept)
  assert.equal(kept, `${JSON.stringify(report, null, 1)}\n`)
  assert.deepEqual(
    [report.gateway, report.node, report.switchedOn.length],
    [{ name: 'triwire', version: '7' }, process.versions.node, 5],
  )
  assert.equal(report.suite, JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version)
  assert.deepEqual([...new Set(report.results.map(({ level }: { level: string }) => level))], ['MAY'])
  assert.ok(readFileSync(join(out, 'may.svg'), 'utf8').includes('>MAY '))
})

test('an adapter whose gateway does not start ends the run with its output, and leaves no files', async () => {
  const folder = testFolder('bothsides')
  const broken = join(folder, 'broken.mjs')
  writeFileSync(
    broken,
    `if (process.argv[2] === '--version') console.log('7')\nelse throw new Error('no such command')`,
  )
  const temporary = join(folder, 'tmp')
  mkdirSync(temporary)
  const run = (program: string) =>
    bothsidesWith({ TRIWIRE: program, TMPDIR: temporary }, 'run', '--adapter', 'triwire', '--only', 'text-is-kept')
  const ran = await run(broken)
  assert.match(ran.out, /triwire does not start: [\s\S]*no such command/)
  assert.equal(ran.code, 3)
  assert.deepEqual(readdirSync(temporary), [])
  const absent = await run(join(folder, 'absent.mjs'))
  assert.match(
    absent.out,
    /^triwire: .+absent\.mjs is not there: outside a checkout of triwire, set TRIWIRE to its bin/,
  )
  assert.equal(absent.code, 3)
})

/** A server that answers as `answer` says. */
async function serve(answer: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listen(createServer(answer))}`
}

test('a gateway that asks no model ends the run before the cases, and its answer is shown', async () => {
  const asked: string[] = []
  const elsewhere = await serve((request, response) => {
    asked.push(request.url!)
    response.end()
  })
  // Its page for people is elsewhere, and what it redirects to is not asked.
  const gateway = await serve((request, response) => {
    if (request.method === 'GET') return response.writeHead(302, { location: `${elsewhere}/login` }).end()
    response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":{"message":"this key is unknown"}}')
  })
  const port = `${await freePort()}`
  const run = await bothsidesWarm('run', '--gateway', gateway, '--key', 'k', '--upstream-port', port)
  assert.match(run.out, /bothsides-messages +messages\n/)
  assert.match(run.out, /does not ask the model:\n {2}bothsides-chat on chat: 401 .*this key is unknown/)
  assert.match(run.out, /Check --key, and that the models above are configured\.\n$/)
  assert.equal(run.code, 3)
  const endpoint = await bothsidesWarm('run', '--endpoint', '--gateway', gateway, '--key', 'k', '--model', 'm')
  assert.doesNotMatch(endpoint.out, /needs these models/)
  assert.match(endpoint.out, /The endpoint gives no answer:\n {2}m on chat: 401[\s\S]*Check --key and --model\.\n$/)
  assert.equal(endpoint.code, 3)
  assert.deepEqual(asked, [])
})

test('a port in use for the model ends the run with its number', async () => {
  const gateway = await serve((_, response) => response.end())
  const { port } = new URL(gateway)
  const ran = await bothsidesWarm('run', '--gateway', gateway, '--key', 'k', '--upstream-port', port)
  assert.match(ran.out, new RegExp(`\nthe model cannot listen on port ${port}: .+EADDRINUSE`))
  assert.equal(ran.code, 3)
})

test('a gateway that never answers is reported as unreachable', async () => {
  const gateway = await serve(() => {})
  assert.equal(await whyUnreachable(gateway, 20), 'no answer in 0.02 s')
})

test('an interrupted run ends at once, with the exit code of its signal', async () => {
  const port = `${await freePort()}`
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    const gateway = await serve((request, response) => {
      if (request.method === 'GET') return response.end()
      child.kill(signal)
    })
    const child = spawn(
      process.execPath,
      [program, 'run', '--gateway', gateway, '--key', 'k', '--upstream-port', port],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    )
    let out = ''
    child.stderr.on('data', (chunk) => (out += chunk))
    assert.equal(await new Promise((resolve) => child.on('close', resolve)), code)
    assert.match(out, /^interrupted: what was started is stopped\n$/)
  }
})

test('a run that is interrupted while its gateway starts stops it, and ends with the exit code of the signal', async () => {
  const folder = testFolder('bothsides')
  const slow = join(folder, 'slow.mjs')
  const begun = `import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
if (process.argv[2] === '--version') console.log('7')
else if (process.argv[2] !== 'serve') console.log('{"key":"k","token":"t"}')
else {
  writeFileSync(process.argv[1] + '.begun', String(process.pid))
  createServer().listen({ port: 0, host: '127.0.0.1' })
}`
  writeFileSync(slow, begun)
  const child = spawn(process.execPath, [program, 'run', '--adapter', 'triwire', '--only', 'text-is-kept'], {
    stdio: 'ignore',
    env: { ...process.env, TRIWIRE: slow },
  })
  await until(() => existsSync(`${slow}.begun`) && readFileSync(`${slow}.begun`, 'utf8'))
  child.kill('SIGTERM')
  assert.equal(await new Promise((resolve) => child.on('close', resolve)), 143)
  const gateway = Number(readFileSync(`${slow}.begun`, 'utf8'))
  await until(() => !isRunning(gateway))
})

test('a baseline that names no case of the suite is an error', async () => {
  const folder = testFolder('bothsides')
  const file = join(folder, 'baseline.json')
  for (const [content, says] of [
    ['[{"case":"answers/text-is-lost","why":"w"}]', /there is no case answers\/text-is-lost/],
    ['[null]', /each entry has a case and why; null has not/],
    ['{}', /is a list of entries/],
    ['[', /baseline\.json cannot be read as JSON/],
  ] as const) {
    writeFileSync(file, content)
    const ran = await bothsidesWarm('run', ...here, '--baseline', file)
    assert.match(ran.out, says)
    assert.equal(ran.code, 2)
  }
})

test('a Node that does not strip types gets a message with the requirement', () => {
  const old = spawnSync(process.execPath, ['--no-strip-types', program, 'check'], {
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: '' },
  })
  assert.match(old.stderr, /^bothsides needs Node\.js 22\.18 or later; this is \d/)
  assert.equal(old.status, 2)
  const installed = join(testFolder('bothsides'), 'node_modules/bothsides/bin')
  mkdirSync(installed, { recursive: true })
  copyFileSync(program, join(installed, 'bothsides.mjs'))
  const below = spawnSync(process.execPath, [join(installed, 'bothsides.mjs'), 'check'], { encoding: 'utf8' })
  assert.match(below.stderr, /from a checkout or an unpacked archive, not from node_modules/)
  assert.equal(below.status, 2)
})
