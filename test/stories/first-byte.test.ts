import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { clientWireNames } from '../../src/catalog/wire-names.ts'
import { wires } from '../../src/wires/wires.ts'
import { atEnd } from '../support/at-end.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { holdStore } from '../support/hold-store.ts'
import { until } from '../support/waiting.ts'
import { smallest } from '../translation/support/exchange.ts'

/*
 * A client sees its first words while nothing can be written to the store: what is durable is only what its end waits for
 * (ruling C3). So no slow disk and no other writer delays the beginning of an answer.
 */

let gateway: TestGateway

before(async () => {
  // However long a busy machine takes, the debit waits for the store.
  gateway = await startTestGateway({ config: { timeouts: { settle_deadline: '60s' } } })
})

for (const client of clientWireNames)
  for (const model of clientWireNames)
    test(`C3 a stream's text is sent before anything is durable, and its end together with the debit: ${client} → ${model}`, async () => {
      const holder = holdStore(gateway.storePath)
      atEnd(() => holder.close())
      const body = { ...smallest[client], model: `native-${model}`, stream: true }
      const response = await gateway.post(wires[client].client.path, body)
      assert.equal(response.status, 200)
      const answer = read(response)
      await until(() => answer.text.includes('delta') && gateway.ledger.ledger.backlog().waiting > 0)
      const id = response.headers.get('x-request-id')!
      assert.equal(gateway.store.findEntry(id), undefined)
      assert.doesNotMatch(answer.text, ends)
      holder.exec('ROLLBACK')
      await answer.ended
      assert.match(answer.text, ends)
      assert.equal(gateway.store.findEntry(id)?.kind, 'debit')
    })

/** What the last event of a stream has, on each wire. */
const ends = /"type":"message_stop"|\[DONE\]|"type":"response\.completed"/

function read(response: Response): { text: string; ended: Promise<void> } {
  const answer = { text: '', ended: gather() }
  return answer

  async function gather(): Promise<void> {
    const decoder = new TextDecoder()
    for await (const piece of response.body!) answer.text += decoder.decode(piece, { stream: true })
  }
}
