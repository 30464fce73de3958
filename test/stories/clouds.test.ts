import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { atEnd } from '../support/at-end.ts'
import { canary, isSignedWell, roleArn, startCloud, writeServiceAccount } from '../support/clouds.ts'
import { testFolder } from '../support/folder.ts'
import { startTestGateway, testModel } from '../support/gateway.ts'
import { answers, asks, frames, paths } from '../support/native.ts'
import { assertQuiet } from '../support/quiet.ts'
import { type RawRequest, startRawUpstream, stream, whole } from '../support/raw-upstream.ts'
import { until } from '../support/waiting.ts'

/* Accounts of clouds with a whole gateway in between: what is sent is signed or has a bearer, on every wire. */

const place = { region: 'eu-central-1', service: 'bedrock' }
const wires = ['messages', 'chat', 'responses'] as const
const keys = { AWS_ACCESS_KEY_ID: 'AKIAENV', AWS_SECRET_ACCESS_KEY: `${canary}-file` }

async function open(account: object, env: Record<string, string> = {}, more: object = {}) {
  const upstream = await startRawUpstream()
  const cloud = await startCloud(() => gateway?.nowMs() ?? Date.now())
  const far = { base_url: upstream.url, accounts: [{ name: 'a', ...account }], ...more }
  let gateway: Awaited<ReturnType<typeof startTestGateway>> | undefined
  gateway = await startTestGateway({
    models: wires.map((wire) => testModel(`native-${wire}`, wire, { upstream: 'far' })),
    upstream: () => ({ upstreams: { far } }),
    env: { AWS_ENDPOINT_URL_STS: cloud.url, AZURE_AUTHORITY_HOST: cloud.url, ...env },
  })
  return { upstream, cloud, gateway }
}

test('clouds 1.2 every request to AWS is signed as sent, with the token of a role, on every wire, whole and streamed', async () => {
  for (const [account, env] of [
    [{ aws: place }, keys],
    [{ aws: { ...place, role: roleArn } }, keys],
  ] as const) {
    const headers = { 'X-Amzn-Bedrock-GuardrailIdentifier': 'g  1', 'x-other': 'x' }
    const more = { headers, query: { 'api version': 'a/b' }, paths: { messages: '/model/{model}/it' } }
    const { upstream, gateway } = await open(account, env, more)
    const seen = new Set<string>()
    for (const wire of wires)
      for (const isStream of [false, true]) {
        upstream.play(isStream ? stream(frames[wire]) : whole(answers[wire]))
        const response = await gateway.post(
          paths[wire],
          { ...asks[wire], stream: isStream },
          { 'anthropic-beta': 'a-2026-01-01' },
        )
        assert.equal(response.status, 200, await response.text())
        await response.text().catch(() => {})
        const request = upstream.requests.at(-1)!
        const cloud = { nowMs: gateway.nowMs, aheadSeconds: 0, host: '' }
        assert.ok(isSignedWell(cloud, request), `${wire} ${isStream}`)
        assert.match(request.header('authorization')!, /x-amzn-bedrock-guardrailidentifier/i)
        assert.equal(request.header('x-amz-security-token') !== undefined, 'role' in account.aws)
        assert.equal(request.header('x-api-key'), undefined)
        seen.add(request.header('authorization')!)
        const changed = { ...request, body: Buffer.concat([request.body, Buffer.from(' ')]) }
        assert.ok(!isSignedWell(cloud, changed as RawRequest), 'the body is signed')
      }
    assert.equal(seen.size, 6)
    await assertQuiet(gateway)
    const log = JSON.stringify(await gateway.logLines())
    assert.doesNotMatch(log, new RegExp(`${canary}|AWS4-HMAC`))
  }
})

test('clouds 1.3 an account that makes bearer keys sends one, and the same one until it is renewed', async () => {
  const { upstream, gateway } = await open({ aws: { ...place, sign: 'bearer' } }, keys)
  upstream.play(whole(answers.messages))
  for (let i = 0; i < 2; i++) await (await gateway.post(paths.messages, asks.messages)).text()
  const [one, two] = upstream.requests.map((request) => request.header('authorization'))
  assert.match(one!, /^Bearer bedrock-api-key-[A-Za-z0-9+/]+=*$/)
  assert.equal(two, one)
  assert.equal(upstream.requests[0]!.header('x-amz-date'), undefined)
  await assertQuiet(gateway)
})

test('clouds 3.3 4 a token of Google or Entra is sent as a bearer on every wire, renewed in time, and never logged or returned', async () => {
  const folder = testFolder('clouds')
  atEnd(() => rmSync(folder, { recursive: true }))
  const places = [
    (url: string) => ({
      google: { credentials_file: writeServiceAccount(folder, { url }, { quota_project_id: 'p-1' }) },
    }),
    () => {
      writeFileSync(join(folder, 'secret'), `${canary}-client`)
      return { azure: { tenant: 'the-tenant', client: 'the-client', secret_file: join(folder, 'secret') } }
    },
  ]
  for (const accountAt of places) {
    const upstream = await startRawUpstream()
    let nowMs = () => Date.now()
    const cloud = await startCloud(() => nowMs())
    const account = accountAt(cloud.url)
    const gateway = await startTestGateway({
      models: wires.map((wire) => testModel(`native-${wire}`, wire, { upstream: 'far' })),
      upstream: () => ({ upstreams: { far: { base_url: upstream.url, accounts: [{ name: 'a', ...account }] } } }),
      env: { AZURE_AUTHORITY_HOST: cloud.url },
    })
    nowMs = gateway.nowMs
    for (const wire of wires) {
      upstream.play(whole(answers[wire]))
      const response = await gateway.post(paths[wire], asks[wire])
      assert.equal(response.status, 200, await response.text())
      const { headers } = upstream.requests.at(-1)!
      const sent = headers.filter(([name]) => /authorization|key|user-project/.test(name))
      const project = 'google' in account ? [['x-goog-user-project', 'p-1']] : []
      assert.deepEqual(sent, [['authorization', `Bearer ${canary}-token-1`], ...project])
    }
    gateway.advance(2_000_000)
    const metrics = await (await gateway.askAdmin('/metrics')).text()
    assert.match(metrics, /^triwire_credential_expires_seconds\{upstream="far",upstream_account="a"\} 1600$/m)
    gateway.advance(880_000)
    await gateway.logWith({ event: 'key_renewed', account: 'far/a' })
    upstream.play(whole({ error: { message: `wrong key ${canary}-token-2 or ${canary}-token-1` } }, 400))
    const refused = await gateway.post(paths.chat, asks.chat)
    assert.equal(upstream.requests.at(-1)!.header('authorization'), `Bearer ${canary}-token-2`)
    assert.doesNotMatch(await refused.text(), /canary/)
    assert.deepEqual(cloud.mistakes, [])
    assert.doesNotMatch(JSON.stringify(await gateway.logLines()), /canary/)
  }
})

test('clouds 3.3 a configured project that pays replaces the one in the file of credentials', async () => {
  const folder = testFolder('clouds')
  atEnd(() => rmSync(folder, { recursive: true }))
  const upstream = await startRawUpstream()
  const cloud = await startCloud(() => Date.now())
  const google = { credentials_file: writeServiceAccount(folder, cloud, { quota_project_id: 'p-1' }) }
  const headers = { 'X-Goog-User-Project': 'p-2' }
  const gateway = await startTestGateway({
    models: [testModel('native-chat', 'chat', { upstream: 'far' })],
    upstream: () => ({ upstreams: { far: { base_url: upstream.url, headers, accounts: [{ name: 'a', google }] } } }),
  })
  upstream.play(whole(answers.chat))
  assert.equal((await gateway.post(paths.chat, asks.chat)).status, 200)
  const sent = upstream.requests[0]!.headers.filter(([name]) => /authorization|user-project/.test(name))
  assert.deepEqual(sent, [
    ['x-goog-user-project', 'p-2'],
    ['authorization', `Bearer ${canary}-token-1`],
  ])
})

const expired = (status: number, name: string, headers: Record<string, string> = {}, body?: object) =>
  whole(body ?? { message: 'The security token included in the request is expired' }, status, {
    'x-amzn-errortype': `${name}:http://internal.amazon.com/coral/com.amazon.bedrock/`,
    ...headers,
  })

test('clouds 5 a credential that is refused as expired is renewed once, and the request sent again, unnoticed by its client', async () => {
  const { upstream, cloud, gateway } = await open({ aws: { ...place, role: roleArn } }, keys)
  for (const refusal of [
    expired(403, 'ExpiredTokenException'),
    expired(403, 'UnrecognizedClientException'),
    whole({ __type: 'com.amazon.coral.service#ExpiredTokenException', message: 'x' }, 403),
    whole({ message: 'Unauthorized' }, 401),
  ]) {
    gateway.advance(10_000)
    const before = cloud.given
    upstream.play(refusal, whole(answers.messages))
    const asked = gateway.post(paths.messages, asks.messages)
    await upstream.untilHeard(1)
    await gateway.logWith({ event: 'key_renewed' })
    await until(async () => {
      gateway.advance(250)
      return upstream.requests.length === 2
    }, 'it is asked once more')
    const response = await asked
    assert.equal(response.status, 200)
    const [one, two] = upstream.requests.map((request) => /Credential=(\w+)/.exec(request.header('authorization')!)![1])
    assert.notEqual(one, two)
    assert.equal(cloud.given, before + 1)
    const { attempts } = await gateway.logOf(response.headers.get('x-request-id')!)
    assert.equal(attempts, 2)
  }
  await assertQuiet(gateway)
})

test('clouds 5 many requests with one expired credential renew it once; an account whose credential is refused for good is disabled', async () => {
  const { upstream, cloud, gateway } = await open({ aws: { ...place, role: roleArn } }, keys)
  gateway.advance(10_000)
  upstream.play((socket, request) => {
    const isOld = /ASIA1\//.test(request.header('authorization')!)
    return (isOld ? expired(403, 'ExpiredTokenException') : whole(answers.messages))(socket, request)
  })
  const all = Array.from({ length: 10 }, () => gateway.post(paths.messages, asks.messages))
  await upstream.untilHeard(10)
  let isOver = false
  const statuses = Promise.all(all).then((responses) => {
    isOver = true
    return responses.map(({ status }) => status)
  })
  await until(async () => {
    gateway.advance(250)
    return isOver
  })
  assert.deepEqual(new Set(await statuses), new Set([200]))
  assert.equal(cloud.given, 2)
  gateway.advance(10_000)
  upstream.play(expired(403, 'UnrecognizedClientException'))
  const refused = gateway.post(paths.messages, asks.messages)
  await until(async () => {
    gateway.advance(250)
    return upstream.requests.length === 2
  })
  const response = await refused
  assert.equal(response.status, 503)
  assert.doesNotMatch(await response.text(), /token|expired|arn/i)
  assert.equal(upstream.requests.length, 2)
  await assertQuiet(gateway)
})

test('clouds 1.2 a signature with a wrong time is made again once by the clock of the answer, and no credential is fetched', async () => {
  for (const name of ['InvalidSignatureException', 'RequestTimeTooSkewed', 'SignatureDoesNotMatch']) {
    const { upstream, cloud, gateway } = await open({ aws: place }, keys)
    for (const aheadSeconds of [3_600, -3_600]) {
      const there = { nowMs: gateway.nowMs, aheadSeconds, host: '' }
      upstream.play((socket, request) => {
        const date = new Date(gateway.nowMs() + aheadSeconds * 1_000).toUTCString()
        const answer = isSignedWell(there, request)
          ? whole(answers.messages, 200, { date })
          : expired(403, name, { date })
        return answer(socket, request)
      })
      const response = await gateway.post(paths.messages, asks.messages)
      assert.equal(response.status, 200, `${name} ${aheadSeconds}`)
      assert.equal(upstream.requests.length, 2)
      assert.equal((await gateway.post(paths.messages, asks.messages)).status, 200)
      assert.equal(upstream.requests.length, 3, 'the difference is kept')
    }
    assert.equal(cloud.upstream.requests.length, 0)
    const { ahead_ms } = await gateway.logWith({ event: 'clock_skew', account: 'far/a' })
    assert.ok(Math.abs(Number(ahead_ms) - 3_600_000) <= 1_000)
    await assertQuiet(gateway)
  }
})

test('clouds 1.3 a bearer key that was made with a wrong time is made again by the clock of the answer', async () => {
  const { upstream, gateway } = await open({ aws: { ...place, sign: 'bearer' } }, keys)
  upstream.play((socket, request) => {
    const nowMs = gateway.nowMs() - 3_600_000
    const date = new Date(nowMs).toUTCString()
    const [, key = ''] = /^Bearer bedrock-api-key-(.+)$/.exec(request.header('authorization')!)!
    const [, made = ''] = /X-Amz-Date=(\w+)/.exec(Buffer.from(key, 'base64').toString())!
    const madeMs = Date.parse(made.replace(/^(....)(..)(..)T(..)(..)/, '$1-$2-$3T$4:$5:'))
    const isTooEarly = madeMs > nowMs + 300_000
    const answer = isTooEarly ? expired(403, 'InvalidSignatureException', { date }) : whole(answers.messages)
    return answer(socket, request)
  })
  for (const asked of [2, 3]) {
    const response = await gateway.post(paths.messages, asks.messages)
    assert.equal(response.status, 200, await response.text())
    assert.equal(upstream.requests.length, asked)
  }
  const [wrong, right, same] = upstream.requests.map((request) => request.header('authorization'))
  assert.notEqual(right, wrong)
  assert.equal(same, right)
  await assertQuiet(gateway)
})

test('clouds 1.5 exceptions in the head are judged by their names, and a failure of the model by its own status', async () => {
  const { upstream, gateway } = await open({ aws: place }, keys)
  const cases: [status: number, name: string, body: object, told: number, cause: string][] = [
    [400, 'ServiceQuotaExceededException', { message: 'quota' }, 429, 'upstream_400'],
    [429, 'ThrottlingException', { message: 'slow' }, 429, 'upstream_429'],
    [429, 'ModelNotReadyException', { message: 'loading' }, 429, 'upstream_429'],
    [424, 'ModelErrorException', { message: 'x', originalStatusCode: 400 }, 400, 'upstream_424'],
    [424, 'ModelErrorException', { message: 'x', originalStatusCode: 529 }, 429, 'upstream_424'],
    [424, 'ModelErrorException', { message: 'x' }, 502, 'upstream_424'],
    [400, 'ValidationException', { message: 'max_tokens: too many' }, 400, 'upstream_400'],
    [
      403,
      'AccessDeniedException',
      { message: 'User: arn:aws:iam::123456789012:role/x is not authorized' },
      503,
      'upstream_403',
    ],
  ]
  for (const [status, name, body, told, cause] of cases) {
    upstream.play(expired(status, name, {}, body))
    const response = await gateway.post(paths.messages, asks.messages)
    const log = await gateway.logOf(response.headers.get('x-request-id')!)
    assert.deepEqual([response.status, log['cause']], [told, cause], name)
    assert.doesNotMatch(await response.text(), /arn:|1234567/)
  }
  await assertQuiet(gateway)
})

test('P9 Y25 Azure’s content filter results reach no client, and its chunk before the answer does not count as the first byte', async () => {
  const { upstream, gateway } = await open({ key: 'upstream-key-1' })
  const filter = { hate: { filtered: false, severity: 'safe' } }
  const before = {
    id: '',
    object: '',
    created: 0,
    model: '',
    choices: [],
    prompt_filter_results: [{ prompt_index: 0, content_filter_results: filter }],
  }
  const pieces = frames.chat.map((frame) =>
    frame.replaceAll('"index":0,', `"index":0,"content_filter_results":${JSON.stringify(filter)},`),
  )
  const many = [...pieces.slice(0, 2), ...Array.from({ length: 20 }, () => pieces[1]!), ...pieces.slice(2)]
  upstream.play(stream([`data: ${JSON.stringify(before)}\n\n`, ...many]))
  const streamed = await (await gateway.post(paths.chat, { ...asks.chat, stream: true })).text()
  assert.match(streamed, /Hé/)
  assert.doesNotMatch(streamed, /filter|severity/)
  const answer = JSON.parse(JSON.stringify(answers.chat))
  answer.choices[0].content_filter_results = filter
  answer.prompt_filter_results = before.prompt_filter_results
  upstream.play(whole(answer))
  const told = await (await gateway.post(paths.chat, asks.chat)).text()
  assert.match(told, /Hé/)
  assert.doesNotMatch(told, /filter|severity/)
  // The chunk alone is no answer: nothing of it is shown, and the stream is a failure before its first byte.
  upstream.play(stream([`data: ${JSON.stringify(before)}\n\n`]))
  assert.equal((await gateway.post(paths.chat, { ...asks.chat, stream: true })).status, 502)
  await assertQuiet(gateway)
})
