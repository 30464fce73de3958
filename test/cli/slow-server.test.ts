import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import test from 'node:test'
import { Command } from 'commander'
import { adminOption, askServer } from '../../src/cli/admin.ts'
import { listen } from '../support/listen.ts'
import { runWarm } from './run.ts'

// The server sends this much of its answer, and then nothing. The test shortens the five seconds of patience.
for (const [stage, start] of [
  ['its answer begins', ''],
  ['its answer is complete', 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{'],
] as const)
  test(`a server that is silent before ${stage} is reported as slow, not as missing`, async (t) => {
    const server = createServer(({ socket }) => void socket.write(start))
    const port = await listen(server)
    const timeout = AbortSignal.timeout.bind(AbortSignal)
    t.mock.method(AbortSignal, 'timeout', () => timeout(100))
    process.env['TRIWIRE_TOKEN'] = 'tri-op-any'
    const address = `127.0.0.1:${port}`
    const command = new Command().option(...adminOption).parse(['--admin-listen', address], { from: 'user' })
    assert.deepEqual(await askServer(command, '/api/v1/status'), {
      trouble: `the server on http://${address} did not answer in 5 s: it is busy or stuck. Read its log, or name another address with --admin-listen`,
    })
  })

test('a list in another order than by time is one page: the command says so if more rows were asked for', async () => {
  const items = Array.from({ length: 200 }, (_, n) => ({ request_id: `req_${n}`, at: '2026-11-29T00:00:00.000Z' }))
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ items, next: null }))
  })
  const address = `127.0.0.1:${await listen(server)}`
  const ask = async (...words: string[]) => {
    const env = { TRIWIRE_TOKEN: 'tri-op-any' }
    const { stdout, stderr } = await runWarm(['requests', ...words, '--admin-listen', address], { env })
    assert.equal(stdout.split('\n').filter((line) => line.includes('req_')).length, 200, stderr)
    return stderr
  }
  const said = /^note: no more than 200 rows are listed in this order; the console exports up to 5000 as CSV$/m
  assert.match(await ask('--sort', '-credits', '--limit', '500'), said)
  assert.doesNotMatch(await ask('--sort', '-credits', '--limit', '200'), said)
  assert.doesNotMatch(await ask('--limit', '500'), said)
})
