import assert from 'node:assert/strict'
import test, { before } from 'node:test'
import { spendLines } from '../../src/http/headers.ts'
import { tellCapped, tellFree } from '../../src/sign-in/usage.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { openTestSession, type TestSession } from '../support/sessions.ts'
import { until } from '../support/waiting.ts'

const signIn = { issuer: 'https://idp.example', client_id: 'triwire', rules: [{ groups: ['dev'], account: 'tester' }] }
const config = { sign_in: signIn, credits: { name: 'EUR' } }
let gateway: TestGateway
before(async () => {
  gateway = await startTestGateway({ config })
})

const credit = 1_000_000_000n

async function usageOf({ access }: TestSession) {
  const answer = await fetch(`${gateway.url}/api/oauth/usage`, { headers: { authorization: `Bearer ${access}` } })
  return { status: answer.status, body: (await answer.json()) as Record<string, never> }
}

/** @returns what the ledger has of it, in hundredths */
async function spend({ access, session, books }: TestSession, { url } = gateway): Promise<number> {
  const sum = async () => (await books.sumEntries({ accountId: session.accountId }, []))[0]?.billedNanos ?? 0n
  const was = await sum()
  const body = JSON.stringify({
    model: 'native-messages',
    max_tokens: 8000,
    messages: [{ role: 'user', content: 'canary '.repeat(40_000) }],
  })
  const answer = await fetch(`${url}/v1/messages`, {
    method: 'POST',
    headers: { authorization: `Bearer ${access}` },
    body,
  })
  assert.equal(answer.status, 200)
  await answer.text()
  await until(async () => (await sum()) > was, 'it is in the ledger')
  return Math.round(Number((await sum()) - was) / 10_000_000)
}

test('Y19 the usage of a person equals the ledger to the cent, for a budget or for the day, week and month', async () => {
  const budget = { nanos: 50n * credit, per: 'month' as const }
  const bounded = await openTestSession(gateway, { subject: 'bounded', budget })
  const used = await spend(bounded)
  assert.ok(used > 0)
  const { body } = await usageOf(bounded)
  const [limit] = body['limits'] as unknown as { group: string; resets_at: string }[]
  assert.deepEqual(
    [body['extra_usage'], limit?.group],
    [
      {
        is_enabled: true,
        monthly_limit: 5000,
        used_credits: used,
        utilization: Math.floor(used / 50),
        currency: 'EUR',
      },
      'monthly',
    ],
  )
  assert.ok(Date.parse(limit!.resets_at) > gateway.nowMs())
  const free = await openTestSession(gateway, { subject: 'free' })
  const own = await spend(free)
  assert.deepEqual(
    (await usageOf(free)).body,
    tellFree(
      {
        dayNanos: BigInt(own) * 10_000_000n,
        weekNanos: BigInt(own) * 10_000_000n,
        monthNanos: BigInt(own) * 10_000_000n,
      },
      'EUR',
    ),
  )
  gateway.reload({ sign_in: { ...signIn, show_balance: true } })
  const { body: shared } = await usageOf(free)
  const { monthly_limit, used_credits } = shared['extra_usage'] as unknown as {
    monthly_limit: number
    used_credits: number
  }
  assert.deepEqual([monthly_limit, Math.abs(used_credits - used - own) <= 1], [10_000, true])
  assert.deepEqual((await usageOf(bounded)).body['extra_usage'], body['extra_usage'])
  gateway.reload({ credits: { name: 'credits' } })
  assert.equal((await usageOf(free)).status, 404)
  gateway.reload({})
  for (let n = 0; n < 26; n++) assert.notEqual((await usageOf(free)).status, 429)
  for (let n = 0; n < 2; n++) await usageOf(free)
  assert.equal((await usageOf(free)).status, 429)
  const nobody = await fetch(`${gateway.url}/api/oauth/usage`)
  assert.deepEqual([nobody.status, nobody.headers.get('x-should-retry')], [401, 'false'])
})

test('Y19 Y20 the usage without a budget counts keys that were rotated, and all identities of the person', async () => {
  const own = await startTestGateway({ config })
  const usedBy = async (access: string) => {
    const answer = await fetch(`${own.url}/api/oauth/usage`, { headers: { authorization: `Bearer ${access}` } })
    const { extra_usage } = (await answer.json()) as { extra_usage: { used_credits: number } }
    return extra_usage.used_credits
  }
  const old = await openTestSession(own, { subject: 'old' })
  const { books } = old
  const spendBy = (access: string) => spend({ ...old, access }, own)
  const first = await spendBy(old.access)
  const now = await openTestSession(own, { subject: 'now' })
  await books.linkPersons(now.session.personId, old.session.personId)
  assert.ok(first > 0)
  assert.deepEqual([await usedBy(now.access), await usedBy(old.access)], [first, first])
  const key = await books.createKey(old.session.accountId)
  const byKey = await spendBy(key.key!)
  const next = await books.rotateKey(key.id, 0)
  assert.equal(await usedBy(next.key!), byKey)
})

test('Y19 a budget is returned in the form of the vendor, whatever its period and however much of it is spent', () => {
  const use = (limit: bigint, spent: bigint) => ({ limitNanos: limit * credit, spentNanos: spent * credit })
  const resetsMs = Date.parse('2026-12-01T00:00:00Z')
  assert.deepEqual(tellCapped({ ...use(500n, 410n), per: 'month', resetsMs }, 'USD'), {
    extra_usage: { is_enabled: true, monthly_limit: 50_000, used_credits: 41_000, utilization: 82, currency: 'USD' },
    limits: [
      {
        kind: 'spend',
        group: 'monthly',
        percent: 82,
        resets_at: '2026-12-01T00:00:00.000Z',
        severity: 'normal',
        is_active: true,
      },
    ],
  })
  const groupOf = (per: 'day' | 'week' | undefined) =>
    tellCapped({ ...use(5n, 9n), per, resetsMs: undefined }, 'EUR').limits[0]
  assert.deepEqual(
    [
      groupOf('day')?.group,
      groupOf('week')?.group,
      groupOf(undefined)?.group,
      groupOf(undefined)?.percent,
      groupOf(undefined)?.resets_at,
    ],
    ['daily', 'weekly', 'credit', 100, null],
  )
  assert.equal(tellCapped({ ...use(0n, 0n), per: 'day', resetsMs }, 'EUR').limits[0]?.percent, 100)
  for (const percent of [28n, 29n, 57n, 58n])
    assert.equal(tellCapped({ ...use(100n, percent), per: 'day', resetsMs }, 'EUR').limits[0]?.percent, Number(percent))
  const { extra_usage: refunded, limits } = tellCapped({ ...use(5n, -1n), per: 'day', resetsMs }, 'EUR')
  assert.deepEqual([refunded.used_credits, refunded.utilization, limits[0]?.percent], [0, 0, 0])
})

test('Y19 headers warn from 75 and 95 per cent, and never report all as spent while requests are answered', () => {
  const linesOf = (share: number, resetsMs?: number) =>
    Object.fromEntries(
      spendLines({ share, resetsMs })
        .trim()
        .split('\r\n')
        .map((line) => line.replace('anthropic-ratelimit-unified-', '').split(': ')),
    )
  assert.deepEqual(linesOf(0.82, 1_796_083_200_000), {
    status: 'allowed_warning',
    'representative-claim': 'overage',
    'overage-status': 'allowed_warning',
    'overage-utilization': '0.82',
    'overage-surpassed-threshold': '0.75',
    reset: '1796083200',
    'overage-reset': '1796083200',
  })
  const rows: [number, string, string, string | undefined][] = [
    [0, 'allowed', '0.00', undefined],
    [0.7499, 'allowed', '0.75', undefined],
    [0.75, 'allowed_warning', '0.75', '0.75'],
    [0.95, 'allowed_warning', '0.95', '0.95'],
    [1, 'allowed_warning', '0.99', '0.95'],
    [3, 'allowed_warning', '0.99', '0.95'],
  ]
  for (const [share, status, utilization, threshold] of rows) {
    const { reset, ...lines } = linesOf(share)
    const told = [lines['status'], lines['overage-utilization'], lines['overage-surpassed-threshold'], reset]
    assert.deepEqual(told, [status, utilization, threshold, undefined])
  }
})

test('Y19 only answers of the messages wire to a person with a budget have the headers', async () => {
  const own = await startTestGateway({ config })
  const budget = { nanos: 50n * credit, per: 'month' as const }
  const [bounded, free] = [await openTestSession(own, { subject: 'b', budget }), await openTestSession(own)]
  const found = async (token: string, path: string, body: object) => {
    const init = { method: 'POST', headers: { authorization: `Bearer ${token}` }, body: JSON.stringify(body) }
    const answer = await fetch(own.url + path, init)
    assert.equal(answer.status, 200)
    await answer.text()
    return [...answer.headers]
      .filter(([name]) => name.startsWith('anthropic-ratelimit'))
      .map(([name, value]) => `${name.slice(28)} ${value}`)
  }
  const messages = { model: 'native-messages', max_tokens: 5, messages: [{ role: 'user', content: 'canary' }] }
  const told = await found(bounded.access, '/v1/messages', messages)
  assert.deepEqual(
    told.filter((line) => !line.includes('reset')),
    ['overage-status allowed', 'overage-utilization 0.00', 'representative-claim overage', 'status allowed'],
  )
  const resets = told.flatMap((line) => /reset (\d+)$/.exec(line)?.[1] ?? [])
  assert.equal(resets.length, 2)
  assert.ok(Number(resets[0]) * 1000 > own.nowMs())
  assert.equal((await found(bounded.access, '/v1/messages', { ...messages, stream: true })).length, 6)
  const chat = { ...messages, model: 'native-chat' }
  assert.deepEqual(await found(bounded.access, '/v1/chat/completions', chat), [])
  assert.deepEqual(await found(free.access, '/v1/messages', messages), [])
  assert.deepEqual(await found(own.key, '/v1/messages', messages), [])
})
