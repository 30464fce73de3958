import assert from 'node:assert/strict'
import { test } from 'node:test'
import { digestKey } from '../../src/accounts/keys.ts'
import { onEachStore } from './engines.ts'
import { createDebitRow } from './fixtures.ts'

const act = { actor: 'operator:ann', address: '192.0.2.7' }

onEachStore((engine) => {
  test('issue 13: operators, sessions and their chained audit records are written in the commit of the change', async () => {
    const store = await engine.open()
    const books = store.as(act)
    const far = Date.now() + 1e9
    const { operator, token } = await books.createOperator('bob', 'viewer', far)
    assert.deepEqual(await books.findPrincipal(digestKey(token), 'bearer'), {
      ...{ kind: 'operator', actor: 'operator:bob', name: 'bob', role: 'viewer' },
      ...{ expiresMs: far, operatorId: operator.id },
    })
    const whose = (await books.findPrincipal(digestKey(token), 'bearer'))!
    const session = await books.signIn(whose)
    assert.equal((await books.findPrincipal(session.session.digest, 'cookie'))!.kind, 'operator')
    assert.equal(await books.findPrincipal(session.session.digest, 'bearer'), undefined)
    const command = await store.as({ actor: 'cli:me@here' }).makeCommandToken()
    const asked = await books.findPrincipal(digestKey(command.token), 'bearer')
    assert.ok(asked?.kind === 'operator' && asked.actor === 'cli:me@here' && asked.role === 'admin')
    await assert.rejects(books.createOperator('bob', 'admin', far), { code: 'operator_name_taken' })
    await books.revokeOperator('bob')
    assert.equal(await books.findPrincipal(digestKey(token), 'bearer'), undefined)
    assert.equal(await books.findPrincipal(session.session.digest, 'cookie'), undefined)
    await books.createOperator('bob', 'admin', far)
    await books.createAccount('one', 5n)
    const rows = await books.listAudit({ limit: 10 })
    assert.deepEqual(
      rows.map(({ seq, actor, address, operation }) => [seq, actor, address, operation]),
      [
        [4, act.actor, act.address, 'account.create'],
        [3, act.actor, act.address, 'operator.create'],
        [2, act.actor, act.address, 'operator.revoke'],
        [1, act.actor, act.address, 'operator.create'],
      ],
    )
    assert.deepEqual(
      (await books.listAudit({ limit: 1, beyond: 3 })).map(({ seq }) => seq),
      [2],
    )
    assert.deepEqual(await books.listAudit({ limit: 9, operation: 'account.create', actor: 'nobody' }), [])
    const { findings, head } = await books.verifyAudit()
    assert.deepEqual([findings, head?.startsWith('4/a1:')], [[], true])
    await assert.rejects(store.exec(engine.name === 'SQLite' ? 'DELETE FROM audit' : 'DELETE FROM triwire.audit'))
  })

  test('issue 13: a name that a new operator took over from an expired one means the new one', async () => {
    const startMs = Date.parse('2026-11-27T12:00:00Z')
    const store = await engine.open({ atMs: startMs })
    const books = store.as(act)
    await books.createOperator('bob', 'admin', startMs + 1)
    await store.turn(startMs + 1)
    const { operator, token } = await books.createOperator('bob', 'viewer', startMs + 1e9)
    assert.equal((await books.revokeOperator('bob')).id, operator.id)
    assert.equal(await books.findPrincipal(digestKey(token), 'bearer'), undefined)
    assert.equal((await books.revokeOperator('bob')).id, operator.id, 'a repeated call means the same operator')
  })

  test('CON-P7 a link signs in one browser, within ten minutes, and has no other use', async () => {
    const startMs = Date.parse('2026-11-27T12:00:00Z')
    const store = await engine.open({ atMs: startMs })
    const other = await store.beside()
    const books = store.as({ actor: 'link:me@here' })
    const { token, session } = await books.makeLinkToken()
    assert.equal(session.expiresMs, startMs + 600_000)
    const digest = digestKey(token)
    for (const kind of ['bearer', 'cookie'] as const) assert.equal(await store.findPrincipal(digest, kind), undefined)
    const opened = (await Promise.all([store, other, store].map((one) => one.openLink(digest)))).flatMap(
      (one) => one ?? [],
    )
    assert.equal(opened.length, 1)
    const cookie = digestKey(opened[0]!.token)
    assert.deepEqual(await store.findPrincipal(cookie, 'cookie'), {
      ...{ kind: 'operator', actor: 'link:me@here', name: 'link:me@here', role: 'admin', operatorId: undefined },
      expiresMs: startMs + 86_400_000,
    })
    assert.equal(await store.findPrincipal(cookie, 'bearer'), undefined)
    assert.equal(await store.openLink(digest), undefined)
    // Neither a session nor a token of the command line is a link.
    const command = await books.makeCommandToken()
    for (const one of [cookie, digestKey(command.token)]) assert.equal(await store.openLink(one), undefined)
    const late = await books.makeLinkToken()
    await store.turn(startMs + 600_000)
    assert.equal(await store.openLink(digestKey(late.token)), undefined)
  })

  test('issue 13: a repeated creation happens once, even for two simultaneous requests, and shows no secret again', async () => {
    const store = await engine.open()
    const other = await store.beside()
    const once = { key: 'k', asked: 'x' }
    const made = await Promise.all([store, other].map((one) => one.as({ ...act, once }).createAccount('one', 7n)))
    const [one, again] = made.map(({ id, name, balanceNanos, createdMs }) => [id, name, balanceNanos, createdMs])
    assert.deepEqual(one, again)
    const key = { key: 'k2', asked: 'x' }
    const issued = await Promise.all([store, other].map((one) => one.as({ ...act, once: key }).createKey('one')))
    assert.equal(issued.filter((one) => one.key !== undefined).length, 1)
    assert.equal(issued[0]!.id, issued[1]!.id)
    await assert.rejects(store.as({ ...act, once: { key: 'k2', asked: 'y' } }).createKey('one'), {
      code: 'once_mismatch',
    })
    assert.equal((await store.findAccount('one')).balanceNanos, 7n)
    assert.deepEqual((await store.listKeys()).length, 1)
  })

  test('issue 13: accounts, keys and entries come in ordered pages, each continuing after a given place', async () => {
    const store = await engine.open({ atMs: 1_700_000_000_000 })
    for (const name of ['b', 'a_1', 'C%', 'd']) await store.createAccount(name, 1n)
    const names = async (page: Partial<Parameters<typeof store.pageAccounts>[0]>) =>
      (await store.pageAccounts({ sort: 'name', limit: 9, ...page })).map(({ name }) => name)
    assert.deepEqual(await names({}), ['C%', 'a_1', 'b', 'd'])
    assert.deepEqual(await names({ q: '%' }), ['C%'])
    assert.deepEqual(await names({ q: 'A_' }), ['a_1'])
    assert.deepEqual(await names({ q: 'x\0' }), [])
    const [first, second] = await store.pageAccounts({ sort: 'created', limit: 2 })
    assert.deepEqual(await names({ ids: [second!.id, 'nobody'] }), [second!.name])
    assert.deepEqual(await names({ ids: [] }), [])
    const rest = await store.pageAccounts({ sort: 'created', limit: 9, beyond: [second!.createdMs, second!.id] })
    assert.equal(rest.length, 2)
    const back = await store.pageAccounts({ sort: '-created', limit: 9, beyond: [second!.createdMs, second!.id] })
    assert.deepEqual(
      back.map(({ id }) => id),
      [first!.id],
    )
    const keys = [await store.createKey('b', { label: 'Ci of b' }), await store.createKey('d')]
    assert.equal((await store.pageKeys({ ids: [keys[1]!.id], limit: 9 }))[0]!.id, keys[1]!.id)
    assert.deepEqual(
      (await store.pageKeys({ q: 'ci', limit: 9 })).map(({ id }) => id),
      [keys[0]!.id],
    )
    const turned = keys[1]!.id
      .slice(0, -1)
      .replace(/[a-z]/gi, (one) => (/[a-z]/.test(one) ? one.toUpperCase() : one.toLowerCase()))
    for (const q of [keys[1]!.id.slice(0, -1), turned])
      assert.deepEqual(
        (await store.pageKeys({ q, limit: 9 })).map(({ id }) => id),
        [keys[1]!.id],
      )
    assert.equal((await store.pageKeys({ accountId: second!.id, limit: 9 })).length, /[bd]/.test(second!.name) ? 1 : 0)
    const ids = [first!.id, second!.id]
    await store.postDebits(Array.from({ length: 7 }, (_, at) => createDebitRow(`req_${at}`, ids[at % 2]!)))
    for (const filter of [{}, { accountId: ids[0] }])
      for (const order of ['newest', 'oldest'] as const) {
        const all = await store.listEntries({ ...filter, first: order, limit: 99 })
        const read: typeof all = []
        for (;;) {
          const end = read.at(-1)
          const beyond = end && { postedMs: end.postedMs, accountId: end.accountId, seq: end.seq }
          const rows = await store.listEntries({ ...filter, first: order, limit: 2, beyond })
          if (rows.length === 0) break
          read.push(...rows)
        }
        assert.deepEqual(read, all)
      }
  })
})
