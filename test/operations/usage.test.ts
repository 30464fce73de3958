import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import { runWarm } from '../cli/run.ts'
import { createDebitRow } from '../store/fixtures.ts'
import { until } from '../support/waiting.ts'
import { problemOf, startApi, type Told } from './api.ts'

type Usage = {
  buckets: string[]
  complete_until: string
  series: { of: Record<string, string>; named: Record<string, string> | null; [measure: string]: unknown }[]
  other: Record<string, unknown> | null
  total: Record<string, unknown>
}

const usageOf = ({ body }: Told) => body as unknown as Usage

async function pay(gateway: Awaited<ReturnType<typeof startApi>>['gateway'], model: string): Promise<void> {
  const body = { model, messages: [{ role: 'user', content: 'hi' }] }
  await (await gateway.post('/v1/chat/completions', body)).text()
}

test('issue 13: usage shows paid and free requests at once, and adds up to the ledger', async () => {
  const { gateway, ask } = await startApi()
  await pay(gateway, 'native-chat')
  await pay(gateway, 'native-chat')
  await pay(gateway, 'native-messages')
  await pay(gateway, 'no-such-model')
  const entries = gateway.store.listEntries({ limit: 10 }).filter(({ bill }) => bill)
  const billed = entries.reduce((sum, { amountNanos }) => sum + amountNanos, 0n)
  const day = new Date(gateway.nowMs()).toISOString().slice(0, 10)
  const asked = '/usage?last=1d&bucket=day&by=model&measures=credits,requests,errors,input_tokens,first_byte_ms'
  const paid = usageOf(await ask('GET', asked))
  assert.equal(paid.buckets.at(-1), day)
  assert.deepEqual(
    paid.series.map(({ of, requests }) => [of['model'], (requests as number[]).at(-1)]),
    [
      ...[
        ['native-messages', 1],
        ['native-chat', 2],
      ].sort((a, b) => (costOf(a[0] as string) > costOf(b[0] as string) ? -1 : 1)),
      [null, 1],
    ],
  )
  assert.equal(Math.round(Number((paid.total['credits'] as string[]).at(-1)) * 1e9), Number(billed))
  assert.equal((paid.series.at(-1)!['credits'] as string[]).at(-1), '0')
  assert.equal((paid.total['errors'] as number[]).at(-1), 1)
  const { p50, error } = paid.total['first_byte_ms'] as { p50: number[]; error: number }
  assert.ok(p50.at(-1)! > 0 && error === 0.044)
  assert.equal((paid.total['requests'] as number[]).at(-1), 4)
  assert.equal(Date.parse(paid.complete_until), gateway.nowMs())

  function costOf(model: string): bigint {
    return entries.filter(({ bill }) => bill!.model === model).reduce((sum, { amountNanos }) => sum + amountNanos, 0n)
  }
})

test('issue 13: free requests are written every ten seconds without a query: a command finds them', async () => {
  const { gateway } = await startApi()
  await pay(gateway, 'no-such-model')
  const errors = async () => {
    const { stdout } = await runWarm(['usage', '--json', '--store', gateway.storePath])
    return (JSON.parse(stdout) as Usage).total['errors'] as number[]
  }
  assert.deepEqual(await errors(), [0])
  gateway.advance(10_000)
  await until(async () => (await errors())[0] === 1, 'it is written')
})

test('issue 13: while the store cannot be written, usage shows what it contains, and up to when', async () => {
  const { gateway, ask } = await startApi()
  const told = async () => usageOf(await ask('GET', '/usage?bucket=all&measures=errors'))
  const lock = new DatabaseSync(gateway.storePath)
  lock.exec('BEGIN IMMEDIATE')
  await pay(gateway, 'no-such-model')
  const behind = await told()
  assert.deepEqual(behind.total['errors'], [0])
  assert.equal(Date.parse(behind.complete_until), gateway.nowMs() - 10_000)
  const moved = usageOf(await ask('GET', '/usage?bucket=all&measures=moved_requests'))
  assert.equal(Date.parse(moved.complete_until), gateway.nowMs() - 10_000)
  lock.exec('ROLLBACK')
  lock.close()
  const whole = await told()
  assert.deepEqual(whole.total['errors'], [1])
  assert.equal(Date.parse(whole.complete_until), gateway.nowMs())
})

test('issue 13: series that are not shown individually are in `other`, so that the series add up to the total', async () => {
  const { gateway, ask } = await startApi()
  for (const model of ['native-chat', 'native-messages', 'native-chat']) await pay(gateway, model)
  const { series, other, total } = usageOf(
    await ask('GET', '/usage?by=model&top=1&bucket=all&measures=requests,credits'),
  )
  assert.equal(series.length, 1)
  assert.equal(other!['count'], 1)
  const sum = [series[0]!, other!].reduce((all, one) => all + (one['requests'] as number[])[0]!, 0)
  assert.deepEqual([sum, total['requests']], [3, [3]])
})

test('issue 13: accounts and keys are shown by their names, and filters take names, ids and labels', async () => {
  const { gateway, ask } = await startApi()
  const [key] = gateway.store.listKeys('tester')
  await ask('PATCH', `/keys/${key!.id}`, { body: { label: 'ci' }, headers: { 'if-match': '*' } })
  await pay(gateway, 'native-chat')
  const asked = async (query: string) => usageOf(await ask('GET', `/usage?measures=requests&bucket=all&${query}`))
  const { series } = await asked('by=account,key')
  assert.deepEqual(series[0]!.named, { account: 'tester', key: `ci (${key!.prefix})` })
  for (const query of [
    'account=tester,b',
    `key=${key!.id}`,
    'key=ci',
    'model=native-chat',
    'wires=chat-to-chat',
    'outcome=ok',
  ])
    assert.deepEqual((await asked(query)).total['requests'], [1], query)
  for (const query of ['account=b', 'model=native-messages', 'outcome=upstream_cut', 'upstream=nobody'])
    assert.deepEqual((await asked(query)).total['requests'], [0], query)
  // The name of an account says which of several keys with one label is meant.
  gateway.store.createKey('b', { label: 'ci' })
  const refused = await ask('GET', '/usage?key=ci')
  assert.match(refused.text, /Several accounts have a key \\"ci\\": name one of them with `account`/)
  for (const [query, requests] of [
    ['account=tester&key=ci', 1],
    ['account=b&key=ci', 0],
  ] as const)
    assert.deepEqual((await asked(query)).total['requests'], [requests], query)
  assert.match((await ask('GET', '/usage/table?account=tester&key=ci')).text, /"requests":1/)
})

test('issue 13: a usage query that cannot be answered is refused with the name of its field', async () => {
  const { ask } = await startApi()
  for (const [query, field] of [
    ['by=model,key,account', 'by'],
    ['by=colour', 'by'],
    ['measures=beauty', 'measures'],
    ['bucket=year', 'bucket'],
    ['tz=Mars', 'tz'],
    ['from=2026-11-20&to=2026-11-18', 'from'],
    ['from=2026-13-20', 'from'],
    ['from=2026-11-20&last=7d', 'last'],
    ['last=0s', 'last'],
    ['top=0', 'top'],
    ['account=nobody', 'account'],
    ['key=nothing', 'key'],
    ...(['account', 'key', 'model', 'wires', 'upstream', 'outcome'] as const).map(
      (name) => [`${name}=`, name] as const,
    ),
    ['model=,', 'model'],
  ] as const) {
    const told = await ask('GET', `/usage?${query}`)
    assert.equal(problemOf(told), 'invalid_request', query)
    assert.equal((told.body as unknown as { errors: { pointer: string }[] }).errors[0]!.pointer, `/${field}`, query)
  }
  for (const path of ['/requests?status=', '/requests?model=,', '/usage/table?account=', '/openapi.json?groups='])
    assert.equal(problemOf(await ask('GET', path)), 'invalid_request', path)
  assert.equal(problemOf(await ask('GET', '/usage?last=100d&bucket=quarter')), 'range_too_large')
})

test('issue 46: quarters and days of another zone are summed from the entries, for at most seven days, with the cure', async () => {
  const { gateway, ask } = await startApi()
  await pay(gateway, 'native-chat')
  for (const query of ['bucket=quarter', 'tz=Asia/Kathmandu&bucket=day', 'tz=Asia/Tokyo&bucket=hour&by=key']) {
    const told = usageOf(await ask('GET', `/usage?last=7d&measures=requests,credits&${query}`))
    assert.equal(
      (told.total['requests'] as number[]).reduce((a, b) => a + b),
      1,
      query,
    )
  }
  for (const [query, field, cure] of [
    ['bucket=quarter', 'bucket', /hours of UTC.* at most 7 days: name a longer `bucket`, or name a shorter range/],
    ['bucket=day&tz=Asia/Tokyo', 'tz', /leave `tz` out/],
  ] as const) {
    const told = await ask('GET', `/usage?last=8d&${query}`)
    const { errors, detail } = told.body as unknown as { errors: { pointer: string }[]; detail: string }
    assert.deepEqual([problemOf(told), told.status, errors[0]!.pointer], ['range_too_large', 400, `/${field}`])
    assert.match(detail, cure)
  }
  assert.equal((await ask('GET', '/usage?last=8d&tz=utc')).status, 200)
  assert.equal(usageOf(await ask('GET', '/usage?last=24h&bucket=auto')).buckets.length, 25)
})

test('a usage query for too many values is refused with the cure, for operators and owners', async () => {
  const { gateway, ask, keyA } = await startApi({ config: { own_pages: true } })
  await pay(gateway, 'native-chat')
  const own = async (query: string) => {
    const told = await fetch(`${gateway.url}/console/api/usage?${query}`, {
      headers: { authorization: `Bearer ${keyA}` },
    })
    return { status: told.status, headers: told.headers, text: '', body: await told.json() } as Told
  }
  const askAny = [(query: string) => ask('GET', `/usage?${query}`), own]
  const columns = 'measures=credits,requests,errors,first_byte_ms'
  for (const asked of askAny) {
    const told = await asked(`last=80d&bucket=hour&by=model&top=50&${columns}`)
    const { errors, detail } = told.body as unknown as { errors: { pointer: string }[]; detail: string }
    assert.deepEqual([problemOf(told), told.status, errors[0]!.pointer], ['range_too_large', 400, '/bucket'])
    assert.match(detail, /at most 150000 .*: name a longer `bucket`, fewer groups \(`top`\), fewer `measures`/)
    for (const query of [
      `last=80d&bucket=hour&by=model&top=6&${columns}`,
      `last=80d&bucket=day&by=model&top=50&${columns}`,
      `last=30d&bucket=hour&by=model&top=50`,
      `last=80d&bucket=hour&by=model&top=50&measures=credits`,
      `last=80d&bucket=hour&${columns},total_ms,input_tokens,output_tokens`,
    ])
      assert.equal((await asked(query)).status, 200, query)
  }
})

test('issue 46 NEW-3: a rotated key and its successors are one group of reports, under the name of the newest', async () => {
  const { gateway, books, ask } = await startApi()
  const { id: account } = gateway.store.listAccounts().find(({ name }) => name === 'tester')!
  const first = await books.createKey('tester', { label: 'ci' })
  const second = await books.rotateKey(first.id, 0)
  gateway.store.postDebits(
    [first, second, second].map(({ id }, n) => ({ ...createDebitRow(`req_line_${n}`, account), keyId: id })),
  )
  const groups = async (query: string) =>
    usageOf(await ask('GET', `/usage?bucket=day&last=2d&by=key&measures=requests${query}`)).series.map(
      ({ of, named, requests }) => [of['key'], named!['key'], (requests as number[]).at(-1)],
    )
  for (const folded of [false, true]) {
    if (folded) while (gateway.store.fold(500) > 0) {}
    for (const query of ['', '&top=1', '&tz=Asia/Tokyo'])
      assert.deepEqual(await groups(query), [[first.id, `ci (${second.prefix})`, 3]], query)
  }
})

test('reports of a key are those of its whole rotation, whichever of its keys is named', async () => {
  const { gateway, books, ask } = await startApi()
  const { id: account } = await books.findAccount('tester')
  const first = await books.createKey('tester', { label: 'ci' })
  const second = await books.rotateKey(first.id, 0)
  const other = await books.createKey('tester')
  gateway.store.postDebits(
    [first, second, second, other].map(({ id }, n) => ({ ...createDebitRow(`req_of_${n}`, account), keyId: id })),
  )
  for (const key of [first.id, second.id, second.prefix, 'ci', `${second.id},${first.prefix}`]) {
    const { total } = usageOf(await ask('GET', `/usage?bucket=all&measures=requests&key=${key}`))
    const table = await ask('GET', `/usage/table?by=key&key=${key}`, { headers: { accept: 'text/csv' } })
    assert.deepEqual([total['requests'], table.text.trim().split('\r\n').at(-1)], [[3], 'total,0.00189,3,408'], key)
  }
  // The console finds the figures of a listed key by its `line`.
  const { series } = usageOf(await ask('GET', '/usage?bucket=all&by=key&measures=requests'))
  const counts = new Map(series.map(({ of, requests }) => [of['key'], requests]))
  const { items } = (await ask('GET', '/keys?account=tester')).body as unknown as {
    items: { id: string; line: string }[]
  }
  const ours = [first, second, other].map(({ id }) => counts.get(items.find((one) => one.id === id)!.line))
  assert.deepEqual(ours, [[3], [3], [1]])
})

test('the command line shows the ids of people who have the same name', async () => {
  const { gateway, books } = await startApi()
  const { id: account } = await books.findAccount('tester')
  const people = await Promise.all(['Ann', 'Ann', 'Eva'].map((name) => books.createPerson({ name })))
  gateway.store.postDebits(
    people.map(({ id }, n) => ({ ...createDebitRow(`req_by_${n}`, account), details: { person: id } })),
  )
  const { stdout } = await runWarm(['usage', '--by', 'person,model', '--store', gateway.storePath])
  const words = stdout.split('\n').flatMap((line) => /^(\S.*?) {2,}m-large/.exec(line)?.[1] ?? [])
  assert.deepEqual(words.sort(), [`Ann (${people[0]!.id})`, `Ann (${people[1]!.id})`, 'Eva'].sort())
})

test('issue 13: CSV has the same figures, with a line for each bucket of each series', async () => {
  const { gateway, ask } = await startApi()
  await pay(gateway, 'native-chat')
  const { text, headers } = await ask('GET', '/usage?by=model,account&bucket=all&measures=requests,first_byte_ms', {
    headers: { accept: 'text/csv' },
  })
  assert.match(headers.get('content-type')!, /^text\/csv/)
  const [head, first, total, ...rest] = text.split('\r\n')
  assert.equal(
    head,
    'series,bucket,account,model,account_name,requests,first_byte_ms_p50,first_byte_ms_p95,first_byte_ms_p99',
  )
  assert.match(first!, /^group,\S+Z,acct_\w+,native-chat,tester,1,/)
  assert.match(total!, /^total,\S+Z,,,,1,/)
  assert.deepEqual(rest, [''])
  const none = await ask(
    'GET',
    '/usage?by=model,account&bucket=all&measures=requests,first_byte_ms&outcome=upstream_cut',
    {
      headers: { accept: 'text/csv' },
    },
  )
  assert.equal(none.text.split('\r\n')[0], head)
})

test('issue 13: ranges before all figures are refused, and those in the far future are reported in readable times', async () => {
  const { ask } = await startApi()
  for (const query of [
    'to=1969-12-31',
    'to=1969-12-31&bucket=all',
    'from=1960-01-01&to=1970-01-01',
    'from=9999-02-01&to=9999-03-01',
  ])
    assert.equal(problemOf(await ask('GET', `/usage?${query}`)), 'invalid_request', query)
  // What is answered is held against the document, which has four digits for a year.
  for (const query of [
    'to=9999-12-31&bucket=month',
    'to=9999-01-02&bucket=week&tz=Pacific/Kiritimati',
    'to=9999-01-02&bucket=day&tz=Pacific/Pago_Pago',
    'to=9999-12-31&bucket=all',
  ])
    assert.equal((await ask('GET', `/usage?from=9998-12-30&${query}`)).status, 200, query)
  assert.equal((await ask('GET', '/usage?last=999999d&bucket=all')).status, 200)
  const { ask: askAhead } = await startApi({ config: { reporting: { time_zone: 'Pacific/Kiritimati' } } })
  assert.equal((await askAhead('GET', '/usage?to=9999-12-31T23:00:00Z&last=1mo')).status, 200)
})

test('issue 13: an operator may run four queries at once, and no fifth', async () => {
  const { gateway, ask, viewer } = await startApi()
  await pay(gateway, 'no-such-model')
  // None of them is answered before all have come: what was counted is still being written.
  const written = Promise.withResolvers<boolean>()
  gateway.ledger.noteTraffic = () => written.promise
  let refused = 0
  const asked = Array.from({ length: 6 }, async () => {
    const one = await ask('GET', '/usage?by=model')
    if (one.status === 429) refused++
    return one
  })
  await until(() => refused === 2, 'two are too many')
  written.resolve(true)
  const told = await Promise.all(asked)
  const late = told.filter(({ status }) => status === 429)
  assert.equal(late.length, 2)
  assert.equal(late[0]!.headers.get('retry-after'), '1')
  assert.equal((await ask('GET', '/usage', { token: viewer })).status, 200)
})

test('issue 13: at the command line usage is a table, and with --json the answer of the API', async () => {
  const { gateway } = await startApi()
  await pay(gateway, 'native-chat')
  const store = ['--store', gateway.storePath]
  const table = await runWarm(['usage', '--by', 'model', '--last', '7d', ...store])
  assert.match(
    table.stdout,
    /^\S+Z to \S+Z, days of UTC\nmodel +credits +requests +errors\nnative-chat +0\.\d+ +1 +0\ntotal +0\.\d+ +1 +0\n$/,
  )
  const { stdout } = await runWarm(['usage', '--by', 'model', '--json', ...store])
  assert.equal(JSON.parse(stdout).series[0].of.model, 'native-chat')
  const days = await runWarm(['usage', '--bucket', 'day', '--since', '2026-11-01', '--until', '2026-11-02', ...store])
  assert.equal(days.stdout.split('\n').length, 5)
})
