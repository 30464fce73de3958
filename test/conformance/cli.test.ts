import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { atEnd } from '../support/at-end.ts'
import { testFolder } from '../support/folder.ts'

const program = join(import.meta.dirname, '../../conformance/bin/bothsides.mjs')

async function bothsides(...words: string[]): Promise<{ code: number | null; out: string }> {
  const child = spawn(process.execPath, [program, ...words], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, BOTHSIDES_KEY: '' },
  })
  let out = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (out += chunk))
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  return { code, out }
}

/** Command lines with what is wrong with them, and the exit code. */
const wrong: [words: string[], code: number, says: RegExp][] = [
  [[], 2, /Usage: bothsides COMMAND/],
  [['--help'], 0, /--upstream-port N/],
  [['walk'], 2, /there is no command walk/],
  [['run', '--fast'], 2, /Unknown option '--fast'/],
  [['run'], 2, /run needs --adapter NAME, or --gateway URL and --key KEY/],
  [['run', '--gateway', 'here', '--key', 'k'], 2, /--gateway is a URL/],
  [['run', '--gateway', 'http://127.0.0.1:9', '--key', 'k', '--jobs', '0'], 2, /--jobs is a number from 1 on/],
  [
    ['run', '--gateway', 'http://127.0.0.1:9', '--key', 'k', '--wires', 'gemini'],
    2,
    /--wires has gemini; there are chat/,
  ],
  [['run', '--gateway', 'http://127.0.0.1:9', '--key', 'k'], 3, /127\.0\.0\.1:9 cannot be reached/],
  [['run', '--gateway', 'http://127.0.0.1:9', '--key', 'k', '--endpoint'], 2, /--endpoint needs --model NAME/],
  [['run', '--adapter', '../x'], 2, /there is no adapter \.\.\/x/],
  [['run', '--adapter', 'nobody'], 2, /there is no adapter nobody/],
  [['run', '--only', 'nothing-like-this'], 2, /no case is chosen/],
  [['run', '--level', 'must'], 2, /--level is one of MUST, SHOULD, MAY/],
  [['explain', 'nothing'], 2, /there is no case nothing/],
  [['report'], 2, /report needs the results\.json/],
]

test('a wrong command line says what is wrong, with the exit code of its kind', async () => {
  for (const [words, code, says] of wrong) {
    const ran = await bothsides(...words)
    assert.match(ran.out, says)
    assert.equal(ran.code, code, words.join(' '))
  }
})

test('explain shows the clause, both sides and the bytes of a case', async () => {
  const { code, out } = await bothsides('explain', 'text-deltas-join-to-the-text')
  assert.equal(code, 0)
  assert.match(out, /^# streams\/text-deltas-join-to-the-text\n\nMUST: /)
  for (const text of ['Clause: Anthropic', '"messages"', '## The model is asked, request 1', 'chat.completion.chunk'])
    assert.ok(out.includes(text), text)
})

/** A gateway of one wire for each model, which passes on what it is sent. `x` in its key breaks texts. */
async function startGateway(port: () => number): Promise<string> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    if (request.method === 'GET') return response.end()
    const answer = await fetch(`http://127.0.0.1:${port()}${request.url}`, {
      method: 'POST',
      body: Buffer.concat(chunks),
    })
    const text = await answer.text()
    const isBroken = request.headers.authorization === 'Bearer x'
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type')! })
    response.end(isBroken ? text.replaceAll('Grüße', '') : text)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
}

test('run against a gateway prints what to configure, reports, and exits by what failed', async () => {
  const folder = testFolder('bothsides')
  const free = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => free.once('listening', resolve))
  const { port } = free.address() as AddressInfo
  await new Promise((resolve) => free.close(resolve))
  const gateway = await startGateway(() => port)
  const run = (...words: string[]) =>
    bothsides(
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
  assert.match(good.out, /http:\/\/127\.0\.0\.1:\d+ \(with \/v1/)
  for (const text of ['bothsides-chat ', 'bothsides-chat-2 ']) assert.ok(good.out.includes(text), text)
  const kept = JSON.parse(readFileSync(join(folder, 'results.json'), 'utf8'))
  const verdicts = Object.fromEntries(
    kept.results.map((one: { pair: string; verdict: string }) => [one.pair, one.verdict]),
  )
  assert.equal(verdicts['chat>chat'], 'pass')
  assert.equal(verdicts['chat>messages'], 'unsupported')
  for (const name of ['results.md', 'results.xml', 'must.svg', 'should.svg', 'may.svg'])
    assert.ok(readFileSync(join(folder, name), 'utf8').length > 100)
  const page = await bothsides('report', join(folder, 'results.json'))
  assert.equal(page.out.trim(), readFileSync(join(folder, 'results.md'), 'utf8').trim())

  const same = ['--key', 'x']
  const bad = await run(...same)
  assert.match(bad.out, /fail +MUST +answers\/text-is-kept chat>chat\n +client, step 1: text is/)
  assert.equal(bad.code, 1)
  const baseline = join(folder, 'baseline.json')
  writeFileSync(baseline, JSON.stringify([{ case: 'answers/text-is-kept', why: 'It drops greetings.' }]))
  assert.equal((await run(...same, '--baseline', baseline)).code, 0)
  const stale = await run('--key', 'k', '--baseline', baseline)
  assert.match(stale.out, /stale: the baseline expects answers\/text-is-kept to fail, and it does not/)
  assert.equal(stale.code, 1)
  writeFileSync(baseline, '[{"case":"answers/text-is-kept"}]')
  assert.equal((await run(...same, '--baseline', baseline)).code, 2)
})
