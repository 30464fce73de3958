import assert from 'node:assert/strict'
import test from 'node:test'
import { formatCredits } from '../../src/accounts/credit.ts'
import type { LiveDirectory } from '../../src/accounts/live-accounts.ts'
import { priceNanos } from '../../src/catalog/model.ts'
import { formatCursor } from '../../src/operations/cursor.ts'
import { allOperations } from '../../src/operations/openapi.ts'
import { createDebitRow } from '../store/fixtures.ts'
import { type Ask, problemOf, startApi } from './api.ts'

/** Names of all rows, page by page. @param between is done before each page but the first. */
async function readAll(ask: Ask, path: string, name: string, between: () => unknown = () => {}): Promise<string[]> {
  const names: string[] = []
  let next: string | null = null
  do {
    if (next !== null) await between()
    const cursor: string = next === null ? '' : `&cursor=${next}`
    const { body, status } = await ask('GET', `${path}${cursor}`)
    assert.equal(status, 200)
    names.push(...body.items!.map((item) => String(item[name])))
    next = body['next'] as unknown as string | null
  } while (next !== null)
  return names
}

test('issue 13: a list is read page by page, in each order, whatever is created meanwhile', async () => {
  const { ask, gateway } = await startApi()
  for (const letter of 'cde') {
    gateway.store.createAccount(letter)
    gateway.store.createAccount(letter.toUpperCase())
  }
  const all = gateway.store.listAccounts().map(({ name }) => name)
  let made = 0
  const insert = () => made < 9 && gateway.store.createAccount(`aa${made++}`)
  assert.deepEqual((await readAll(ask, '/accounts?limit=2&sort=-created', 'name', insert)).toSorted(), all.toSorted())
  made = 0
  const insertOther = () => made < 9 && gateway.store.createAccount(`bb${made++}`)
  const byName = await readAll(ask, '/accounts?limit=3&sort=name', 'name', insertOther)
  assert.deepEqual(byName, byName.toSorted())
  assert.equal(new Set(byName).size, byName.length)
  made = 0
  const insertLast = () => made < 3 && gateway.store.createAccount(`zz${made++}`)
  const created = await readAll(ask, '/accounts?limit=1', 'name', insertLast)
  assert.deepEqual(created.slice(0, all.length), all)
  assert.equal(created.length, new Set(created).size)
})

test('issue 13: accounts and keys are listed by their spending of thirty days, from figures, page by page', async () => {
  const { ask, gateway } = await startApi()
  const accounts: Record<string, string> = {}
  const keys: Record<string, string> = {}
  for (const [name, nanos] of Object.entries({ some: 2_000n, most: 9_000n, little: 1_000n, equal: 2_000n, none: 0n })) {
    accounts[name] = gateway.store.createAccount(name).id
    keys[name] = gateway.store.createKey(name, { label: `of ${name}` }).id
    const row = { ...createDebitRow(`req_${name}`, accounts[name]!), keyId: keys[name]!, createdMs: gateway.nowMs() }
    if (nanos > 0n) gateway.store.postDebits([{ ...row, amountNanos: nanos }])
  }
  const equals = ['some', 'equal'].toSorted((a, b) => (accounts[a]! < accounts[b]! ? -1 : 1))
  const byAccount = ['most', ...equals, 'little']
  assert.deepEqual(await readAll(ask, '/accounts?sort=-spent', 'name'), byAccount)
  assert.deepEqual(await readAll(ask, '/accounts?sort=-spent&limit=1', 'name'), byAccount)
  assert.deepEqual(await readAll(ask, '/accounts?sort=-spent&q=m&limit=1', 'name'), ['most', 'some'])
  assert.deepEqual(await readAll(ask, '/accounts?sort=-spent&state=suspended', 'name'), [])
  const labels = await readAll(ask, '/keys?sort=-spent&limit=3', 'label')
  assert.deepEqual(
    [labels[0], labels.slice(1, 3).toSorted(), labels[3]],
    ['of most', ['of equal', 'of some'], 'of little'],
  )
  assert.deepEqual(await readAll(ask, '/keys?sort=-spent&account=little', 'label'), ['of little'])
  const next = gateway.store.rotateKey(keys['little']!, 0)
  const row = { ...createDebitRow('req_next', accounts['little']!), keyId: next.id, createdMs: gateway.nowMs() }
  gateway.store.postDebits([{ ...row, amountNanos: 9_000n }])
  const unspent = gateway.store.rotateKey(keys['most']!, 0)
  const ranked = await readAll(ask, '/keys?sort=-spent&limit=1', 'id')
  assert.deepEqual(ranked.slice(0, 4), [
    ...[keys['little'], next.id].toSorted(),
    ...[keys['most'], unspent.id].toSorted(),
  ])
  assert.deepEqual(ranked.slice(4), [keys['some'], keys['equal']].toSorted())
  const { body } = await ask('GET', '/accounts?sort=-spent&limit=1')
  assert.equal(problemOf(await ask('GET', `/accounts?sort=-created&cursor=${body['next']}`)), 'cursor_invalid')
  const [digest] = JSON.parse(Buffer.from(String(body['next']), 'base64url').toString()) as [string]
  const forged = Buffer.from(JSON.stringify([digest, 'much', 'x'])).toString('base64url')
  assert.equal(problemOf(await ask('GET', `/accounts?sort=-spent&cursor=${forged}`)), 'cursor_invalid')
})

test('issue 13: accounts and keys are searched by name, label and prefix, and no character is special', async () => {
  const { ask, gateway } = await startApi()
  const { id } = gateway.store.createAccount('100% Sure_thing')
  const key = gateway.store.createKey('b', { label: 'Laptop of Ann' })
  const names = async (path: string) => (await ask('GET', path)).body.items!.map((item) => item['name'])
  assert.deepEqual(await names('/accounts?q=sure'), ['100% Sure_thing'])
  assert.deepEqual(await names(`/accounts?q=${encodeURIComponent('0% S')}`), ['100% Sure_thing'])
  assert.deepEqual(await names('/accounts?q=e_t'), ['100% Sure_thing'])
  assert.deepEqual(await names('/accounts?q=u_e'), [])
  assert.deepEqual(await names(`/accounts?q=${id.slice(0, 12)}`), ['100% Sure_thing'])
  assert.deepEqual(await names('/accounts?state=suspended'), [])
  const found = async (path: string) => (await ask('GET', path)).body.items!.map((item) => item['id'])
  assert.deepEqual(await found('/keys?q=laptop'), [key.id])
  assert.deepEqual(await found(`/keys?q=${key.prefix}`), [key.id])
  assert.deepEqual(await found('/keys?q=laptop&account=tester'), [])
})

test('U5 a key is also found by its full text, of which only the first characters are shown', async () => {
  const { ask, keyB, gateway } = await startApi()
  const { body, text } = await ask('GET', `/keys?q=${keyB}`)
  assert.deepEqual(
    body.items!.map(({ id }) => id),
    gateway.store.listKeys('b').map(({ id }) => id),
  )
  assert.ok(!text.includes(keyB))
})

test('Y22 costs of an entry are shown only to admins, in each form of the ledger', async () => {
  const { ask, gateway, b, viewer, keyB } = await startApi()
  const costPrices = { ...createDebitRow('', '').prices, outputNanos: 1n }
  const costNanos = priceNanos(costPrices, createDebitRow('', '').usage)
  const details = { person: 'person_1', costVersion: 'hidden-version', costNanos, costReported: '0.0777' }
  gateway.store.postDebits([{ ...createDebitRow('req_1', b.id), details, costPrices }])
  const csv = { headers: { accept: 'text/csv' } }
  for (const [path, options] of [['/ledger'], ['/ledger', csv], ['/ledger/req_1']] as const) {
    const [shown, hidden] = [await ask('GET', path, options), await ask('GET', path, { ...options, token: viewer })]
    for (const cost of ['hidden-version', formatCredits(costNanos), '0.0777']) {
      assert.ok(shown.text.includes(cost), `${path}: ${cost}`)
      assert.ok(!hidden.text.includes(cost), `${path}: ${cost}`)
    }
    assert.match(hidden.text, /person_1/)
    assert.equal((await ask('GET', path, { ...options, token: keyB })).status, 403)
  }
})

test('a request that only the ledger has names the chain of models that its client asked for', async () => {
  const { ask, gateway, b } = await startApi()
  const details = { alias: 'best', fellBackFrom: 'm-small', fellBackCause: 'capacity' } as const
  gateway.store.postDebits([{ ...createDebitRow('req_of_chain', b.id), details }])
  const { items } = (await ask('GET', '/requests?account=b')).body
  assert.deepEqual(
    items!.map(({ request_id, alias }) => [request_id, alias]),
    [['req_of_chain', 'best']],
  )
  const explained = (await ask('GET', '/requests/req_of_chain/explain')).body
  assert.equal(explained['alias'] as unknown, 'best')
})

test('Y22 the margin is the amount billed minus what providers charge; an entry without a cost has no margin', async () => {
  const { ask, gateway, b, viewer, keyB, books } = await startApi()
  const { token: finance } = await books.createOperator('fin', 'finance', gateway.nowMs() + 86_400_000)
  const row = createDebitRow('', b.id)
  const costPrices = { ...row.prices, outputNanos: 1n }
  const costNanos = priceNanos(costPrices, row.usage)
  const details = { costVersion: 'v', costNanos }
  const costed = (id: string) => ({ ...createDebitRow(id, b.id), model: 'dear', details, costPrices })
  gateway.store.postDebits([costed('req_1'), costed('req_2'), { ...createDebitRow('req_3', b.id), model: 'plain' }])
  const billed = 2n * gateway.store.findEntry('req_1')!.amountNanos
  const { body } = await ask('GET', '/ledger/margin?by=model&account=b', { token: finance })
  const { items } = body as unknown as { items: Record<string, unknown>[] }
  const told = items.map(({ model, cost, margin, without_cost: missing }) => [model, cost, margin, missing])
  assert.deepEqual(told, [
    // The top-up has no model, and costs nothing.
    [null, '0', '0', 0],
    ['dear', formatCredits(2n * costNanos), formatCredits(billed - 2n * costNanos), 0],
    ['plain', '0', null, 1],
  ])
  const { text } = await ask('GET', '/ledger/margin?by=model&account=b', { headers: { accept: 'text/csv' } })
  assert.match(text, /^model,requests,billed,cost,margin,without_cost\r\n/)
  for (const token of [viewer, keyB]) assert.equal((await ask('GET', '/ledger/margin', { token })).status, 403)
})

test('issue 13: the ledger is listed by account, key, model and time, page by page, even if many entries share a moment', async () => {
  const { ask, gateway, b } = await startApi()
  const { id: keyId } = gateway.store.createKey('b', { label: 'ci' })
  const tester = gateway.store.findAccount('tester').id
  const rows = Array.from({ length: 9 }, (_, at) => ({
    ...createDebitRow(`req_${at}`, at % 2 === 0 ? b.id : tester),
    ...(at % 2 === 0 && { keyId }),
  }))
  gateway.store.postDebits(rows)
  const posted = gateway.store.listEntries({ limit: 99 }).map(({ bill }) => bill?.requestId ?? 'null')
  assert.deepEqual(await readAll(ask, '/ledger?limit=2', 'request_id'), posted)
  assert.deepEqual(await readAll(ask, '/ledger?limit=2&key=ci', 'request_id'), [
    'req_8',
    'req_6',
    'req_4',
    'req_2',
    'req_0',
  ])
  assert.equal((await readAll(ask, `/ledger?account=${b.id}&limit=4`, 'request_id')).length, 6)
  assert.deepEqual(await readAll(ask, '/ledger?to=2020-01-01', 'request_id'), [])
  const wrong = [
    ['/ledger?account=none', '/account'],
    ['/ledger?key=none', '/key'],
    ['/ledger?model=none', '/model'],
    ['/ledger?from=2026-11-02&to=2026-11-01', '/from'],
    ['/ledger?from=yesterday', '/from'],
    ['/ledger?limit=201', '/limit'],
    ...['x', '010', '00', '0x10', '1e1', '%205', '%2B5', '5.0', '5.', ''].map((limit) => [
      `/ledger?limit=${limit}`,
      '/limit',
    ]),
    ['/usage?top=010', '/top'],
    ['/ledger?limit=1&limit=2', '/limit'],
    ['/ledger?nothing=1', '/nothing'],
  ] as [string, string][]
  for (const [path, pointer] of wrong) {
    const told = await ask('GET', path)
    assert.equal(problemOf(told), 'invalid_request', path)
    assert.equal((told.body['errors'] as unknown as { pointer: string }[])[0]!.pointer, pointer)
  }
})

test('issue 13: a cursor is valid only for its own list', async () => {
  const { ask, gateway } = await startApi()
  gateway.store.createAccount('c')
  const { body } = await ask('GET', '/accounts?limit=1')
  const next = body['next'] as unknown as string
  assert.equal((await ask('GET', `/accounts?limit=200&cursor=${next}`)).body.items!.length, 2)
  for (const path of [
    `/accounts?state=active&cursor=${next}`,
    `/accounts?sort=name&cursor=${next}`,
    `/keys?cursor=${next}`,
    '/accounts?cursor=nonsense',
    `/accounts?cursor=${Buffer.from('["x",{}]').toString('base64url')}`,
    '/accounts?cursor=',
  ])
    assert.equal(problemOf(await ask('GET', path)), 'cursor_invalid', path)
})

/** The identities that lists of these roles need; an admin may read all others. */
async function askersOf({ books, keyA }: Awaited<ReturnType<typeof startApi>>) {
  const { id: personId } = await books.createPerson({ name: 'A lead' })
  const { id: keyId } = await books.createKey('tester', { person: personId })
  const { token } = await books.signInPerson({ personId, role: 'lead', keyId })
  const askers: Record<string, { token: string; headers?: Record<string, string> }> = {
    own: { token: keyA },
    lead: { token: '', headers: { cookie: `triwire=${token}` } },
  }
  return askers
}

test('issue 13: a forged cursor with the right digest and odd values is invalid, in every list', async () => {
  const api = await startApi()
  const { ask } = api
  const askers = await askersOf(api)
  const odd = [['x'], [1, 2, 3, 4], ['a', 'b', 'c', 'd'], [1, 'a\0b'], ['1\0', 'b']]
  let lists = 0
  for (const { id, kind, input, path, role } of allOperations) {
    if (kind !== 'list' || !('cursor' in input.shape)) continue
    lists++
    const sorts: Record<string, string>[] = id === 'account.list' ? [{}, { sort: '-created' }, { sort: 'name' }] : [{}]
    for (const asked of sorts) {
      for (const place of odd) {
        const query = new URLSearchParams({ ...asked, cursor: formatCursor(id, asked, place) })
        const told = await ask('GET', `${path}?${query}`, askers[role])
        assert.deepEqual([told.status, problemOf(told)], [400, 'cursor_invalid'], `${id} ${JSON.stringify(place)}`)
      }
    }
  }
  assert.ok(lists >= 5, `${lists}`)
})

test('operate §6 the ledger is exported as CSV row by row, with formulas made harmless', async () => {
  const { ask, gateway } = await startApi()
  gateway.store.createAccount('=cmd()', 1n)
  gateway.store.postDebits(
    Array.from({ length: 1_200 }, (_, at) => createDebitRow(`req_${at}`, gateway.store.findAccount('b').id)),
  )
  const { text, headers, status } = await ask('GET', '/ledger', { headers: { accept: 'text/csv' } })
  assert.deepEqual([status, headers.get('content-type')], [200, 'text/csv; charset=utf-8'])
  assert.match(headers.get('content-disposition')!, /^attachment; filename="ledger\.csv"$/)
  const lines = text.trim().split('\r\n')
  assert.equal(lines.length, 1 + gateway.store.listEntries({ limit: 9_999 }).length)
  assert.match(text, /,'=cmd\(\),/)
  assert.equal(new Set(lines.map((line) => line.split(',')[7])).size, 1_200 + 2)
  const wrong = await ask('GET', '/ledger?account=none', { headers: { accept: 'text/csv' } })
  assert.equal(problemOf(wrong), 'invalid_request')
})

test('issue 13: sums as CSV have the same columns with and without rows, in the order of the answer', async () => {
  const { ask, gateway } = await startApi()
  gateway.store.postDebits([createDebitRow('req_1', gateway.store.findAccount('b').id)])
  for (const path of ['/ledger/totals', '/ledger/margin'])
    for (const by of [[], ['day'], ['key', 'account'], ['upstream', 'model', 'key', 'day']]) {
      const query = by.length > 0 ? `by=${by.join(',')}&` : ''
      const columnsOf = async (from: string) =>
        (await ask('GET', `${path}?${query}from=${from}`, { headers: { accept: 'text/csv' } })).text.split('\r\n')[0]
      const { items } = (await ask('GET', `${path}?${query}from=2026-01-01`)).body
      assert.equal(await columnsOf('2026-01-01'), Object.keys(items![0]!).join(','))
      assert.equal(await columnsOf('9000-01-01'), await columnsOf('2026-01-01'))
    }
})

test('issue 13: exports that are unread or aborted take none of the places of others', async () => {
  const { ask, gateway, viewer } = await startApi()
  const headers = { authorization: `Bearer ${viewer}`, accept: 'text/csv' }
  const target = `${gateway.adminUrl}/api/v1/ledger`
  for (let at = 0; at < 8; at++) assert.equal((await fetch(target, { method: 'HEAD', headers })).status, 200)
  for (let at = 0; at < 8; at++) await (await fetch(target, { headers })).body!.cancel()
  assert.equal((await ask('GET', '/ledger', { headers: { accept: 'text/csv' } })).status, 200)
})

test('issue 13: any list read in pages of one, two or seven is the whole list, each row once', async () => {
  const api = await startApi()
  const { ask, gateway } = api
  const askers = await askersOf(api)
  for (let at = 0; at < 5; at++) {
    await ask('POST', '/accounts', { body: { name: `walked-${at}`, credit: '1' } })
    await ask('POST', `/accounts/walked-${at}/keys`, { body: { label: 'same' } })
    await ask('POST', '/persons', { body: { name: 'same', account: 'tester' } })
    const { id, code } = await api.books.beginGrant({ kind: 'device' })
    const whose = { issuer: 'https://idp.example', subject: `u-${at}`, account: 'tester', role: 'member' } as const
    await api.books.decideGrant(id, whose)
    await api.books.pollGrant(code, { accessMs: 3_600_000, idleMs: 30 * 86_400_000, absoluteMs: 90 * 86_400_000 })
    const body = { model: 'native-chat', messages: [{ role: 'user', content: 'hi' }] }
    await (await gateway.post('/v1/chat/completions', body)).text()
  }
  // When a key was last used is written every ten seconds, and shall not be in the middle of a walk.
  ;(gateway.ledger.directory as LiveDirectory).takeUses()
  for (const { path, kind, input, id, role } of allOperations) {
    if (kind !== 'list' || !('cursor' in input.shape)) continue
    const told = async (query: string) => {
      gateway.advance(60_000)
      const { body, status, text } = await ask('GET', `${path}?${query}`, askers[role])
      assert.equal(status, 200, `${id}: ${text}`)
      return body as unknown as { items: unknown[]; next: string | null }
    }
    const whole = await told('limit=200')
    assert.equal(whole.next, null)
    // Keys of another gateway come by an import alone: see test/store/foreign-keys.test.ts.
    assert.ok(whole.items.length >= 5 || id === 'key.foreign', id)
    for (const limit of [1, 2, 7]) {
      const walked: unknown[] = []
      let next: string | null = ''
      while (next !== null) {
        const page: typeof whole = await told(`limit=${limit}${next === '' ? '' : `&cursor=${next}`}`)
        assert.ok(page.items.length <= limit)
        walked.push(...page.items)
        next = page.next
      }
      assert.deepEqual(walked, whole.items, `${id} by ${limit}`)
    }
  }
})
