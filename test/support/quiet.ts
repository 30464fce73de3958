import assert from 'node:assert/strict'
import { verifyOptions } from '../store/fixtures.ts'
import type { TestGateway } from './gateway.ts'
import { until } from './waiting.ts'

/** Checks that nothing runs or is held, and each request has one log line and at most one entry (reliability §1.1). */
export async function assertQuiet(gateway: TestGateway): Promise<void> {
  const { deliveries, readers } = gateway.server.gateway
  const balances = [...gateway.ledger.accounts.keys()].map((id) => gateway.ledger.balances.get(id)!)
  await until(() => deliveries.size === 0 && balances.every((one) => one.running === 0), 'no request is under way')
  assert.equal(readers.count, 0, 'requests are still read for their usage')
  for (const { heldNanos, running } of balances) assert.deepEqual([heldNanos, running], [0n, 0], 'a hold is left')
  const lines = (await gateway.logLines()).filter((line) => 'outcome' in line)
  const ids = lines.map((line) => line['id'])
  assert.equal(new Set(ids).size, ids.length, 'a request has two lines in the log')
  for (const { bill } of gateway.store.eachEntry()) {
    if (bill) assert.ok(ids.includes(bill.requestId), `an entry without a line in the log: ${bill.requestId}`)
  }
}

/** Checks at the end of a file of stories that no work is left and the books are right, then closes the gateway. */
export async function closeQuietly(gateway: TestGateway): Promise<void> {
  await assertQuiet(gateway)
  assert.deepEqual(gateway.store.verify(verifyOptions), [])
  await gateway.close()
}
