import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { test } from 'node:test'
import { parseScripts, startSimulator } from '../../src/simulator/simulator.ts'

test('a client that does not read pauses the stream, and ends it by leaving', async (t) => {
  const simulator = await startSimulator({ record: true })
  t.after(simulator.close)
  const body = JSON.stringify({ model: 'sim?tokens=300000', stream: true, messages: [{ role: 'user', content: 'Hi' }] })
  const call = request(`${simulator.url}/v1/chat/completions`, { method: 'POST', headers: { 'x-api-key': 'k' } })
  const response = await new Promise<IncomingMessage>((resolve) => call.on('response', resolve).end(body))
  response.pause()
  const recorded = simulator.requests[0]!
  // The handler records the status when it is done with the answer; while it waits for the client, it is not.
  for (let turn = 0; turn < 200; turn++) await new Promise((resolve) => setImmediate(resolve))
  assert.equal(recorded.status, 0)
  response.on('error', () => undefined).destroy()
  while (recorded.status === 0) await new Promise((resolve) => setImmediate(resolve))
  assert.equal(recorded.closedEarly, true)
})

test('with a given clock and ids an answer is the same to the byte', async (t) => {
  const answers: string[] = []
  for (const _ of [1, 2]) {
    let made = 0
    const simulator = await startSimulator({ clock: () => 1_795_000_000_000, newId: (prefix) => `${prefix}${++made}` })
    t.after(simulator.close)
    const body = { model: 'sim', input: 'Hi', stream: true, reasoning: { summary: 'auto' } }
    const answer = await fetch(`${simulator.url}/v1/responses`, {
      method: 'POST',
      headers: { 'x-api-key': 'k' },
      body: JSON.stringify(body),
    })
    answers.push(await answer.text())
  }
  assert.equal(answers[0], answers[1])
  assert.match(answers[0]!, /"created_at":1795000000,/)
})

test('the scripts in the documentation are valid', async () => {
  const page = await readFile(new URL('../../docs/simulator.md', import.meta.url), 'utf8')
  const blocks = page.match(/(?:^ {4}.*\n)+/gm)!.filter((block) => /^ {4}[a-z-]+:\n/.test(block))
  const names = blocks.flatMap((block) => [...parseScripts(block.replaceAll(/^ {4}/gm, '')).keys()])
  assert.deepEqual(names, ['agent-loop', 'interleaved-calls'])
})
