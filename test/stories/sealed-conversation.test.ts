import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import test from 'node:test'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { listen } from '../support/listen.ts'

/*
 * Conversations with sealed reasoning that name no key, over accounts that each open what they sealed themselves (U13): the
 * seal tells whose they are.
 */

type Item = { type: string; id?: string; encrypted_content?: string; role?: string; content?: unknown; summary?: [] }

type Provider = { url: string; calls: number; refusals: number; sealedRead: number }

/** Seals with the account's key and a number; refuses what another account sealed. */
async function startProvider(): Promise<Provider> {
  const provider: Provider = { url: '', calls: 0, refusals: 0, sealedRead: 0 }
  const server = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', (piece: string) => {
      text += piece
    })
    request.on('end', () => {
      const account = request.headers.authorization!.replace('Bearer ', '')
      const { input, stream } = JSON.parse(text) as { input: Item[]; stream?: boolean }
      const sealed = input.flatMap(({ encrypted_content: content }) => content ?? [])
      provider.calls++
      if (sealed.some((content) => !content.startsWith(`${account}.`))) {
        provider.refusals++
        response.writeHead(400, { 'content-type': 'application/json' })
        const error = { message: 'The encrypted content could not be verified.', type: 'invalid_request_error' }
        response.end(JSON.stringify({ error: { ...error, code: 'invalid_encrypted_content' } }))
        return
      }
      provider.sealedRead += sealed.length
      answer(response, `${account}.${provider.calls}`, stream === true)
    })
  })
  provider.url = `http://127.0.0.1:${await listen(server)}`
  return provider
}

function answer(response: ServerResponse, seal: string, isStream: boolean): void {
  const content = [{ type: 'output_text', text: 'Done.', annotations: [] }]
  const output = [
    { type: 'reasoning', id: `rs_${seal}`, summary: [], encrypted_content: seal },
    { type: 'message', id: `msg_${seal}`, status: 'completed', role: 'assistant', content },
  ]
  const usage = { input_tokens: 20, output_tokens: 5, total_tokens: 25 }
  const whole = { id: 'resp_1', object: 'response', created_at: 1, status: 'completed', model: 'up', output, usage }
  if (!isStream) {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(whole))
    return
  }
  const begun = { ...whole, status: 'in_progress', output: [], usage: null }
  const events = [
    { type: 'response.created', sequence_number: 0, response: begun },
    ...output.map((item, index) => {
      return { type: 'response.output_item.done', sequence_number: 1 + index, output_index: index, item }
    }),
    { type: 'response.completed', sequence_number: 3, response: whole },
  ]
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.end(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''))
}

function startPool({ url }: Provider): Promise<TestGateway> {
  const accounts = ['a', 'b', 'c', 'd'].map((name) => ({ name, key: `upstream-key-${name}` }))
  return startTestGateway({ upstream: () => ({ upstreams: { sim: { base_url: url, accounts } } }) })
}

/** One turn. @returns what the client keeps of it as its history */
async function turn(gateway: TestGateway, input: Item[], stream: boolean, name?: string): Promise<Item[]> {
  const asked = { model: 'native-responses', input, stream, include: ['reasoning.encrypted_content'], store: false }
  const response = await gateway.post('/v1/responses', { ...asked, ...(name && { prompt_cache_key: name }) })
  assert.equal(response.status, 200)
  const text = await response.text()
  const last = text.split('\n').findLast((line) => line.startsWith('data: {'))
  const { output } = stream ? JSON.parse(last!.slice(6)).response : JSON.parse(text)
  return [...input, ...output, { type: 'message', role: 'user', content: 'Go on.' }]
}

const opening = (name: string): Item[] => [{ type: 'message', role: 'user', content: name }]

for (const stream of [true, false]) {
  test(`U13 conversations without a key stay with the account that sealed their reasoning: no refusals, ${stream ? 'streams' : 'JSON'}`, async () => {
    const provider = await startProvider()
    const gateway = await startPool(provider)
    const talks = Array.from({ length: 12 }, (_, index) => opening(`talk ${index}`))
    for (let round = 0; round < 5; round++) {
      for (const [index, talk] of talks.entries()) talks[index] = await turn(gateway, talk, stream)
    }
    assert.deepEqual([provider.calls, provider.refusals, provider.sealedRead], [60, 0, 12 * (0 + 1 + 2 + 3 + 4)])
    const seals = new Set(
      talks.map((talk) => talk.find((item) => item.encrypted_content)!.encrypted_content!.split('.')[0]),
    )
    assert.ok(seals.size > 1, 'they are spread all the same')
    await gateway.close()
  })
}

test('U13 a conversation without a key and with unknown seals is refused at most once, and not again with each call', async () => {
  const provider = await startProvider()
  const gateway = await startPool(provider)
  let talk = opening('an old one')
  for (const key of ['upstream-key-a', 'upstream-key-b'])
    talk.push({ type: 'reasoning', id: 'rs_old', summary: [], encrypted_content: `${key}.old` })
  for (let round = 0; round < 6; round++) talk = await turn(gateway, talk, round % 2 === 0)
  assert.deepEqual([provider.calls, provider.refusals], [7, 1])
  await gateway.close()
})

test('U13 P6 items sealed by one account of ours are not the key of another account’s conversation', async () => {
  const provider = await startProvider()
  const gateway = await startPool(provider)
  const talk = await turn(gateway, opening('mine'), false)
  const { id } = gateway.store.createAccount('another', 1_000_000_000n)
  const { key } = gateway.store.createKey(id)
  await gateway.untilKnown(key)
  const body = { model: 'native-responses', input: talk }
  const whys = new Set<unknown>()
  for (let i = 0; i < 8; i++) {
    const response = await gateway.post('/v1/responses', body, { authorization: `Bearer ${key}` })
    assert.equal(response.status, 200)
    await response.text()
    whys.add((await gateway.logOf(response.headers.get('x-request-id')!))['why'])
  }
  assert.ok(whys.has('spread'), [...whys].join(', '))
  await gateway.close()
})
