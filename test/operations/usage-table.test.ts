import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { createCalendar, utc } from '../../src/accounts/calendar.ts'
import { formatCredits, parseCredits } from '../../src/accounts/credit.ts'
import type { Entry } from '../../src/accounts/entries.ts'
import type { Context } from '../../src/operations/operation.ts'
import { readRange } from '../../src/operations/usage-range.ts'
import { usageTable } from '../../src/operations/usage-table.ts'
import { run, runWarm } from '../cli/run.ts'
import { onEachStore, type TestStore } from '../store/engines.ts'
import { createDebitRow } from '../store/fixtures.ts'
import { runsUpTo, takeTurn } from '../support/runs.ts'
import { startApi } from './api.ts'

const atMs = Date.parse('2026-11-20T12:34:00Z')

type Row = Record<string, string | number | null>

async function readTable(store: TestStore, asked: Record<string, string>): Promise<Row[]> {
  const context = { books: store, nowMs: atMs } as unknown as Context
  const outcome = await usageTable.run(context, usageTable.input.parse(asked))
  return (await Array.fromAsync((outcome as { rows: AsyncIterable<object> }).rows)) as Row[]
}

const columns = [
  ...(['account', 'key', 'model', 'wires', 'upstream', 'outcome', 'tier', 'band', 'person'] as const),
  ...(['label:project', 'label:team'] as const),
]

/** One column, or two. */
const combinations = columns.flatMap((one, at) => columns.slice(at).map((other) => [...new Set([one, other])]))

onEachStore((engine) => {
  test('issue 46 law 8: parts are the whole: by any columns the rows of a table are the sums of the entries, folded or not', async () => {
    const store = await engine.open({ atMs })
    const owners = ['zoe', 'amy', 'bob']
    const lines = new Map<string, string>()
    const keys: [account: string, key: string | undefined][] = []
    for (const name of owners) {
      const { id } = await store.createAccount(name, 1_000_000_000_000n)
      const first = await store.createKey(id, { label: `${name}-ci` })
      const second = await store.rotateKey(first.id, 60_000)
      const other = await store.createKey(id)
      for (const key of [first, second]) lines.set(key.id, `${name}-ci (${second.prefix})`)
      lines.set(other.id, other.prefix)
      keys.push([id, first.id], [id, second.id], [id, other.id], [id, undefined])
    }
    const people = ['Ann', 'Ann', 'Eva', 'Zed']
    const persons: string[] = []
    for (const [n, name] of people.entries()) persons.push((await store.createPerson({ name, externalId: `e${n}` })).id)
    const projects = ['project=apollo,team=core', 'project=apollo', 'team=core', undefined]
    const models = ['m-large', 'm-small', 'm-large']
    await store.postDebits(
      Array.from({ length: 90 }, (_, n) => {
        const [account, keyId] = keys[n % keys.length]!
        const outcome = n % 7 === 0 ? ('upstream_cut' as const) : ('ok' as const)
        const person = n % 2 === 0 ? persons[n % 5] : undefined
        const details = { person, labels: projects[n % 4], tier: n % 8 === 0 ? 'flex' : undefined, band: 'peak' }
        const debit = { ...createDebitRow(`req_${n}`, account), keyId, model: models[n % 3]!, outcome }
        return { ...debit, amountNanos: BigInt(n), ...(n > 20 && { details }) }
      }),
    )
    await store.giveBack(['req_5', 'req_17'])
    // Two identities of one person count together, and an erased person is blank.
    await store.linkPersons(persons[1]!, persons[2]!)
    await store.erasePerson(persons[3]!)
    const names = new Map(persons.map((id, n) => [id, ['Ann', 'Ann', 'Ann', null][n]!]))
    const called = new Map((await store.listAccounts()).map(({ id, name }) => [id, name]))
    const entries: Entry[] = []
    for await (const entry of store.eachEntry()) entries.push(entry)
    const balance = (await store.listAccounts()).reduce((sum, { balanceNanos }) => sum + balanceNanos, 0n)
    for (const commits of [0, 1, 1_000]) {
      for (let n = 0; n < commits; n++) if (!(await store.fold(20))) break
      // Reports join the same people, and their first ones and the others are the whole.
      const first = Math.floor(Date.parse('2026-11-20T00:00:00Z') / 900_000)
      for (const bounds of [
        [first, first + 96],
        [first, first + 48, first + 96],
      ])
        for (const top of [9, 1]) {
          const asked = { by: ['person' as const], sums: ['cost' as const], times: [], sort: 'cost' as const, only: {} }
          const { groups, other } = await store.readUsage({ ...asked, bounds, top, daysOf: undefined })
          const ids = groups.map(({ of }) => of[0]!)
          if (top === 9) assert.deepEqual(ids.sort(), ['', persons[0]!, persons[1]!].sort())
          else assert.deepEqual([ids.length, other!.count], [1, 2])
          const costs = [...groups, ...(other ? [other] : [])].flatMap(({ sums }) => sums[0]!)
          assert.equal(
            costs.reduce((sum, cost) => sum + cost, 0n),
            3_000_000_000_000n - balance,
          )
        }
      await fc.assert(
        fc.asyncProperty(fc.shuffledSubarray([...columns], { minLength: 1 }), async (by) => {
          const rows = await readTable(store, { by: by.join(',') })
          assertApart(rows)
          assert.deepEqual(Object.keys(rows[0]!), [...by, 'credits', 'requests', 'tokens'])
          const total = rows.pop()!
          assert.deepEqual(
            [total[by[0]!], ...by.slice(1).map((name) => total[name])],
            ['total', ...by.slice(1).map(() => null)],
          )
          assert.deepEqual(sorted(rows), sorted(sumUp(entries, by, { called, lines, names, persons })))
          assert.equal(parseCredits(`${total['credits']}`), 3_000_000_000_000n - balance)
          for (const name of ['requests', 'tokens'] as const)
            assert.equal(
              total[name],
              rows.reduce((sum, row) => sum + Number(row[name]), 0),
            )
          // A table of one person or of one label has the entries of both identities, or of all other labels.
          const theirs = entries.filter(({ details }) => persons.slice(1, 3).includes(details?.person ?? ''))
          const apollo = entries.filter(({ details }) => details?.labels?.includes('project=apollo'))
          for (const [part, filter] of [
            [theirs, { person: persons[1]! }],
            [apollo, { label: 'project=apollo' }],
          ] as const) {
            const narrowed = (await readTable(store, { by: by.join(','), ...filter })).slice(0, -1)
            assert.deepEqual(sorted(narrowed), sorted(sumUp(part, by, { called, lines, names, persons })))
          }
          if (by[0] === 'account')
            assert.deepEqual([...new Set(rows.map(({ account }) => account))], ['amy', 'bob', 'zoe'])
        }),
        { numRuns: runsUpTo(12) },
      )
    }
  })

  test('a table is limited by names with commas in them, and by several names', async () => {
    const store = await engine.open({ atMs })
    const debits = []
    for (const name of ['Acme, Inc.', 'Acme', 'Inc.', 'other']) {
      const { id } = await store.createAccount(name, 1_000_000_000n)
      const { id: keyId } = await store.createKey(id, { label: `${name} ci, nightly` })
      debits.push({ ...createDebitRow(`req of ${name}`, id), keyId, amountNanos: 1n })
    }
    await store.postDebits(debits)
    const accounts = async (asked: Record<string, string>) =>
      (await readTable(store, { by: 'account', ...asked })).slice(0, -1).map(({ account }) => account)
    assert.deepEqual(await accounts({ account: 'Acme, Inc.' }), ['Acme, Inc.'])
    assert.deepEqual(await accounts({ account: 'Acme,Inc.' }), ['Acme', 'Inc.'])
    assert.deepEqual(await accounts({ account: ' other , Inc.,' }), ['Inc.', 'other'])
    assert.deepEqual(await accounts({ key: 'Acme ci, nightly' }), ['Acme'])
    await assert.rejects(accounts({ account: 'other, nobody' }), { message: /There is no account "nobody"/ })
    assert.equal(usageTable.input.safeParse({ account: ' , ' }).success, false)
  })

  test('a table of a person whose name others have too is that of the only one of them who used anything', async () => {
    const store = await engine.open({ atMs })
    const { id: account } = await store.createAccount('acme', 1_000_000_000n)
    const [ann, namesake] = [await store.createPerson({ name: 'Ann' }), await store.createPerson({ name: 'Ann' })]
    const use = (request: string, person: string) =>
      store.postDebits([{ ...createDebitRow(request, account), amountNanos: 1n, details: { person } }])
    await use('req_1', ann.id)
    const table = async () => (await readTable(store, { by: 'person', person: 'Ann' })).map(({ person }) => person)
    assert.deepEqual(await table(), ['Ann', 'total'])
    await use('req_2', namesake.id)
    await assert.rejects(table(), { message: /^Several people are called "Ann"/ })
    await assert.rejects(readTable(store, { person: 'Eva' }), { message: /^There is no person "Eva"/ })
  })

  test('issue 46: a table has every row, for more accounts than one read and more entries than reports leave unfolded', async () => {
    // The question is written once for both engines, so they share the columns.
    const shared = takeTurn(combinations, engine.name === 'SQLite' ? 0 : 1, 2)
    const store = await engine.open({ atMs })
    const ids: string[] = []
    for (let n = 0; n < 620; n++) ids.push((await store.createAccount(`a${n}`)).id)
    const people: (string | undefined)[] = [undefined]
    for (const name of ['Ann', 'Ann', 'Eva']) people.push((await store.createPerson({ name })).id)
    const labels = [undefined, 'project=apollo', 'team=core']
    const detailsOf = (n: number) => ({
      person: people[n % 4],
      labels: labels[n % 3],
      tier: n % 2 ? 'flex' : undefined,
    })
    const post = async (from: number, count: number) => {
      for (let at = from; at < from + count; at += 2_000)
        await store.postDebits(
          Array.from({ length: 2_000 }, (_, n) => ({
            ...createDebitRow(`req_${at + n}`, ids[(at + n) % ids.length]!),
            amountNanos: 1n,
            ...(at + n < 2_000 && { details: detailsOf(at + n) }),
          })),
        )
    }
    await post(0, 2_000)
    while (await store.fold(500)) {}
    for (const debits of [2_000, 26_000]) {
      const rows = await readTable(store, { by: 'account', month: '2026-11' })
      assert.equal(rows.length, 621)
      assert.deepEqual([rows.at(-1)!['account'], rows.at(-1)!['requests']], ['total', debits])
      assert.equal(
        rows.slice(0, -1).reduce((sum, { requests }) => sum + Number(requests), 0),
        debits,
      )
      for (const by of debits < 3_000 ? shared : [['person'], ['person', 'key']])
        assertApart(await readTable(store, { by: by.join(','), month: '2026-11' }))
      const persons = await readTable(store, { by: 'person' })
      const names = ['', `Ann (${people[1]})`, `Ann (${people[2]})`, 'Eva', 'total']
      assert.deepEqual(persons.map(({ person }) => person ?? '').sort(), names.sort())
      if (debits < 3_000) await post(2_000, 24_000)
    }
  })
})

/** By the plainest way there is. */
function sumUp(
  entries: readonly Entry[],
  by: readonly (typeof columns)[number][],
  {
    called,
    lines,
    names,
    persons,
  }: Record<'called' | 'lines' | 'names', ReadonlyMap<string, string>> & { persons: string[] },
): Row[] {
  const groups = new Map<string, { row: Row; nanos: bigint; isFirst: boolean }>()
  const outcomes = new Map(entries.flatMap(({ bill }) => (bill ? [[bill.requestId, bill.outcome] as const] : [])))
  for (const { accountId, amountNanos, bill, returned, details } of entries) {
    const origin = bill ?? returned
    if (!origin) continue
    const words: Record<(typeof columns)[number], string | null> = {
      ...{ account: called.get(accountId)!, key: lines.get(origin.keyId ?? '') ?? null, model: origin.model! },
      ...{ wires: 'chat-to-messages', upstream: origin.upstream!, outcome: outcomes.get(origin.requestId)! },
      ...{ tier: details?.tier ?? null, band: details?.band ?? null, person: names.get(details?.person ?? '') ?? null },
      'label:project': details?.labels?.includes('project=apollo') ? 'apollo' : null,
      'label:team': details?.labels?.includes('team=core') ? 'core' : null,
    }
    const isFirst = details?.person === persons[0]
    const place = [...by.map((name) => words[name]), by.includes('person') && isFirst].join()
    const row: Row = { ...Object.fromEntries(by.map((name) => [name, words[name]])), requests: 0, tokens: 0 }
    const group = groups.get(place) ?? { row, nanos: 0n, isFirst }
    groups.set(place, group)
    group.nanos += bill ? amountNanos : -amountNanos
    group.row['requests'] = Number(group.row['requests']) + (bill ? 1 : -1)
    group.row['tokens'] = Number(group.row['tokens']) + (bill ? 136 : 0)
  }
  // Two people of one name are two rows, which their ids tell apart: keys and accounts have names of their own.
  const all = [...groups.values()]
  const saidOf = ({ row }: (typeof all)[number]) => JSON.stringify(by.map((name) => row[name]))
  const isShared = (one: (typeof all)[number]) =>
    one.row['person'] === 'Ann' && all.filter((other) => saidOf(other) === saidOf(one)).length > 1
  return all.map((one) => {
    const { nanos, row, isFirst } = one
    const person = isShared(one) && { person: `Ann (${persons[isFirst ? 0 : 1]})` }
    return { ...row, ...person, credits: formatCredits(nanos) }
  })
}

/** No two rows have the same words, and the total is their sum. */
function assertApart(all: readonly Row[]): void {
  const [rows, total] = [all.slice(0, -1), all.at(-1)!]
  const words = rows.map(({ credits, requests, tokens, ...said }) => JSON.stringify(said))
  assert.equal(new Set(words).size, words.length, 'rows of the same words')
  const sum = (values: readonly bigint[]) => values.reduce((to, value) => to + value, 0n)
  assert.equal(total['credits'], formatCredits(sum(rows.map(({ credits }) => parseCredits(`${credits}`)))))
  for (const name of ['requests', 'tokens'] as const)
    assert.equal(BigInt(total[name]!), sum(rows.map((row) => BigInt(row[name]!))))
}

function sorted(rows: readonly Row[]): string[] {
  return rows.map((row) => JSON.stringify(row, Object.keys(row).sort())).sort()
}

test('issue 46 NEW-3 CON-6: a table of more keys than reports show is complete as CSV and JSON lines, by command and HTTP', async () => {
  const { gateway, books, ask } = await startApi()
  const { id: account } = await books.findAccount('tester')
  const keys = await Promise.all(Array.from({ length: 60 }, (_, n) => books.createKey('tester', { label: `dev${n}` })))
  gateway.store.postDebits(keys.map(({ id }, n) => ({ ...createDebitRow(`req_${n}`, account), keyId: id })))
  const month = new Date(gateway.nowMs()).toISOString().slice(0, 7)
  const csv = await ask('GET', `/usage/table?by=account,key,model&month=${month}`, { headers: { accept: 'text/csv' } })
  const lines = csv.text.trim().split('\r\n')
  assert.equal(lines[0], 'account,key,model,credits,requests,tokens')
  assert.equal(lines.length, 62)
  assert.match(lines[1]!, /^tester,dev0 \(sk-tri-\w+\),m-large,0\.00063,1,136$/)
  assert.equal(lines.at(-1), 'total,,,0.0378,60,8160')
  const json = await ask('GET', `/usage/table?by=account,key,model&month=${month}`)
  assert.equal(json.headers.get('content-type'), 'application/jsonl')
  const rows = json.text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Row)
  assert.equal(rows.length, 61)
  assert.deepEqual(rows.at(-1), {
    account: 'total',
    key: null,
    model: null,
    credits: '0.0378',
    requests: 60,
    tokens: 8160,
  })
  const asked = ['usage', 'table', '--by', 'account,key,model', '--last', '1mo', '--store', gateway.storePath]
  assert.equal((await run([...asked, '--csv'])).stdout, csv.text)
  assert.equal((await run([...asked, '--json'])).stdout, json.text)
  const { stdout } = await runWarm(asked)
  assert.match(stdout, /^account +key +model +credits +requests +tokens\n/)
  assert.match(stdout, /\ntotal +- +- +0\.0378 +60 +8160\n$/)
  const one = await ask('GET', '/usage/table?by=key&key=dev7', { headers: { accept: 'text/csv' } })
  assert.equal(one.text.trim().split('\r\n').length, 3)
  for (const [query, field] of [
    ['by=colour', 'by'],
    ['month=2026-13', 'month'],
    ['month=0026-11', 'month'],
    ['month=9999-12', 'month'],
    ['month=2026-11&last=1mo', 'month'],
    ['account=nobody', 'account'],
  ] as const) {
    const { status, body } = await ask('GET', `/usage/table?${query}`, { headers: { accept: 'text/csv' } })
    assert.deepEqual([status, (body as { errors?: { pointer: string }[] }).errors![0]!.pointer], [400, `/${field}`])
  }
  const totals = await run(['ledger', 'totals', '--by', 'account', '--csv', '--store', gateway.storePath])
  assert.match(totals.stdout, /^account,account_name,requests,billed,/)
  const figures = await run(['usage', '--by', 'model', '--month', month, '--csv', '--store', gateway.storePath])
  assert.match(figures.stdout, /^series,bucket,model,credits,/)
})

test('issue 46: a month-based interval ends with the range, and begins on a day that its month has', () => {
  const calendar = createCalendar(utc)
  const beginning = (to: string, months: number) => {
    const toMs = Date.parse(to)
    const { fromMs } = readRange({ to: { ms: toMs }, last: { months } }, calendar, toMs, () => 0)
    return new Date(fromMs).toISOString()
  }
  for (const [to, months, from] of [
    ['2026-11-27T18:00:00Z', 1, '2026-10-27T18:00:00.000Z'],
    ['2026-03-31T00:00:00Z', 1, '2026-02-28T00:00:00.000Z'],
    ['2026-01-15T06:30:00Z', 13, '2024-12-15T06:30:00.000Z'],
  ] as const)
    assert.equal(beginning(to, months), from)
})
