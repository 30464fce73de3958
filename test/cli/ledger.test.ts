import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { lockStore } from '../../src/store/files/lock.ts'
import { createFirstRelease } from '../store/first-release.ts'
import { costNanos, createDebitRow, createPath } from '../store/fixtures.ts'
import { forgeFile, redigest } from '../store/forge.ts'
import { type Operator, openStore } from '../support/operator.ts'
import { run, runWarm } from './run.ts'

const day = (text: string) => Date.parse(`${text}T00:00:00Z`)

type Books = { store: Operator; path: string; a: string; b: string; laptop: string; ci: string; prefix: string }

/** Two accounts, three keys, two models, four days: req_1 to req_6, and the credits before them on the first day. */
function createBooks(t: TestContext): Books {
  const path = createPath(t)
  let now = day('2026-11-18')
  const store = openStore(path, { nowMs: () => now })
  t.after(() => store.close())
  const [a, b] = [store.createAccount('one', 9_000_000n).id, store.createAccount('two').id]
  const { id: laptop, prefix } = store.createKey('one', { label: 'laptop' })
  const [ci, other] = [store.createKey('one', { label: 'ci' }).id, store.createKey('two', { label: 'other' }).id]
  const bills: [atMs: number, accountId: string, keyId: string, model: string][] = [
    [day('2026-11-19'), a, laptop, 'm-large'],
    [day('2026-11-20') - 1, a, ci, 'm-small'],
    [day('2026-11-20'), b, other, 'm-large'],
    [day('2026-11-20') + 43_200_000, a, laptop, 'm-small'],
    [day('2026-11-21') - 1, a, laptop, 'm-large'],
    [day('2026-11-21'), a, ci, 'm-large'],
  ]
  bills.forEach(([atMs, accountId, keyId, model], index) => {
    now = atMs
    store.postDebits([{ ...createDebitRow(`req_${index + 1}`, accountId), keyId, model }])
  })
  return { store, path, a, b, laptop, ci, prefix }
}

test('X12: bare dates are days of the store’s recorded time zone, whatever a configuration says', async (t) => {
  const { path, store } = createBooks(t)
  const told = async (...args: string[]) => {
    const { code, stdout, stderr } = await runWarm(['ledger', ...args, '--store', path, '--json'])
    assert.equal(code, 0, stderr)
    return stdout
  }
  const days = ['--since', '2026-11-20', '--until', '2026-11-20']
  const ids = async () => [...(await told('export', ...days)).matchAll(/"request_id":"(req_\d)"/g)].map(([, id]) => id)
  assert.deepEqual(await ids(), ['req_3', 'req_4', 'req_5'])
  // There it is an hour later.
  store.adoptReporting({ timeZone: 'Europe/Berlin', weekStarts: 'monday', keepMonths: 13 }, day('2026-11-21'))
  assert.deepEqual(await ids(), ['req_2', 'req_3', 'req_4'])
  assert.equal(JSON.parse(await told('list', ...days)).length, 3)
  assert.equal(JSON.parse(await told('totals', ...days))[0].requests, 3)
  const byDay: { day: string; requests: number }[] = JSON.parse(await told('totals', '--by', 'day'))
  assert.deepEqual(
    byDay.map(({ day, requests }) => [day, requests]),
    [
      ['2026-11-18', 0],
      ['2026-11-19', 1],
      ['2026-11-20', 3],
      ['2026-11-21', 2],
    ],
  )
  const made = await runWarm(['key', 'create', 'one', '--expires', '2040-01-31', '--store', path, '--json'])
  assert.equal(made.code, 0, made.stderr)
  const ends = store.listKeys('one').map(({ expiresMs }) => expiresMs)
  assert.deepEqual(ends.filter(Boolean), [Date.parse('2040-01-30T23:00:00Z')])
})

test('X12: reporting rezone changes the time zone of days while no server runs, and reports the change', async (t) => {
  const { path } = createBooks(t)
  const rezone = (zone: string, ...more: string[]) => runWarm(['reporting', 'rezone', zone, '--store', path, ...more])
  const first = await rezone('Europe/Berlin')
  assert.deepEqual(
    [first.code, first.stdout, first.stderr],
    [
      0,
      'the days of reports and budgets are those of Europe/Berlin from now on\n',
      'note: set reporting.time_zone: Europe/Berlin in the configuration of every server\n',
    ],
  )
  assert.match((await rezone('Europe/Berlin')).stdout, /^the days of reports and budgets are those of .* already\n$/)
  const data = { before: 'Europe/Berlin', after: 'UTC', changed: true }
  assert.deepEqual(JSON.parse((await rezone('UTC', '--json')).stdout), data)
  const audit = JSON.parse((await runWarm(['audit', '--store', path, '--json'])).stdout)
  assert.deepEqual(
    audit.map(({ operation, object }: Record<string, string>) => [operation, object]),
    [
      ['reporting.rezone', 'reporting'],
      ['reporting.rezone', 'reporting'],
    ],
  )
  const wrong = await rezone('Europe/Berln')
  assert.equal(wrong.code, 2)
  assert.match(wrong.stderr, /^error: <zone> must be the name of a time zone, .*; did you mean Europe\/Berlin\?\n/)
  const unlock = lockStore(path)
  const running = await rezone('Europe/Berlin')
  unlock()
  assert.equal(running.code, 1)
  assert.match(running.stderr, /^triwire: Another triwire server is running on /)
})

test("X12: commands renew the budgets of accounts, keys and people in the store's time zone", async (t) => {
  const { path } = createBooks(t)
  const ask = async (...words: string[]) => {
    const { code, stdout, stderr } = await runWarm([...words, '--store', path, '--json'])
    assert.equal(code, 0, stderr)
    return stdout
  }
  // A day of this zone never begins with a day of UTC.
  await ask('reporting', 'rezone', 'Asia/Kolkata')
  const budget = ['--budget', '5/day']
  const told = [
    await ask('account', 'create', 'three', ...budget),
    await ask('person', 'create', 'Ada', '--external-id', 'u-1', '--account', 'three', ...budget),
    await ask('person', 'set', 'u-1', '--budget', '6/day'),
    await ask('person', 'list'),
    await ask('account', 'list'),
  ]
  await ask('key', 'create', 'three', '--person', 'u-1', ...budget)
  told.push(await ask('key', 'list'))
  for (const text of told) {
    const renewals = [...text.matchAll(/"renews_at": ?"([^"]+)"/g)].map(([, time]) => time!.slice(10))
    assert.deepEqual([...new Set(renewals)], ['T18:30:00.000Z'], text)
  }
})

test('ledger list filters by account, key, model and times, and lists the newest first', async (t) => {
  const { path, a, laptop, prefix } = createBooks(t)
  const cases: [args: string[], ids: string[]][] = [
    [['--account', 'two'], ['req_3']],
    [
      ['--account', a, '--limit', '2'],
      ['req_6', 'req_5'],
    ],
    [
      ['--key', laptop],
      ['req_5', 'req_4', 'req_1'],
    ],
    [
      ['--key', prefix],
      ['req_5', 'req_4', 'req_1'],
    ],
    [
      ['--key', 'ci'],
      ['req_6', 'req_2'],
    ],
    [['--key', 'laptop', '--model', 'm-small'], ['req_4']],
    [
      ['--model', 'm-small'],
      ['req_4', 'req_2'],
    ],
    // A bare date is a whole day, and --until includes it; an instant is excluded, whatever its offset.
    [
      ['--since', '2026-11-20', '--until', '2026-11-20'],
      ['req_5', 'req_4', 'req_3'],
    ],
    [
      ['--since', '2026-11-20T12:00:00Z'],
      ['req_6', 'req_5', 'req_4'],
    ],
    [
      ['--since', '2026-11-20T12:00:00.001Z'],
      ['req_6', 'req_5'],
    ],
    [
      ['--since', '2026-11-19', '--until', '2026-11-20T00:00:00Z'],
      ['req_2', 'req_1'],
    ],
    [
      ['--since', '2026-11-20T13:30:00+01:30', '--until', '2026-11-20T18:30:00-05:30'],
      ['req_5', 'req_4'],
    ],
    [['--account', 'one', '--until', '2026-11-18'], [`create:${a}`]],
  ]
  const runs = await Promise.all(cases.map(([args]) => runWarm(['ledger', 'list', ...args, '--store', path, '--json'])))
  for (const [index, { json, stderr }] of runs.entries()) {
    const [args, ids] = cases[index]!
    assert.deepEqual(
      json.map((row) => row.request_id ?? row.reference),
      ids,
      `${args.join(' ')} ${stderr}`,
    )
  }
})

test('a filter that matches no account, key or model is an error with its option and the cure', async (t) => {
  const { path, store } = createBooks(t)
  store.createKey('two', { label: 'ci' })
  const cases: [args: string[], code: number, stderr: RegExp][] = [
    [['--account', 'three'], 1, /^triwire: --account: There is no account "three": see triwire account list\n$/],
    [['--key', 'phone'], 1, /^triwire: --key: There is no key "phone": see triwire key list\n$/],
    [['--key', 'laptop', '--account', 'two'], 1, /^triwire: --key: There is no key "laptop" of that account: see/],
    [['--key', 'ci'], 1, /^triwire: --key: Several accounts have a key "ci": name one of them with --account\n$/],
    [['--model', 'm-tiny'], 1, /^triwire: --model: The ledger has no entry of "m-tiny": it has m-large, m-small\n$/],
    [['--since', 'yesterday'], 2, /'--since <time>' .*Write a day like 2026-11-21 or a time like 2026-11-21T08:30:00Z/],
    [['--until', '2026-02-30'], 2, /'--until <time>' .*There is no such day or time/],
    [['--until', '2026-11-20T25:00:00Z'], 2, /There is no such day or time/],
    [['--since', '2026-11-20T12:00:00'], 2, /Write a day like/],
    [['--since', '2026-11-21', '--until', '2026-11-20'], 1, /--since is not before --until/],
    [['--by', 'week'], 2, /Write any of day, model, account, key/],
  ]
  const runs = await Promise.all(
    cases.map(([args]) => runWarm(['ledger', args[0] === '--by' ? 'totals' : 'list', ...args, '--store', path])),
  )
  for (const [index, { code, stdout, stderr }] of runs.entries()) {
    assert.deepEqual([code, stdout], [cases[index]![1], ''], stderr)
    assert.match(stderr, cases[index]![2])
  }
})

test('C9 entries name key, wires and upstream in JSON', async (t) => {
  const { path, a, laptop, prefix } = createBooks(t)
  const [[listed], shown] = await Promise.all([
    run(['ledger', 'list', '--key', 'laptop', '--limit', '1', '--store', path, '--json']).then(({ json }) => json),
    runWarm(['ledger', 'show', 'req_5', '--store', path, '--json']).then(({ json }) => json),
  ])
  const origin = {
    key_id: laptop,
    key_prefix: prefix,
    key_label: 'laptop',
    client_wire: 'chat',
    model: 'm-large',
    model_wire: 'messages',
    upstream: 'm-upstream',
    upstream_account: 'm-one',
    priced_calls: 0,
  }
  for (const row of [listed!, shown]) {
    const named = Object.fromEntries(Object.keys(origin).map((name) => [name, row[name]]))
    assert.deepEqual(named, origin)
    assert.deepEqual([row['account'], row['account_name'], row['posted']], [a, 'one', '2026-11-20T23:59:59.999Z'])
  }
  assert.match(listed!['digest']!, /^1:/)
})

test('C13 a refund is listed as a waived credit, with the key and model of its debit, and does not count in the totals', async (t) => {
  const { path, store, laptop } = createBooks(t)
  store.postReturns(['req_5'])
  const { json } = await runWarm(['ledger', 'list', '--key', 'laptop', '--limit', '1', '--store', path, '--json'])
  const [row] = json
  assert.deepEqual(
    [row!['kind'], row!['reference'], row!['usage_source'], row!['key_id'], row!['model'], row!['request_id']],
    ['credit', 'return:req_5', 'waived', laptop, 'm-large', null],
  )
  const totals = await runWarm(['ledger', 'totals', '--key', 'laptop', '--model', 'm-large', '--store', path, '--json'])
  assert.deepEqual(
    [totals.json[0]!['requests'], totals.json[0]!['billed'], totals.json[0]!['credited']],
    [1, '0.00063', '0'],
  )
})

test('ledger totals sums by day, model, account and key in any combination, with the same filters', async (t) => {
  const { path, a, b, laptop, ci } = createBooks(t)
  const totals = async (...args: string[]) =>
    (await runWarm(['ledger', 'totals', ...args, '--store', path, '--json'])).json as unknown as Record<
      string,
      unknown
    >[]
  const pick = (rows: Record<string, unknown>[], ...names: string[]) =>
    rows.map((row) => names.map((name) => row[name]))
  const [all, days, models, pairs, keys] = await Promise.all([
    totals(),
    totals('--by', 'day'),
    totals('--by', 'model', '--since', '2026-11-20'),
    totals('--by', 'account,model', '--until', '2026-11-20'),
    totals('--by', 'key', '--account', 'one', '--since', '2026-11-19'),
  ])
  assert.deepEqual(all, [
    {
      requests: 6,
      billed: '0.00378',
      credited: '0.009',
      input_tokens: 600,
      cache_read_tokens: 60,
      cache_write_tokens: 36,
      cache_write_1h_tokens: 12,
      output_tokens: 120,
      reasoning_tokens: 30,
    },
  ])
  assert.deepEqual(pick(days!, 'day', 'requests', 'billed', 'credited'), [
    ['2026-11-18', 0, '0', '0.009'],
    ['2026-11-19', 2, '0.00126', '0'],
    ['2026-11-20', 3, '0.00189', '0'],
    ['2026-11-21', 1, '0.00063', '0'],
  ])
  assert.deepEqual(pick(models!, 'model', 'requests'), [
    ['m-large', 3],
    ['m-small', 1],
  ])
  const byId = (x: unknown[], y: unknown[]) => String(x[0]).localeCompare(String(y[0]))
  assert.deepEqual(
    pick(pairs!, 'account', 'account_name', 'model', 'requests').sort(byId),
    [
      [a, 'one', null, 0],
      [a, 'one', 'm-large', 2],
      [a, 'one', 'm-small', 2],
      [b, 'two', 'm-large', 1],
    ].sort(byId),
  )
  assert.deepEqual(
    pick(keys!, 'key_id', 'key_label', 'requests').sort(byId),
    [
      [laptop, 'laptop', 3],
      [ci, 'ci', 2],
    ].sort(byId),
  )
  const table = (await runWarm(['ledger', 'totals', '--by', 'model,day', '--key', 'ci', '--store', path])).stdout.split(
    '\n',
  )
  assert.match(table[0]!, /^day +model +requests +billed +credited +input_tokens/)
  assert.match(table[1]!, /^2026-11-21 +m-large +1 +0.00063|^2026-11-19 +m-small +1 +0.00063/)
})

/** Earlier a reference could have anything in it but a NUL. */
function creditAsBefore(store: Operator, accountId: string, amountNanos: bigint, reference: string): void {
  store.change({
    about: { account: accountId, reference },
    decide: () => ({ writes: [{ kind: 'post_credit', accountId, amountNanos, reference }], result: undefined }),
  })
}

test('ledger export has names beside ids, accepts the filters, and no text cell is a formula', async (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const { id } = store.createAccount('=cmd|calc')
  const { id: keyId, prefix } = store.createKey(id, { label: '@home, "mine"' })
  for (const reference of ['+1', '-2', '\t3', '\r4', '=5', "it's 6"])
    creditAsBefore(store, id, -1_000_000_000n, reference)
  store.postDebits([{ ...createDebitRow('req_1', id), keyId, model: '-m' }])
  const csv = async (...args: string[]) =>
    (await runWarm(['ledger', 'export', '--csv', ...args, '--store', path])).stdout
  const text = await csv()
  const rows = text.split('\r\n')
  assert.equal(
    rows[0],
    'account,account_name,seq,kind,amount,balance_after,reference,request_id,key_id,key_prefix,key_label,client_wire,model,model_wire,' +
      'upstream,upstream_account,input_tokens,cache_read_tokens,cache_write_tokens,cache_write_1h_tokens,output_tokens,reasoning_tokens,' +
      'priced_calls,usage_source,price_version,outcome,created,posted,digest,calls,' +
      'list,band,tier,geo,person,labels,cost_version,cost,cost_reported,alias,fell_back_from,fell_back_cause,moved,effective',
  )
  assert.ok(rows[1]!.startsWith(`${id},'=cmd|calc,1,credit,-1,-1,'+1,,,,,,,`), rows[1]!)
  for (const cell of [",'-2,", ",'\t3,", `,"'\r4",`, ",'=5,", ",it's 6,"]) assert.ok(text.includes(cell), cell)
  assert.ok(
    rows[7]!.startsWith(
      `${id},'=cmd|calc,7,debit,0.00063,-6.00063,,req_1,${keyId},${prefix},"'@home, ""mine""",chat,'-m,messages,m-upstream,m-one,` +
        '100,10,6,2,20,5,0,final,v1,ok,2023-11-14T22:13:20.000Z,',
    ),
    rows[7]!,
  )
  assert.equal((await csv('--key', '@home, "mine"')).split('\r\n').length, 3)
})

test('ledger export: characters that a spreadsheet strips before it looks for a formula do not hide one', async (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const { id } = store.createAccount('one')
  const hidden = [' =1', '   @2', '\t=3', ' \t+4', '\n=5', '\u00a0-6', '\u200b=7', '\ufeff=8', '\uff1d9', '\n10']
  const plain = ['a =11', ' 12', '(=13)']
  for (const reference of [...hidden, ...plain]) creditAsBefore(store, id, 1n, reference)
  const { stdout } = await runWarm(['ledger', 'export', '--csv', '--store', path])
  const told = [...stdout.matchAll(/,credit,[^,]*,[^,]*,("[^"]*"|[^,]*),/g)].map(([, cell = '']) =>
    cell.replaceAll('"', ''),
  )
  assert.deepEqual(told, [...hidden.map((text) => `'${text}`), ...plain])
})

test('C15 ledger verify prints a head, and proves a grown ledger against it', async (t) => {
  const { path, store, a } = createBooks(t)
  const verify = (...args: string[]) => runWarm(['ledger', 'verify', ...args, '--store', path])
  const { stdout } = await verify()
  const [, head = ''] = /^the ledger is right\nhead (1\/\S+)\n$/.exec(stdout) ?? []
  store.postDebits([createDebitRow('req_7', a)])
  const grown = await verify('--against', head, '--json')
  assert.deepEqual([grown.code, grown.json['ok'], grown.json['findings']], [0, true, []])
  assert.notEqual(grown.json['head'], head)
  await forgeFile(path, async (forger) => {
    await forger.run("UPDATE entries SET amount = 1, input_tokens = 0 WHERE reference LIKE 'create:%'")
    await redigest(forger)
  })
  assert.equal((await verify()).code, 0)
  const forged = await verify('--against', head)
  assert.equal(forged.code, 1)
  assert.match(forged.stdout, /^head of 20\S+Z: what it covered was changed, or is gone\n$/)
  const wrong = await verify('--against', 'nonsense')
  assert.equal(wrong.code, 2)
  assert.match(wrong.stderr, /is not a head: copy the whole line/)
})

test('C15 ledger verify --log compares account, key, upstream, tokens and amount if a line has them', async (t) => {
  const { path, store, a, laptop, prefix } = createBooks(t)
  const file = join(dirname(path), 'access.log')
  const usage = { input: 100, cache_read: 10, cache_write: 6, cache_write_1h: 2, output: 20, reasoning: 5 }
  const line = {
    ...{ id: 'req_1', account: 'one', account_id: a, key: prefix, key_id: laptop },
    ...{ upstream: 'm-upstream', upstream_account: 'm-one' },
    ...{ usage, cost: '0.00063', outcome: 'ok' },
  }
  const others = ['req_2', 'req_3', 'req_4', 'req_5', 'req_6'].map((id) => ({ id, cost: '0.00063', outcome: 'ok' }))
  const cases: [change: object, finding: string][] = [
    [{}, ''],
    [{ upstream_account: undefined }, ''],
    [{ key_id: undefined, account_id: undefined }, ''],
    [{ cost: '0.0006' }, 'the log says 600000 ok, the ledger 630000 ok'],
    [{ outcome: 'client_abort' }, 'the log says 630000 client_abort, the ledger 630000 ok'],
    [{ account_id: 'acct_x' }, `the log says account acct_x, the ledger ${a}`],
    [{ account_id: undefined, account: 'two' }, 'the log says account two, the ledger one'],
    [{ key_id: 'key_x' }, `the log says key key_x, the ledger ${laptop}`],
    [{ key_id: undefined, key: 'sk-tri-x' }, `the log says key sk-tri-x, the ledger ${prefix}`],
    [{ upstream: 'elsewhere' }, 'the log says upstream elsewhere, the ledger m-upstream'],
    [{ upstream_account: 'two' }, 'the log says upstream account two, the ledger m-one'],
    ...Object.entries(usage).map(([name, count]): [object, string] => [
      { usage: { ...usage, [name]: count + 1 } },
      `the log says ${name} ${count + 1}, the ledger ${count}`,
    ]),
  ]
  assert.equal(store.findEntry('req_1')?.amountNanos, costNanos)
  for (const [change, finding] of cases) {
    writeFileSync(file, [{ ...line, ...change }, ...others].map((one) => `${JSON.stringify(one)}\n`).join(''))
    const { stdout, stderr } = await runWarm(['ledger', 'verify', '--log', file, '--store', path, '--json'])
    assert.deepEqual(JSON.parse(stdout).findings, finding ? [`request req_1: ${finding}`] : [], stderr)
  }
})

test('key create --label is shown by key list, kept by rotate, and is never taken as a key', async (t) => {
  const store = ['--store', createPath(t), '--json']
  await runWarm(['account', 'create', 'one', ...store])
  const made = await runWarm(['key', 'create', 'one', '--label', 'CI of team A', ...store])
  await runWarm(['key', 'rotate', String(made.json['id']), ...store])
  await runWarm(['key', 'create', 'one', ...store])
  const listed = await runWarm(['key', 'list', ...store])
  assert.deepEqual(listed.json.map(({ label }) => label).sort(), ['CI of team A', 'CI of team A', null])
  const table = await runWarm(['key', 'list', ...store.slice(0, 2)])
  assert.match(table.stdout, /^id +prefix +label +account/)
  for (const label of ['', ' x', 'a\nb', 'x'.repeat(101)]) {
    const wrong = await runWarm(['key', 'create', 'one', '--label', label, ...store])
    assert.match(wrong.stderr, /A label has 1 to 100 characters, all of which can be seen, and no blanks around/)
  }
  const secret = await runWarm(['key', 'create', 'one', '--label', made.json['key']!, ...store])
  assert.match(secret.stderr, /A label is not secret: it must not hold a key/)
  assert.equal(secret.stderr.includes(made.json['key']!), false)
})

test('C9 a command names the server to restart if the store is older than itself', async (t) => {
  const path = createPath(t)
  createFirstRelease(path, { acct_a: 'one' }, [])
  const unlock = lockStore(path)
  const refused = await runWarm(['account', 'list', '--store', path])
  assert.deepEqual([refused.code, refused.stdout], [1, ''])
  assert.match(
    refused.stderr,
    /^triwire: \S+ was written by an older triwire, and a server runs on it: restart that server with this triwire, .*try again\n$/,
  )
  unlock()
  assert.equal((await runWarm(['account', 'list', '--store', path])).code, 0)
})

test('B23 verify reports a damaged page, or a file that cannot be opened, and its cure, also as JSON', async (t) => {
  const path = createPath(t)
  const store = openStore(path)
  const { id } = store.createAccount('one', 9_000_000n)
  store.postDebits(Array.from({ length: 100 }, (_, i) => createDebitRow(`req_${i}`, id)))
  store.close()
  const whole = readFileSync(path)
  const damages: [string, number][] = [
    ['the last page', whole.length - 4_096],
    ['the first one', 0],
  ]
  for (const [what, at] of damages) {
    writeFileSync(path, Buffer.from(whole).fill(0xff, at, at + 64), { mode: 0o600 })
    const { code, stdout } = await runWarm(['ledger', 'verify', '--store', path, '--json'])
    const { ok, findings, head } = JSON.parse(stdout) as { ok: boolean; findings: string[]; head: unknown }
    assert.deepEqual([code, ok, head], [1, false, null], what)
    assert.match(findings.at(-1)!, /restore a backup/, what)
    const said = await runWarm(['ledger', 'verify', '--store', path])
    assert.deepEqual([said.code, said.stdout.trim()], [1, findings.join('\n')])
  }
})

test('issue 46 ledger correct lists entries with future dates, asks before it starts form 3, and corrects them once', async (t) => {
  const path = createPath(t)
  let now = Date.now()
  const store = openStore(path, { nowMs: () => now })
  t.after(() => store.close())
  const { id } = store.createAccount('one', 9_000_000n)
  now += 7_200_000
  const effective = new Date(now - 7_200_000).toISOString()
  store.postDebits([{ ...createDebitRow('req_1', id), createdMs: now }])
  now -= 7_200_000
  const ask = (...args: string[]) => runWarm(['ledger', 'correct', '--effective', effective, ...args, '--store', path])
  const listed = await ask('--dry-run', '--json')
  const [entry, ...others] = JSON.parse(listed.stdout)
  assert.deepEqual([entry.name, entry.effective, others], ['req_1', effective, []])
  const refused = await ask()
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /The ledger was left as it was: see --dry-run, and run with --yes/)
  for (const how of ['--dry-run', '--yes'])
    for (const [time, word] of [
      ['2016-10-06T12:00:00Z', /The clock was still right at 20.*name that time or a later one/],
      ['2160-01-01T00:00:00Z', /is ahead of the clock of the store/],
    ] as const) {
      const said = await runWarm(['ledger', 'correct', '--effective', time, how, '--store', path])
      assert.equal(said.code, 1, how)
      assert.match(said.stderr, word, how)
    }
  assert.equal(store.listEntries({ limit: 9 }).length, 2)
  const { stdout, stderr } = await ask('--yes')
  assert.match(stdout, /^one, entry 2 \(req_1\): posted .* counts at /, stderr)
  assert.match((await ask('--yes')).stdout, /no entry is ahead of the clock/)
  assert.equal(store.listEntries({ limit: 9 })[0]!.details!.effectiveMs, Date.parse(effective))
  const future = new Date(Date.now() + 9_000_000).toISOString()
  const wrong = await runWarm(['ledger', 'correct', '--effective', 'soon', '--store', path])
  assert.equal(wrong.code, 2)
  now += 7_200_000
  store.postDebits([{ ...createDebitRow('req_2', id), createdMs: now }])
  const early = await runWarm(['ledger', 'correct', '--effective', future, '--yes', '--store', path])
  assert.match(early.stderr, /is ahead of the clock of the store/)
})
