import assert from 'node:assert/strict'
import test from 'node:test'
import { sessionsMax } from '../../src/accounts/operators.ts'
import { problemOf, startApi } from './api.ts'

type Api = Awaited<ReturnType<typeof startApi>>
type Told = { body: { kind: string; name: string; role: string | null; account: { name: string } | null } }

const hourMs = 3_600_000

async function start() {
  const api = await startApi()
  const { id: personId } = await api.books.createPerson({ name: 'Ada' })
  return { ...api, personId, me, meOf }

  async function me(headers: Record<string, string>): Promise<Told['body'] | string> {
    const told = await api.ask('GET', '/me', { token: '', headers })
    return told.status === 200 ? (told as unknown as Told).body : problemOf(told)!
  }

  async function meOf(who: Parameters<Api['books']['signInPerson']>[0]) {
    return { cookie: `triwire=${(await api.books.signInPerson(who)).token}` }
  }
}

test('Y22 a person with an operator role has it in the console under their own name, and by id in the audit', async () => {
  const { personId, me, meOf, ask, books } = await start()
  const cookie = await meOf({ personId, role: 'admin' })
  const told = (await me(cookie)) as Told['body']
  assert.deepEqual([told.kind, told.name, told.role, told.account], ['operator', 'Ada', 'admin', null])
  await ask('POST', '/accounts', { token: '', headers: cookie, body: { name: 'made' } })
  const [row] = await books.listAudit({ limit: 1 })
  assert.deepEqual([row?.actor, row?.operation], [`person:${personId}`, 'account.create'])
})

test('Y22 a role above member counts only in the cookie; the key of the session is a member', async () => {
  const { personId, me, meOf, books } = await start()
  const { id: keyId, key } = await books.createKey('tester', { person: personId })
  const told = (await me(await meOf({ personId, role: 'lead', keyId }))) as Told['body']
  assert.deepEqual([told.kind, told.role, told.account?.name], ['owner', 'lead', 'tester'])
  assert.equal(((await me({ authorization: `Bearer ${key}` })) as Told['body']).role, null)
  // A role that the table does not know opens nothing.
  assert.equal(await me(await meOf({ personId, role: 'owner' as 'admin' })), 'unauthenticated')
  assert.equal(await me(await meOf({ personId, role: 'member' })), 'unauthenticated')
})

test('issue 47 a session of a person ends after 12 hours, with its key, with the person, and on sign-out', async () => {
  const { personId, me, meOf, books, gateway, ask } = await start()
  const { id: keyId } = await books.createKey('tester', { person: personId })
  const [operator, owner] = [await meOf({ personId, role: 'viewer' }), await meOf({ personId, role: 'member', keyId })]
  for (let hours = 0; hours < 11; hours++) {
    gateway.advance(hourMs)
    assert.notEqual(typeof (await me(operator)), 'string')
  }
  gateway.advance(hourMs)
  for (const cookie of [operator, owner]) assert.equal(await me(cookie), 'unauthenticated')
  gateway.advance(hourMs)
  const [again, theirs] = [await meOf({ personId, role: 'viewer' }), await meOf({ personId, role: 'member', keyId })]
  await books.revokeKey(keyId)
  assert.equal(await me(theirs), 'unauthenticated')
  assert.equal(((await me(again)) as Told['body']).role, 'viewer')
  const other = await meOf({ personId, role: 'admin' })
  await ask('DELETE', '/session', { token: '', headers: other })
  gateway.advance(hourMs)
  assert.equal(await me(other), 'unauthenticated')
  await books.erasePerson(personId)
  assert.equal(await me(again), 'unauthenticated')
})

test('issue 47 a person has a limited number of sessions; the oldest end first, those of others stay', async () => {
  const { personId, me, meOf, books, gateway } = await start()
  const other = await meOf({ personId: (await books.createPerson({ name: 'Bo' })).id, role: 'viewer' })
  const cookies: Record<string, string>[] = []
  for (let count = 0; count <= sessionsMax; count++) {
    cookies.push(await meOf({ personId, role: 'viewer' }))
    gateway.advance(1)
  }
  assert.equal(await me(cookies[0]!), 'unauthenticated')
  assert.equal(((await me(cookies[1]!)) as Told['body']).name, 'Ada')
  assert.equal(((await me(other)) as Told['body']).name, 'Bo')
})

test('issue 47 an operator signs a person out of sessions, own keys and browsers; others stay, and the person may return', async () => {
  const { me, meOf, books, ask } = await start()
  const lives = { accessMs: hourMs, idleMs: 2 * hourMs, absoluteMs: 24 * hourMs }
  const signIn = async (subject: string) => {
    const { id, code } = await books.beginGrant({ kind: 'device' })
    await books.decideGrant(id, {
      issuer: 'https://idp.example',
      subject,
      name: subject,
      account: 'tester',
      role: 'member',
    })
    const told = await books.pollGrant(code, lives)
    return 'session' in told ? told.session : assert.fail(told.error)
  }
  const [ada, bo] = [await signIn('ada'), await signIn('bo')]
  const { personId, keyId } = ada
  const cookies = [
    await meOf({ personId, role: 'viewer' }),
    await meOf({ personId, role: 'member', keyId }),
    await meOf({ personId: bo.personId, role: 'member', keyId: bo.keyId }),
  ]
  const roles = async () =>
    Promise.all(cookies.map(async (cookie) => me(cookie).then((told) => (typeof told === 'string' ? told : told.role))))
  assert.deepEqual(await roles(), ['viewer', 'member', 'member'])
  const told = await ask('POST', `/persons/${personId}/sign-out`)
  assert.deepEqual([told.status, (told.body as { name?: string }).name], [200, 'ada'])
  assert.deepEqual(await roles(), ['unauthenticated', 'unauthenticated', 'member'])
  const [first, second] = await books.pageSessions({ limit: 9 })
  assert.deepEqual(
    [first, second].map((one) => [one?.personId, one?.endedWhy, one?.sealed]).sort(),
    [
      [bo.personId, undefined, undefined],
      [personId, 'ended', undefined],
    ].sort(),
  )
  const [row] = await books.listAudit({ limit: 1 })
  assert.deepEqual([row?.operation, row?.object], ['person.sign_out', personId])
  assert.equal((await signIn('ada')).personId, personId)
})
