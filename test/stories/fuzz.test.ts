import assert from 'node:assert/strict'
import test from 'node:test'
import { fuzzGateway } from '../support/fuzz-gateway.ts'
import { startTestGateway } from '../support/gateway.ts'

test('reliability §8 R9 none of 1,000 mutated bodies leads to a 5xx or a hang, and no refusal is billed', async () => {
  const uncaught: unknown[] = []
  const note = (error: unknown) => uncaught.push(error)
  process.on('uncaughtExceptionMonitor', note)
  const gateway = await startTestGateway({ config: { limits: { requests_per_minute: 1_000_000 } }, credit: '1000000' })
  const { statuses, faults, asked } = await fuzzGateway(gateway, 1_000, 20_261_121)
  const bugs = (await gateway.logLines()).filter((line) => line['event'] === 'bug')
  await gateway.close()
  process.off('uncaughtExceptionMonitor', note)
  assert.deepEqual([faults, bugs, uncaught], [[], [], []])
  assert.ok(asked >= 1_000)
  // Of both kinds there are many, or the mutations are too mild or too wild to find anything.
  assert.ok((statuses.get(200) ?? 0) > 100 && (statuses.get(400) ?? 0) > 100, JSON.stringify([...statuses]))
})
