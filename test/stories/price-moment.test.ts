import assert from 'node:assert/strict'
import test from 'node:test'
import { type ClientWire, clientWireNames } from '../../src/catalog/wire-names.ts'
import { verifyOptions } from '../store/fixtures.ts'
import { testModel } from '../support/gateway.ts'
import { answers, frames, type Native, startNative } from '../support/native.ts'
import { stream, whole } from '../support/raw-upstream.ts'

/* The moment that chooses among prices is the end of the answer, or with `counts: start` that of the request (money.md §4.2). */

const minuteMs = 60_000

/** The bill of an answer with nine input tokens and three output tokens, by the credits for a million of either. */
const amount = (input: bigint, output: bigint) => (9n * input + 3n * output) * 1_000n

const cheap = { input: '3', output: '15' }
const dear = { input: '6', output: '30' }

/** Rows whose second one begins in a minute, and a band that begins two to three minutes from now, with a whole minute. */
function lists() {
  const from = new Date(Date.now() + minuteMs).toISOString()
  const time = (ms: number) => new Date(ms).toISOString().slice(11, 16)
  const starts = Date.now() + 3 * minuteMs
  const bands = [{ name: 'peak', zone: 'UTC', hours: `${time(starts)}-${time(starts + 60 * minuteMs)}`, times: '2' }]
  return {
    dated: [cheap, { from, ...dear }],
    'dated-start': [
      { ...cheap, counts: 'start' },
      { from, ...dear, counts: 'start' },
    ],
    banded: { ...cheap, bands },
    'banded-start': { ...cheap, bands, counts: 'start' },
  }
}

async function startPriced(): Promise<Native> {
  const models = Object.entries(lists()).flatMap(([name, prices]) =>
    clientWireNames.map((wire) => testModel(`${wire}-${name}`, wire, { prices })),
  )
  return startNative({ models })
}

/** Asks once, while the clock moves on before the answer begins. @returns the debit of it, in nano-credits */
async function billed(
  native: Native,
  wire: ClientWire,
  model: string,
  isStream: boolean,
  takesMs: number,
  meanwhile = () => {},
) {
  const { gateway, upstream } = native
  const before = gateway.store.findAccount('tester').balanceNanos
  const answer = isStream ? stream(frames[wire]) : whole(answers[wire])
  upstream.play((socket, request) => {
    gateway.advance(takesMs)
    meanwhile()
    return answer(socket, request)
  })
  const { status, id } = await native.ask(wire, { model: `${wire}-${model}`, stream: isStream })
  assert.equal(status, 200)
  const { bill, details } = gateway.store.findEntry(id)!
  return { nanos: before - gateway.store.findAccount('tester').balanceNanos, version: bill!.priceVersion, details }
}

test('C11 an answer is billed by the date and the band of its end, or of its request with counts: start', async () => {
  for (const wire of clientWireNames) {
    for (const isStream of [false, true]) {
      const native = await startPriced()
      const ask = async (model: string, takesMs: number) => (await billed(native, wire, model, isStream, takesMs)).nanos
      const [low, high] = [amount(3n, 15n), amount(6n, 30n)]
      assert.equal(await ask('dated', 0), low)
      assert.equal(await ask('dated-start', 61_000), low)
      assert.equal(await ask('dated', 0), high)
      assert.equal(await ask('dated-start', 0), high)
      assert.equal(await ask('banded', 0), low)
      assert.equal(await ask('banded-start', 121_000), low)
      assert.equal(await ask('banded', 0), high)
      assert.equal(await ask('banded-start', 0), high)
      await native.close()
    }
  }
})

test('law 4 an entry names its list and band if prices depend on the hour, and neither if they depend on the date', async () => {
  const native = await startPriced()
  const ask = async (model: string, takesMs = 0) => (await billed(native, 'chat', model, false, takesMs)).details
  assert.equal(await ask('dated'), undefined)
  const [base, start] = [await ask('banded'), await ask('banded-start')]
  assert.deepEqual([Object.keys(base!), Object.keys(start!)], [['list'], ['list']])
  assert.notEqual(base!.list, start!.list)
  assert.equal(await ask('dated', 61_000), undefined)
  assert.deepEqual(await ask('banded', 121_000), { list: base!.list, band: 'peak' })
  assert.deepEqual(await ask('banded-start'), { list: start!.list, band: 'peak' })
  assert.deepEqual(native.gateway.store.verify(verifyOptions), [])
  await native.close()
})

test('C11 a new price date that arrives while the model works counts, and a reload does not', async () => {
  const native = await startPriced()
  const dated = await billed(native, 'chat', 'dated', false, 61_000)
  assert.equal(dated.nanos, amount(6n, 30n))
  const models = [testModel('chat-dated', 'chat', { prices: { input: '100', output: '100' } })]
  const replaced = await billed(native, 'chat', 'dated', true, 0, () =>
    native.gateway.reload({ catalog: { pinned: '2026-11-01', models } }),
  )
  assert.deepEqual(replaced, dated)
  assert.equal((await billed(native, 'chat', 'dated', false, 0)).nanos, amount(100n, 100n))
  await native.close()
})
