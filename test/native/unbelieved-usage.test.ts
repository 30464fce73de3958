import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { startNative } from '../support/native.ts'
import { whole } from '../support/raw-upstream.ts'

let native: Awaited<ReturnType<typeof startNative>>
before(async () => {
  native = await startNative()
})
after(() => native.close())

const choices = [{ index: 0, message: { role: 'assistant', content: 'Hello there.' }, finish_reason: 'stop' }]

test('C6 implausible counters are not shown in a whole answer either: the billed ones are shown', async () => {
  const usage = { prompt_tokens: 9, completion_tokens: 99_999_999, total_tokens: 12 }
  const answer = { id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'up-chat', choices, usage }
  native.upstream.play(whole(answer))
  const response = await native.ask('chat')
  const shown = (JSON.parse(response.text) as { usage: Record<string, number> }).usage
  const entry = native.gateway.store.findEntry(response.id)
  assert.equal(entry?.bill?.usageSource, 'estimated')
  assert.equal(shown['completion_tokens'], entry.bill.usage.outputTokens)
  assert.equal(shown['total_tokens'], shown['prompt_tokens']! + shown['completion_tokens']!)
})

test('C14 output beyond the cap is believed and billed if a tool of the provider wrote it, and not without such a tool', async () => {
  const usage = { prompt_tokens: 90_000, completion_tokens: 900, total_tokens: 90_900 }
  native.upstream.play(
    whole({ id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'up-chat', choices, usage }),
  )
  const billOf = async (fields: Record<string, unknown>) => {
    const { id } = await native.ask('chat', { max_tokens: 100, ...fields })
    const { usageSource, usage } = native.gateway.store.findEntry(id)!.bill!
    return [usageSource, usage.inputTokens > 80_000, usage.outputTokens === 900]
  }
  assert.deepEqual(await billOf({}), ['estimated', false, false])
  assert.deepEqual(await billOf({ web_search_options: {} }), ['final', true, true])
})
