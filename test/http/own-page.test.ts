import assert from 'node:assert/strict'
import test from 'node:test'
import { run } from '../cli/run.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'

const page = 'https://gw.example/llm/console/'
const question = { model: 'native-chat', messages: [{ role: 'user', content: 'hi' }], max_tokens: 5 }

/** The ways into a refusal that names the page, with its status, its code and the beginning of its cure. */
const refusals: Record<string, (gateway: TestGateway) => Promise<Response>> = {
  '401 a missing key': ({ url }) => ask(url, {}),
  '401 an unknown key': ({ url }) => ask(url, { authorization: `Bearer sk-tri-${'0'.repeat(46)}` }),
  '402 no credit': async ({ url, store, untilKnown }) => {
    store.createAccount('poor')
    const { key } = store.createKey('poor')
    await untilKnown(key)
    return ask(url, { authorization: `Bearer ${key}` })
  },
  '402 the budget of a key': async ({ url, store, untilKnown }) => {
    const { key } = store.createKey('tester', { budget: { nanos: 1n, per: 'month' } })
    await untilKnown(key)
    // The first request of a budget is let in, whatever it may cost.
    await (await ask(url, { authorization: `Bearer ${key}` })).text()
    return ask(url, { authorization: `Bearer ${key}` })
  },
  '429 the window of a key': async ({ url, store, untilKnown }) => {
    const { key } = store.createKey('tester', { requestsPerMinute: 1 })
    await untilKnown(key)
    await (await ask(url, { authorization: `Bearer ${key}` })).text()
    return ask(url, { authorization: `Bearer ${key}` })
  },
}

function ask(url: string, headers: Record<string, string>): Promise<Response> {
  const body = JSON.stringify(question)
  return fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body })
}

test('CON-P2 a refusal for credit, a full window or a missing key names the page of owners, only if there is one', async () => {
  for (const config of [
    { own_pages: true, api_url: 'https://gw.example/llm/v1' },
    { own_pages: true },
    { api_url: 'https://gw.example/llm' },
  ]) {
    const gateway = await startTestGateway({ config })
    for (const [name, refuse] of Object.entries(refusals)) {
      const answer = await refuse(gateway)
      assert.equal(`${answer.status}`, name.slice(0, 3), name)
      const { error } = (await answer.json()) as { error: { message: string } }
      const named = config.own_pages && config.api_url
      assert.equal(error.message.includes(page), Boolean(named), `${name}: ${error.message}`)
      assert.equal(error.message.includes('/console/'), Boolean(named), name)
      // The cure stays.
      assert.match(error.message, /send it as|check it|add credit|ask the person who gave it|wait for them|try again/i)
    }
    const setup = await gateway.askAdmin('/api/v1/setup/codex')
    const printed = await run(['setup', 'codex', '--config', gateway.configPath])
    for (const text of [await setup.text(), printed.stdout + printed.stderr])
      assert.equal(text.includes(`${page} shows your requests`), Boolean(config.own_pages && config.api_url), text)
    const other = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}` },
      body: JSON.stringify({ ...question, model: 'none' }),
    })
    assert.equal((await other.text()).includes('/console/'), false)
    await gateway.close()
  }
})
