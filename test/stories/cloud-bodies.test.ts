import assert from 'node:assert/strict'
import test from 'node:test'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { startSimulator } from '../../src/simulator/simulator.ts'
import { atEnd } from '../support/at-end.ts'
import { startTestGateway, testModel } from '../support/gateway.ts'
import { paths } from '../support/native.ts'
import { assertQuiet } from '../support/quiet.ts'

/* Claude where the path names the model: `rawPredict` and `InvokeModel` (clouds 2, 3.1), with the simulator in the place of the cloud. */

const google = '/v1/projects/P/locations/global/publishers/anthropic/models/{model}'
const clouds = {
  google: {
    profile: 'anthropic-google',
    upstreamModel: 'claude-opus-5@20261001',
    paths: { messages: { whole: `${google}:rawPredict`, stream: `${google}:streamRawPredict` } },
    sent: {
      whole: '/v1/projects/P/locations/global/publishers/anthropic/models/claude-opus-5@20261001:rawPredict',
      stream: '/v1/projects/P/locations/global/publishers/anthropic/models/claude-opus-5@20261001:streamRawPredict',
    },
    version: 'vertex-2023-10-16',
  },
  bedrock: {
    profile: 'anthropic-bedrock',
    upstreamModel: 'arn:aws:bedrock:eu-central-1:1:inference-profile/eu.anthropic.x-v1:0',
    paths: { messages: { whole: '/model/{model}/invoke', stream: '/model/{model}/invoke-with-response-stream' } },
    sent: {
      whole: '/model/arn%3Aaws%3Abedrock%3Aeu-central-1%3A1%3Ainference-profile%2Feu.anthropic.x-v1%3A0/invoke',
      stream:
        '/model/arn%3Aaws%3Abedrock%3Aeu-central-1%3A1%3Ainference-profile%2Feu.anthropic.x-v1%3A0/invoke-with-response-stream',
    },
    version: 'bedrock-2023-05-31',
  },
}

type Cloud = keyof typeof clouds
const names = Object.keys(clouds) as Cloud[]

async function open() {
  const simulator = await startSimulator({ record: true })
  atEnd(simulator.close)
  const upstreams = Object.fromEntries(
    names.map((name) => [
      name,
      { base_url: simulator.url, paths: clouds[name].paths, accounts: [{ name: 'a', key: 'upstream-key-1' }] },
    ]),
  )
  const models = names.map((name) => {
    const { profile, upstreamModel } = clouds[name]
    return testModel(name, 'messages', { upstream: name, upstream_model: upstreamModel, profile })
  })
  const gateway = await startTestGateway({ models, upstream: () => ({ upstreams }) })
  return { simulator, gateway }
}

const asked: Record<ClientWire, object> = {
  messages: { max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] },
  chat: { messages: [{ role: 'user', content: 'Hi' }] },
  responses: { input: 'Hi' },
}

test('clouds 2 3.1 the path names the model and the form, the body has the version, and the answer is the same on every wire', async () => {
  const { simulator, gateway } = await open()
  for (const name of names)
    for (const wire of ['messages', 'chat', 'responses'] as const)
      for (const stream of [false, true]) {
        const response = await gateway.post(paths[wire], { ...asked[wire], model: name, stream })
        const about = `${name} ${wire} ${stream}: ${await response.clone().text()}`
        assert.equal(response.status, 200, about)
        const { path, headers, json } = simulator.requests.at(-1)!
        const body = json as Record<string, unknown>
        const { sent, version } = clouds[name]
        assert.equal(path, stream ? sent.stream : sent.whole)
        assert.deepEqual([body['anthropic_version'], body['model']], [version, undefined], about)
        assert.equal(body['stream'] ?? false, name === 'google' && stream, about)
        if (name === 'bedrock') assert.ok(!('stream' in body))
        assert.equal(headers['anthropic-version'], undefined)
        assert.ok(!('anthropic_beta' in body))
        const log = await gateway.logOf(response.headers.get('x-request-id')!)
        assert.equal(log['outcome'], 'ok')
      }
  await assertQuiet(gateway)
})

test('clouds 2 3.1 C7 betas of the header are sent in the cloud’s place for them; expensive ones are dropped wherever a client writes them', async () => {
  const { simulator, gateway } = await open()
  for (const name of names) {
    const more = { anthropic_beta: ['context-1m-2025-08-07'], anthropic_version: 'x' }
    const headers = { 'anthropic-beta': 'files-api-2025-04-14, context-1m-2025-08-07,token-x-2026-01-01' }
    const response = await gateway.post(paths.messages, { ...asked.messages, ...more, model: name }, headers)
    assert.equal(response.status, 200, await response.text())
    const { headers: sent, json } = simulator.requests.at(-1)!
    const body = json as Record<string, unknown>
    const kept = ['files-api-2025-04-14', 'token-x-2026-01-01']
    assert.deepEqual(body['anthropic_beta'], name === 'bedrock' ? kept : undefined)
    assert.equal(sent['anthropic-beta'], name === 'google' ? kept.join(',') : undefined)
    assert.equal(body['anthropic_version'], clouds[name].version)
  }
  await assertQuiet(gateway)
})

test('clouds 2 a framed stream of the simulator can be cut like any other, and an exception in it is an error', async () => {
  const { simulator, gateway } = await open()
  const ask = async () => {
    const response = await gateway.post(paths.messages, { ...asked.messages, model: 'bedrock', stream: true })
    return { status: response.status, text: await response.text() }
  }
  const script = (cut: { after_events?: number; after_bytes?: number; how: 'error' | 'end' | 'reset' }) =>
    simulator.script('cut', { reply: 'Hello to you', cut })
  gateway.reload({
    catalog: {
      pinned: '2026-11-01',
      models: [
        testModel('bedrock', 'messages', {
          upstream: 'bedrock',
          upstream_model: 'script:cut',
          profile: 'anthropic-bedrock',
        }),
      ],
    },
  })
  for (const how of ['error', 'end', 'reset'] as const) {
    script({ after_events: 4, how })
    const { status, text } = await ask()
    assert.equal(status, 200, `${how}: ${text}`)
    assert.match(text, /Hello[\s\S]*event: error\n/, how)
    assert.doesNotMatch(text, /message_stop/, how)
  }
  script({ after_bytes: 700, how: 'end' })
  assert.match((await ask()).text, /event: error\n|api_error/)
  await assertQuiet(gateway)
})

test('clouds 2 3.1 if a model has a route to a cloud and one to its vendor, the request is built for each route', async () => {
  const simulator = await startSimulator({ record: true })
  atEnd(simulator.close)
  const key = [{ name: 'a', key: 'upstream-key-1' }]
  const gateway = await startTestGateway({
    models: [
      testModel('both', 'messages', {
        upstream: [
          { name: 'google', upstream_model: 'claude-x@1', profile: 'anthropic-google' },
          { name: 'vendor', priority: 2 },
        ],
        profile: 'anthropic',
      }),
    ],
    upstream: () => ({
      upstreams: {
        google: { base_url: simulator.url, paths: clouds.google.paths, accounts: key },
        vendor: { base_url: simulator.url, accounts: key },
      },
    }),
  })
  const headers = { 'anthropic-beta': 'files-api-2025-04-14' }
  await gateway.post(paths.messages, { ...asked.messages, model: 'both' }, headers)
  const seen = simulator.requests.map(({ path, headers, json }) => [
    path.split('/').at(-1),
    (json as Record<string, unknown>)['model'],
    headers['anthropic-version'],
  ])
  assert.deepEqual(seen[0], ['claude-x@1:rawPredict', undefined, undefined])
  await assertQuiet(gateway)
})
