import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { parseHead } from '../../src/accounts/chain.ts'
import { parseCredits } from '../../src/accounts/credit.ts'
import type { Entry } from '../../src/accounts/entries.ts'
import type { CreditWords } from '../../src/accounts/statement.ts'
import type { Context, Operation } from '../../src/operations/operation.ts'
import type { ToldStatement } from '../../src/operations/statement-shape.ts'
import { statementOperations } from '../../src/operations/statements.ts'
import { summedMax } from '../../src/store/sql/statements.ts'
import { run, runWarm } from '../cli/run.ts'
import { onEachStore, type TestStore } from '../store/engines.ts'
import { costNanos, createDebitRow, verifyOptions } from '../store/fixtures.ts'
import { runsUpTo } from '../support/runs.ts'
import { problemOf, startApi } from './api.ts'

const [show] = statementOperations as [Operation]
const startMs = Date.parse('2026-08-20T10:00:00Z')
const lateMs = Date.parse('2026-12-05T00:00:00Z')
const dayMs = 86_400_000
const months = ['2026-08', '2026-09', '2026-10', '2026-11']
const euro: CreditWords = { symbol: '€', name: 'EUR', seller: 'Acme <GmbH>\nMain Street 1' }

function contextOf(store: TestStore, words = euro): Context {
  return { books: store, nowMs: lateMs, running: { readCreditWords: async () => words } } as unknown as Context
}

async function readStatement(store: TestStore, account: string, month: string, words = euro): Promise<ToldStatement> {
  const outcome = await show.run(contextOf(store, words), show.input.parse({ account, month }))
  return (outcome as { body: ToldStatement }).body
}

/** The statement in each of its forms. */
async function bytesOf(store: TestStore, account: string, month: string, words = euro): Promise<string[]> {
  const forms = ['csv', 'html'].map(async (form) => {
    const outcome = await show.run(contextOf(store, words), show.input.parse({ account, month, form }))
    return (outcome as { text: string }).text
  })
  return [JSON.stringify(await readStatement(store, account, month, words)), ...(await Promise.all(forms))]
}

const post = fc.record({
  account: fc.nat(1),
  key: fc.nat(2),
  kind: fc.constantFrom('debit', 'debit', 'debit', 'return', 'credit'),
  laterDays: fc.constantFrom(0, 0, 1, 5, 17),
  labels: fc.constantFrom(undefined, 'project=apollo'),
  isOfPerson: fc.boolean(),
})

onEachStore((engine) => {
  test('a statement tells people apart who have the same name', async () => {
    const store = await engine.open({ atMs: startMs })
    const { id } = await store.createAccount('a', 10n ** 12n)
    const ids: string[] = []
    for (const name of ['Ann', 'Ann', 'Eva']) ids.push((await store.createPerson({ name })).id)
    const [ann = '', other = '', eva = ''] = ids
    await store.postDebits(
      ids.map((person, n) => ({ ...createDebitRow(`r${n}`, id), amountNanos: 1n, details: { person } })),
    )
    await store.turn(lateMs)
    for (const month of ['2026-08', '2026-08']) {
      const { people } = await readStatement(store, id, month)
      assert.deepEqual(
        people.map(({ person }) => person),
        [...[ann, other].sort().map((one) => `Ann (${one})`), 'Eva'],
      )
    }
    // Two identities of one person are one line.
    const linked = await store.createAccount('b', 10n ** 12n)
    await store.linkPersons(ann, other)
    await store.postDebits(
      [ann, other, eva].map((person, n) => ({
        ...createDebitRow(`s${n}`, linked.id),
        amountNanos: 1n,
        details: { person },
      })),
    )
    const { people } = await readStatement(store, linked.id, '2026-12')
    assert.deepEqual(
      people.map(({ person, requests }) => [person, requests]),
      [
        ['Ann', 2],
        ['Eva', 1],
      ],
    )
  })

  test('issue 46 laws 8 and 9: opening plus credits, use and returns is the closing, the next opening; all parts are the whole', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(post, { minLength: 1, maxLength: 30 }), async (posts) => {
        const store = await engine.open({ atMs: startMs })
        const { id: person } = await store.createPerson({ name: 'Ann' })
        const accounts: { id: string; keys: string[] }[] = []
        for (const name of ['a', 'b']) {
          const { id } = await store.createAccount(name, 10n ** 15n)
          const first = await store.createKey(id, { label: 'ci' })
          accounts.push({
            id,
            keys: [first.id, (await store.rotateKey(first.id, 0)).id, (await store.createKey(id)).id],
          })
        }
        let nowMs = startMs
        const debits: string[] = []
        for (const [n, { account, key, kind, laterDays, labels, isOfPerson }] of posts.entries()) {
          nowMs = Math.min(nowMs + laterDays * dayMs, lateMs - dayMs)
          await store.turn(nowMs)
          const { id, keys } = accounts[account]!
          const details = { labels, person: isOfPerson ? person : undefined }
          if (kind === 'credit') await store.credit(id, n % 2 === 0 ? 5_000_000_000n : -7n, `c${n}`)
          else if (kind === 'return') {
            const requestId = debits.pop()
            if (requestId) await store.giveBack([requestId])
          } else {
            await store.postDebits([{ ...createDebitRow(`r${n}`, id), keyId: keys[key]!, ...(n % 2 && { details }) }])
            debits.push(`r${n}`)
          }
        }
        await store.turn(lateMs)
        const entries: Entry[] = []
        for await (const entry of store.eachEntry()) entries.push(entry)
        for (const { id } of accounts) {
          let [balance, upTo] = ['0', 0]
          for (const month of months) {
            const told = await readStatement(store, id, month)
            const nanos = (text: string) => parseCredits(text)
            assert.equal(told.opening, balance)
            assert.equal(
              nanos(told.closing),
              nanos(told.opening) + nanos(told.credits) - nanos(told.use) + nanos(told.returns),
            )
            balance = told.closing
            const own = entries.filter(
              (one) => one.accountId === id && new Date(one.postedMs).toISOString().startsWith(month),
            )
            assert.deepEqual([told.from, told.to], own.length === 0 ? [null, null] : [upTo + 1, upTo + own.length])
            upTo += own.length
            assert.equal(
              told.digest,
              entries.filter((one) => one.accountId === id && one.seq <= upTo).at(-1)?.digest ?? null,
            )
            const used = own.flatMap(({ bill, amountNanos }) => (bill ? [amountNanos] : []))
            assert.equal(
              nanos(told.use),
              used.reduce((a, b) => a + b, 0n),
            )
            assert.equal(
              told.use_lines.reduce((sum, { amount }) => sum + nanos(amount), 0n),
              nanos(told.use),
            )
            assert.equal(
              told.credit_lines.reduce((sum, { amount }) => sum + nanos(amount), 0n),
              nanos(told.credits),
            )
            for (const parts of [told.keys, told.people, told.labels])
              assert.equal(
                parts.reduce((sum, { amount }) => sum + nanos(amount), 0n),
                nanos(told.use) - nanos(told.returns),
              )
            assert.ok(told.keys.length <= 2, 'a rotated key and its successor are one')
            if (month !== '2026-10') continue
            const { findings } = await store.audit({ ...verifyOptions, against: parseHead(told.head) })
            assert.deepEqual(findings, [])
          }
          assert.equal(balance, (await readStatement(store, id, '2026-12')).opening)
        }
      }),
      { numRuns: runsUpTo(engine.name === 'SQLite' ? 15 : 2) },
    )
  })

  test('issue 46: a statement has each entry once, although one query sums only some of them', async () => {
    const store = await engine.open({ atMs: startMs })
    const { id } = await store.createAccount('acme', 10n ** 15n)
    const count = summedMax + 2
    await store.postDebits(Array.from({ length: count }, (_, n) => createDebitRow(`r${n}`, id)))
    await store.giveBack(['r0', `r${count - 1}`])
    await store.credit(id, 5n, 'last')
    await store.turn(lateMs)
    const told = await readStatement(store, id, '2026-08')
    assert.equal(parseCredits(told.use), costNanos * BigInt(count))
    assert.equal(parseCredits(told.returns), costNanos * 2n)
    assert.deepEqual(
      told.use_lines.map(({ requests }) => requests),
      [count],
    )
    assert.deepEqual(
      told.keys.map(({ requests }) => requests),
      [count - 2],
    )
    assert.deepEqual(
      told.credit_lines.map(({ amount }) => amount),
      ['1000000', '0.000000005'],
    )
  })

  test('issue 46 law 9: a statement of a closed month has the same bytes whatever comes later; an erased person is blank', async () => {
    const store = await engine.open({ atMs: startMs })
    const { id } = await store.createAccount('acme', 10n ** 13n)
    const ann = await store.createPerson({ name: 'Ann <b>' })
    const bob = await store.createPerson({ name: 'Bob' })
    const key = await store.createKey(id, { label: 'laptop' })
    const pay = (requestId: string, person: string | undefined) =>
      store.postDebits([
        {
          ...createDebitRow(requestId, id),
          keyId: key.id,
          details: { person, labels: 'project=apollo', band: 'peak' },
        },
      ])
    await pay('one', ann.id)
    await pay('two', bob.id)
    // Already September in the zone that comes later.
    await store.turn(Date.parse('2026-08-31T20:00:00Z'))
    await pay('three', ann.id)
    await store.turn(lateMs)
    const first = await bytesOf(store, id, '2026-08')
    assert.match(first[1]!, /by person,,,,,,,Bob,/)
    assert.match(first[2]!, /€ 0\.00189/)
    assert.match(first[2]!, /Acme &lt;GmbH&gt;\nMain Street 1/)
    assert.match(first[2]!, /Ann &lt;b&gt;/)
    const open = await readStatement(store, id, '2026-12')
    assert.equal(open.closed, false)
    await store.postDebits(Array.from({ length: 1_000 }, (_, n) => createDebitRow(`later ${n}`, id)))
    await store.credit(id, 5n, 'later')
    await store.updateAccount(id, { name: 'other' })
    await store.rotateKey(key.id, 0)
    await store.updateKey(key.id, { label: 'desk' })
    await store.updatePerson(ann.id, { name: 'Eve' })
    await store.linkPersons(ann.id, bob.id)
    await store.rezone('Asia/Kathmandu')
    const other = { symbol: '$', name: 'USD', seller: 'Other' }
    assert.deepEqual(await bytesOf(store, id, '2026-08', other), first)
    assert.notEqual((await readStatement(store, id, '2026-12')).closing, open.closing)
    await store.erasePerson(ann.id)
    const blank = await bytesOf(store, id, '2026-08')
    assert.ok(blank.every((text) => !/\b(?:Ann|Bob|Eve)\b/.test(text)))
    const { people, labels } = JSON.parse(blank[0]!) as ToldStatement
    const { labels: _, ...figures } = labels[0]!
    assert.deepEqual(people, [{ person: null, ...figures }])
  })

  test('issue 46 Y20 a person whom the provider named by nothing but a subject has a line of their own, by their id', async () => {
    const store = await engine.open({ atMs: startMs })
    const { id } = await store.createAccount('acme', 10n ** 13n)
    const { personId } = await store.identifyOperator({ issuer: 'https://idp.example', subject: 'u-1' })
    await store.postDebits([createDebitRow('one', id), { ...createDebitRow('two', id), details: { person: personId } }])
    const people = async () => (await readStatement(store, id, '2026-08')).people.map(({ person }) => person)
    assert.deepEqual(await people(), [null, personId])
    await store.turn(lateMs)
    assert.deepEqual(await people(), [null, personId])
    await store.erasePerson(personId)
    assert.deepEqual(await people(), [null])
  })

  test('issue 46 C15 entries that a correction moves into a closed month have their names in its statement', async () => {
    const store = await engine.open({ atMs: startMs })
    const { id } = await store.createAccount('acme', 10n ** 13n)
    const bob = await store.createPerson({ name: 'Bob' })
    const key = await store.createKey(id, { label: 'laptop' })
    await store.postDebits([createDebitRow('one', id)])
    await store.turn(startMs + 400 * dayMs)
    await store.confirmClock()
    const createdMs = startMs + 400 * dayMs
    await store.postDebits([{ ...createDebitRow('two', id), keyId: key.id, createdMs, details: { person: bob.id } }])
    await store.turn(lateMs)
    const told = async () => {
      const { people, keys } = await readStatement(store, id, '2026-08')
      return [people.map(({ person }) => person), keys.map((one) => one.key)]
    }
    assert.deepEqual(await told(), [[null], [null]])
    await store.correctAhead(startMs + dayMs)
    assert.deepEqual(await told(), [
      [null, 'Bob'],
      [null, `laptop (${key.prefix})`],
    ])
  })

  test('issue 46: use at different prices has a line for each price', async () => {
    const store = await engine.open({ atMs: startMs })
    const { id } = await store.createAccount('acme', 10n ** 13n)
    const row = createDebitRow('one', id)
    const rates = Object.entries(row.prices).map(([name, nanos]) => [name, 2n * (nanos as bigint)])
    const dearer = { priceVersion: 'v2', prices: Object.fromEntries(rates), amountNanos: 2n * costNanos }
    await store.postDebits([row, { ...row, requestId: 'two' }, { ...row, requestId: 'three', ...dearer }])
    await store.turn(lateMs)
    const { use_lines: lines } = await readStatement(store, id, '2026-08')
    assert.deepEqual(
      lines.map(({ requests, price, amount }) => [requests, price!.input, parseCredits(amount)]),
      [
        [2, '3', 2n * costNanos],
        [1, '6', 2n * costNanos],
      ],
    )
  })

  test('issue 46 law 8 X12: statements before and after a change of the zone have each entry once', async () => {
    for (const [before, after] of [
      ['UTC', 'Asia/Tokyo'],
      ['Asia/Tokyo', 'UTC'],
    ] as const)
      for (const first of ['2026-08', '2026-09']) {
        const store = await engine.open({ atMs: startMs })
        await store.rezone(before)
        const { id } = await store.createAccount('acme', 5n)
        for (const at of ['2026-08-31T14:30Z', '2026-08-31T16:00Z', '2026-09-01T01:00Z', '2026-10-02T00:00Z']) {
          await store.turn(Date.parse(at))
          await store.credit(id, 7n, at)
        }
        const closed = await bytesOf(store, id, first)
        await store.rezone(after)
        const [august, september] = [
          await readStatement(store, id, '2026-08'),
          await readStatement(store, id, '2026-09'),
        ]
        assert.deepEqual([september.opening, september.from], [august.closing, august.to! + 1], `${before} ${first}`)
        const references = [...august.credit_lines, ...september.credit_lines].map(({ reference }) => reference)
        assert.equal(references.length, 4)
        assert.deepEqual(await bytesOf(store, id, first), closed)
        assert.equal((await readStatement(store, id, '2026-10')).opening, september.closing)
      }
  })

  test('issue 46 X12: a statement to print dates credits in the zone of its month', async () => {
    const store = await engine.open({ atMs: startMs })
    await store.rezone('Europe/Berlin')
    // Already September in Berlin, and still August in UTC.
    await store.turn(Date.parse('2026-08-31T22:30:00Z'))
    const { id } = await store.createAccount('acme', 5n)
    await store.turn(lateMs)
    const [, , html] = await bytesOf(store, id, '2026-09')
    assert.match(html!, new RegExp(`<td>2026-09-01</td><td>create:${id}</td>`))
  })

  test('issue 46 law 9: a month is closed a minute after its end, because a batch of entries may still be posted until then', async () => {
    const store = await engine.open({ atMs: startMs })
    const { id } = await store.createAccount('acme', 10n ** 13n)
    const endMs = Date.parse('2026-09-01T00:00:00Z')
    for (const [laterMs, isClosed] of [
      [0, false],
      [59_999, false],
      [60_000, true],
    ] as const) {
      // The client's clock is months ahead, but only the store's clock counts.
      await store.turn(endMs + laterMs)
      const { closed, head } = await readStatement(store, id, '2026-08')
      assert.equal(closed, isClosed, `${laterMs} ms`)
      // Entries of the next month are not covered.
      assert.ok(parseHead(head).momentMs < endMs, head)
      assert.equal((await store.readHeader(id, '2026-08')) !== undefined, isClosed, `${laterMs} ms`)
    }
  })

  test('issue 46 law 9 C15: if a clock is set back into a month whose statement was made, later entries are of the next month', async () => {
    const store = await engine.open({ atMs: startMs })
    const { id } = await store.createAccount('acme', 10n ** 13n)
    const { id: quiet } = await store.createAccount('quiet', 5n)
    const endMs = Date.parse('2026-09-01T00:00:00Z')
    await store.turn(endMs + 60_000)
    const first = await bytesOf(store, id, '2026-08')
    await store.turn(endMs - 120_000)
    await store.credit(id, 5n, 'late')
    await store.postDebits([createDebitRow('late', quiet)])
    await store.turn(endMs + 120_000)
    assert.deepEqual(await bytesOf(store, id, '2026-08'), first)
    assert.equal((await readStatement(store, quiet, '2026-08')).closing, '0.000000005')
    assert.equal((await readStatement(store, id, '2026-09')).credits, '0.000000005')
    const { head } = JSON.parse(first[0]!) as ToldStatement
    assert.deepEqual((await store.audit({ ...verifyOptions, against: parseHead(head) })).findings, [])
  })

  test('issue 46 Y15: a clock in doubt closes a month only if an entry is dated after it, so that no account is dated ahead', async () => {
    const store = await engine.open({ atMs: startMs })
    const { id } = await store.createAccount('acme', 10n ** 13n)
    await store.turn(Date.parse('2026-09-03T00:00:00Z'))
    await store.credit(id, 5n, 'september')
    const server = store.as({ actor: 'operator:root', expectedMs: Number.NaN })
    await store.turn(Date.parse('2026-12-05T00:00:00Z'))
    for (const [month, isClosed] of [
      ['2026-08', true],
      ['2026-09', false],
      ['2026-10', false],
    ] as const)
      assert.equal((await readStatement({ ...store, ...server }, id, month)).closed, isClosed, month)
    await store.turn(Date.parse('2026-09-04T00:00:00Z'))
    await store.credit(id, 5n, 'still september')
    assert.equal((await readStatement(store, id, '2026-09')).credits, '0.00000001')
  })
})

test('issue 47 a statement to print separates thousands, and shows every price by which two rows of a model differ', async () => {
  const { gateway, books, ask } = await startApi()
  const { id } = await books.findAccount('tester')
  const prices = { inputNanos: 3n, outputNanos: 15n, cacheReadNanos: 1n, cacheWriteNanos: 4n, cacheWrite1hNanos: 6n }
  const usage = { ...createDebitRow('req_a', id).usage, inputTokens: 1_234_567 }
  const row = (reference: string, priceVersion: string, hourNanos: bigint) => ({
    ...createDebitRow(reference, id),
    ...{ usage, priceVersion, prices: { ...prices, cacheWrite1hNanos: hourNanos } },
  })
  gateway.store.postDebits([row('req_a', 'v1', 6n), row('req_b', 'v2', 8n)])
  const month = new Date(gateway.nowMs()).toISOString().slice(0, 7)
  const { text } = await ask('GET', `/accounts/tester/statements/${month}?form=html`)
  const use = [...text.matchAll(/<tr><td>[^<]*<\/td><td>[^<]*<\/td><td>[^<]*<\/td><td class="n">([^<]*)/g)].map(
    ([, one]) => one,
  )
  assert.equal(use.length, 2)
  assert.notEqual(use[0], use[1])
  assert.match(text, />1,234,567</)
})

test('issue 46 Y22 law 9: operators get statements in every form over HTTP and at the command line; a key owner sees no price', async () => {
  const { gateway, books, ask, keyA } = await startApi()
  const { id } = await books.findAccount('tester')
  const month = new Date(gateway.nowMs()).toISOString().slice(0, 7)
  const [key] = await books.listKeys('tester')
  gateway.store.postDebits([{ ...createDebitRow('req_own', id), keyId: key!.id }, createDebitRow('req_other', id)])
  const path = `/accounts/tester/statements/${month}`
  const json = await ask('GET', path)
  assert.equal((json.body as unknown as ToldStatement).use, '0.00126')
  const csv = await ask('GET', `${path}?form=csv`)
  assert.match(csv.headers.get('content-type')!, /^text\/csv/)
  const html = await ask('GET', `${path}?form=html`)
  assert.match(html.headers.get('content-security-policy')!, /^default-src 'none'.*style-src 'unsafe-inline'$/)
  assert.doesNotMatch(html.text, /<script|src=|href=/)
  assert.match(html.text, /<body><main>.*<\/main>\s*<\/body>/s)
  const asked = ['statement', 'tester', month, '--store', gateway.storePath]
  assert.equal(
    (await run([...asked, '--csv'])).stdout.replace(/head,,.*/, ''),
    csv.text.replace(/head,,.*/, '').replaceAll('\r\n', '\r\n'),
  )
  assert.match((await run([...asked, '--html'])).stdout, /^<!doctype html>/)
  assert.equal(
    (JSON.parse((await runWarm([...asked, '--json'])).stdout) as ToldStatement).closing,
    (json.body as unknown as ToldStatement).closing,
  )
  assert.match((await runWarm(asked)).stdout, /\nuse +0\.00126\n/)
  const own = await ask('GET', `/me/statement?month=${month}`, { token: keyA })
  const day = new Date(gateway.nowMs()).toISOString().slice(0, 10)
  assert.deepEqual(own.body, {
    ...{ month, time_zone: 'UTC', credits: '0.00063', requests: 1, tokens: 136 },
    days: [{ day, model: 'm-large', credits: '0.00063', requests: 1, tokens: 136 }],
  })
  assert.equal(problemOf(await ask('GET', path, { token: keyA })), 'forbidden')
  assert.deepEqual((await ask('GET', '/me/statement')).body['days'], [])
  assert.equal(problemOf(await ask('GET', '/accounts/nobody/statements/2026-01')), 'not_found')
  for (const bad of ['2026-13', '2999-01', '0026-10', '9999-12', 'october'])
    assert.equal(problemOf(await ask('GET', `/accounts/tester/statements/${bad}`)), 'invalid_request', bad)
  assert.equal(costNanos, 630_000n)
})
