import assert from 'node:assert/strict'
import test from 'node:test'
import { clientWireNames } from '../../src/catalog/wire-names.ts'
import type { Explanation } from '../../src/operations/shapes.ts'
import { createHeld } from '../support/held.ts'
import { type Asked, asks, frames, type Native, paths, startNative } from '../support/native.ts'
import { stream, whole } from '../support/raw-upstream.ts'

/*
 * CON-4: explain has what the client was told and what the provider said. The runner finds each `canary-` that is written anywhere,
 * so these tests also show that none of it reaches a disk.
 */

async function explain({ gateway }: Native, { id }: Pick<Asked, 'id'>): Promise<Explanation> {
  return (await gateway.askAdmin(`/api/v1/requests/${id}/explain`)).json() as Promise<Explanation>
}

/** The sentence and the field of an error, whichever wire's envelope it has. */
function toldBy({ text }: Asked): { message: string; param: string | null } {
  const { error } = JSON.parse(text) as { error: { message: string; param?: string | null } }
  return { message: error.message, param: error.param ?? null }
}

for (const wire of clientWireNames)
  test(`CON-4 explain shows the sentence and the field of each refusal of a ${wire} client`, async () => {
    const native = await startNative()
    const model = `native-${wire}`
    const other = wire === 'chat' ? 'native-messages' : 'native-chat'
    const cap = wire === 'messages' ? 'max_tokens' : wire === 'chat' ? 'max_completion_tokens' : 'max_output_tokens'
    for (const [more, code] of [
      [{ model: 'none' }, 'model_not_found'],
      [{ model: 7 }, 'invalid_body'],
      [{ model, stream: 'canary-text' }, 'invalid_body'],
      [{ model, [cap]: 'canary-text' }, 'invalid_body'],
      [{ model: other, [wire === 'responses' ? 'input' : 'messages']: 7 }, 'invalid_body'],
      [{ model: other, tools: { a: 'canary-text' } }, 'invalid_body'],
    ] as const) {
      const asked = await native.ask(wire, more)
      const { settlement } = await explain(native, asked)
      const told = toldBy(asked)
      assert.equal(settlement.code, code, JSON.stringify(more))
      assert.equal(settlement.message, told.message)
      assert.ok(settlement.param !== null, told.message)
      if (wire !== 'messages') assert.equal(settlement.param, told.param)
    }
    await native.close()
  })

test('CON-4 explain shows the reason of a 402: the balance, the key’s budget, or the holds of running requests on either', async () => {
  const native = await startNative()
  const { gateway, upstream } = native
  const { id: broke } = gateway.store.createAccount('broke')
  const { id: poor } = gateway.store.createAccount('poor', 1n)
  const limited = { budget: { nanos: 1n, per: undefined } }
  const reasons = [
    { key: gateway.store.createKey(broke).key!, first: 'spent', later: 'spent' },
    { key: gateway.store.createKey(poor).key!, first: 'held', later: 'spent' },
    { key: gateway.store.createKey('tester', limited).key!, first: 'budget_held', later: 'budget_spent' },
  ]
  for (const { key, first, later } of reasons) {
    const reasonOf = async () => {
      const asked = await native.ask('chat', {}, { authorization: `Bearer ${key}` })
      const { settlement } = await explain(native, asked)
      assert.deepEqual([asked.status, settlement.message], [402, toldBy(asked).message])
      return settlement.reason
    }
    const held = createHeld()
    upstream.play(held.answer)
    const running = await gateway.post(paths.chat, { ...asks.chat, stream: true }, { authorization: `Bearer ${key}` })
    assert.equal(await reasonOf(), first)
    held.letGo()
    await running.text()
    assert.equal(await reasonOf(), later)
  }
  await native.close()
})

test('CON-4 explain shows the reason of a 429: the window of the account or of the key, or the provider', async () => {
  const native = await startNative({ config: { limits: { requests_per_minute: 2 } } })
  native.upstream.play(whole({ error: { message: 'We are full', type: 'rate_limit_error' } }, 429))
  const ofModel = await explain(native, await native.ask('chat'))
  assert.deepEqual([ofModel.settlement.status, ofModel.settlement.reason], [429, 'upstream'])
  await native.ask('chat')
  const asked = await native.ask('chat')
  const ours = await explain(native, asked)
  assert.deepEqual(
    [ours.settlement.reason, ours.settlement.message, ours.attempts],
    ['window', toldBy(asked).message, []],
  )
  await native.close()
})

const echo = 'canary-words of the client, which no operator may read'
const error = (message: string) => ({ error: { message, type: 'api_error' } })

for (const wire of clientWireNames)
  for (const model of clientWireNames)
    test(`CON-4 explain shows the provider's words of an error, without those of the request: ${wire} to ${model}`, async () => {
      const native = await startNative()
      const content = wire === 'responses' ? { input: echo } : { messages: [{ role: 'user', content: echo }] }
      const asked = { model: `native-${model}`, ...content }
      for (const [status, said, expected] of [
        [500, 'GPU 3 is lost', 'GPU 3 is lost'],
        [503, `Cannot answer "${echo}": overloaded`, 'Cannot answer …: overloaded'],
        [400, `Bad input: ${echo}`, 'Bad input: …'],
        [422, 'Field x is wrong', 'Field x is wrong'],
        [529, `x${'y'.repeat(3)} `.repeat(200), 400],
      ] as const) {
        native.upstream.play(whole(error(said), status))
        const { attempts, settlement } = await explain(native, await native.ask(wire, asked))
        const { text } = attempts!.at(-1)!
        if (typeof expected === 'number') assert.ok(text!.length <= expected, text!)
        else assert.equal(text, expected)
        assert.ok(!`${JSON.stringify(settlement)}${text}`.includes(echo.slice(0, 20)), settlement.message!)
      }
      // What the scrub hides from clients is hidden here too.
      native.upstream.play(whole(error('No key sk-proj-abcdefghijklmnopqrstuvwx at 10.1.2.3'), 500))
      const { attempts } = await explain(native, await native.ask(wire, asked))
      assert.equal(attempts!.at(-1)!.text, null)
      await native.close()
    })

test('CON-4 explain_upstream_text: false omits every word of a provider', async () => {
  const native = await startNative({ config: { explain_upstream_text: false } })
  for (const status of [400, 422, 429, 500]) {
    native.upstream.play(whole(error('canary-words of a provider'), status))
    const told = await explain(native, await native.ask('chat'))
    assert.ok(!JSON.stringify(told).includes('canary-words'), JSON.stringify(told))
    assert.equal(typeof told.settlement.message, 'string')
  }
  await native.close()
})

test('CON-4 an error within a stream is explained too; after the request is freed, without words that may repeat it', async () => {
  const native = await startNative()
  const failed = `data: ${JSON.stringify(error('GPU 3 of this machine is lost'))}\n\n`
  native.upstream.play(stream([...frames.chat.slice(0, 2), failed]))
  const { attempts, settlement } = await explain(native, await native.ask('chat', { stream: true }))
  assert.deepEqual([settlement.code, typeof settlement.message], ['upstream_error', 'string'])
  assert.equal(attempts!.at(-1)!.text, null)
  await native.close()
})
