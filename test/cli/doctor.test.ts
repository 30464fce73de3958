import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import test, { after, before } from 'node:test'
import { startTestGateway, type TestGateway, testModel } from '../support/gateway.ts'
import { run } from './run.ts'

type Row = { wire: string; probe: string; result: string; detail: string }

let gateway: TestGateway
before(async () => {
  const model = (id: string, upstream_model: string) => testModel(id, 'chat', { upstream_model, profile: 'simulator' })
  const models = [
    ...(['messages', 'chat', 'responses'] as const).map((wire) =>
      testModel(`well-${wire}`, wire, { upstream_model: 'sim', profile: 'simulator' }),
    ),
    model('cut', 'sim?cut_events=3'),
    model('deaf', 'sim?reply=Hm'),
  ]
  gateway = await startTestGateway({ models, config: { limits: { failed_auth_per_minute: 1_000 } } })
})
after(() => gateway.close())

async function doctor(model: string, baseUrl = gateway.url) {
  const args = ['doctor', '--key', gateway.key, '--model', model, '--base-url', baseUrl, '--json']
  const { code, stdout, stderr } = await run(args)
  const findings: Row[] = stdout ? JSON.parse(stdout).findings : []
  const of = (result: string) =>
    findings.filter((row) => row.result === result).map(({ wire, probe }) => `${wire} ${probe}`)
  return { code, stderr, findings, failed: of('failed'), noted: of('note') }
}

for (const wire of ['messages', 'chat', 'responses'] as const) {
  test(`doctor finds nothing wrong on any wire with a well-behaved ${wire} model`, async () => {
    const { code, findings, failed, noted } = await doctor(`well-${wire}`)
    assert.deepEqual(failed, [])
    assert.equal(code, 0)
    assert.equal(findings.length, 21)
    // Translation of chat has no way to ask for a summary.
    assert.deepEqual(noted, wire === 'responses' ? ['chat reasoning'] : [])
  })
}

test('doctor says which streams end without their terminator, and exits 1', async () => {
  const { code, failed, findings } = await doctor('cut')
  assert.equal(code, 1)
  assert.deepEqual(failed.slice(0, 4), ['messages text', 'messages stream', 'messages tool call', 'messages reasoning'])
  const stream = findings.find(({ wire, probe }) => wire === 'chat' && probe === 'stream')
  assert.equal(stream?.detail, 'the stream ended without its terminator')
})

test('doctor says where a model does not call the tool that it must', async () => {
  const { code, failed } = await doctor('deaf')
  assert.equal(code, 1)
  assert.deepEqual(failed, ['messages tool call', 'chat tool call', 'responses tool call'])
})

test('doctor works against any base URL, and tells a server that is no gateway', async () => {
  const server = createServer((_request, response) => response.end('hello'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/`
  const strange = await doctor('any', url)
  server.close()
  assert.equal(strange.code, 1)
  assert.equal(strange.failed.length, 21)
  assert.match(strange.findings[0]!.detail, /not a JSON object/)
})

test('doctor without a model takes the first of the list, and prints a table', async () => {
  const { code, stdout } = await run(['doctor', '--key', gateway.key, '--base-url', gateway.url])
  assert.equal(code, 0)
  assert.match(stdout, /model well-messages/)
  assert.match(stdout, /^responses {2}cache hit +ok +\d+ +\d+ +\d+ tokens$/m)
  assert.match(stdout, /all is well/)
})

test('doctor says that nobody listens', async () => {
  const { code, stderr } = await run(['doctor', '--key', 'sk', '--base-url', 'http://127.0.0.1:1'])
  assert.equal(code, 1)
  assert.match(stderr, /http:\/\/127\.0\.0\.1:1 cannot be reached/)
})
