import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { createKey } from '../../src/accounts/keys.ts'
import type { Redemption } from '../../src/accounts/sign-in/grant-rules.ts'
import type { IssuedTokens, SignedIn } from '../../src/accounts/sign-in/rows.ts'
import { createTokens } from '../../src/accounts/sign-in/tokens.ts'
import { allOperations } from '../../src/operations/openapi.ts'
import { runsUpTo } from '../support/runs.ts'
import { onEachStore, type TestStore } from './engines.ts'
import { createDebitRow, verifyOptions } from './fixtures.ts'

const startMs = 1_800_000_000_000
const [minute, day] = [60_000, 86_400_000]
const lives = { accessMs: 60 * minute, idleMs: 30 * day, absoluteMs: 90 * day, offlineMs: 480 * minute }
const dev: SignedIn = { issuer: 'https://idp.example', subject: 'u-1', account: 'one', role: 'member' }
const tokens = createTokens(Buffer.alloc(32, 7))

/** The tokens of an answer, as a server sends them. @param secret of the refresh token that was shown */
function tokensOf(issued: IssuedTokens, secret = issued.secret!) {
  return tokens.issue(secret, issued.generation, issued.accessExpiresMs)
}

function issuedBy(redemption: Redemption): IssuedTokens {
  assert.ok('session' in redemption, JSON.stringify(redemption))
  return redemption
}

onEachStore((engine) => {
  async function open() {
    const store = await engine.open({ atMs: startMs })
    const account = await store.createAccount('one', 10n ** 12n)
    let atMs = startMs
    const pass = (ms: number) => {
      atMs += ms
      return store.turn(atMs)
    }
    return { store, account, pass, books: store.as({ actor: 'sign_in', address: '192.0.2.7' }) }
  }

  async function signIn(store: TestStore, more: Partial<SignedIn> = {}) {
    const { id, code } = await store.beginGrant({ kind: 'device', agent: 'claude_code', address: '192.0.2.9' })
    await store.decideGrant(id, { ...dev, ...more })
    const issued = issuedBy(await store.pollGrant(code, lives))
    return { ...issued, secret: issued.secret!, ...tokensOf(issued) }
  }

  /** Refreshes without a provider. @returns the tokens, or why not */
  async function refresh(store: TestStore, token: string) {
    const { secret, ...shown } = tokens.readRefresh(token)!
    const answer = await store.refreshSession({ ...shown, isAsking: false }, lives)
    if (answer.kind === 'issued') return tokensOf(answer, secret)
    return 'why' in answer ? answer.why : answer.kind
  }

  const operations = async (store: TestStore) =>
    (await store.listAudit({ limit: 100 })).map(({ operation }) => operation).filter((one) => one.startsWith('session'))

  test('Y20 a device grant becomes one session: a key of the account, of the person, with its models and its end', async () => {
    const { store, books, account } = await open()
    const grant = await books.beginGrant({ kind: 'device', agent: 'claude_code', address: '192.0.2.9' })
    assert.match(grant.userCode!, /^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/)
    for (const typed of [grant.userCode!, grant.userCode!.toLowerCase(), ` ${grant.userCode!.replace('-', ' ')} `])
      assert.equal((await books.findGrant(typed))?.id, grant.id, typed)
    for (const typed of ['', 'AAAA-AAAA', grant.userCode!.slice(1), grant.code])
      assert.equal(await books.findGrant(typed), undefined, typed)
    const approved = { ...dev, email: 'Ada@Example.com', name: 'Ada', models: ['large', 'small-*'] }
    const { personId } = await books.decideGrant(grant.id, approved)
    const issued = issuedBy(await store.pollGrant(grant.code, lives))
    const [key, ...others] = await store.listKeys('one')
    assert.equal(others.length, 0)
    const { access } = tokensOf(issued)
    assert.equal(key?.digest, tokens.readAccess(access)?.digest)
    assert.deepEqual(
      [key?.session, key?.bounds.person, key?.bounds.models, key?.expiresMs, key?.personName, key?.label],
      [issued.session.id, personId, ['large', 'small-*'], startMs + 90 * day, 'Ada', 'claude_code'],
    )
    assert.equal((await books.findPerson('ada@example.com')).id, personId)
    const [session] = await store.pageSessions({ personId, limit: 5 })
    assert.deepEqual(
      [session?.id, session?.accountId, session?.accountName, session?.agent, session?.address, session?.role],
      [issued.session.id, account.id, 'one', 'claude_code', '192.0.2.9', 'member'],
    )
    assert.deepEqual(await operations(store), ['session.create', 'session.approve'])
    assert.deepEqual((await store.verifyAudit()).findings, [])
  })

  test('Y20 each state of a device code has its own answer; a decided or used code gets it before polling pace is checked', async () => {
    const { store, pass } = await open()
    const ask = async (code: string) => {
      const answer = await store.pollGrant(code, lives)
      return 'error' in answer ? answer.error : 'tokens'
    }
    const begin = () => store.beginGrant({ kind: 'device' })
    const pending = await begin()
    assert.deepEqual([await ask(pending.code), await ask(pending.code)], ['authorization_pending', 'slow_down'])
    await pass(3_999)
    assert.equal(await ask(pending.code), 'slow_down')
    await pass(1)
    assert.equal(await ask(pending.code), 'authorization_pending')
    await pass(-minute)
    const afterStep = [await ask(pending.code), await ask(pending.code)]
    assert.deepEqual(afterStep, ['authorization_pending', 'slow_down'], 'a clock that was set back slows nobody down')
    await store.decideGrant(pending.id, dev)
    assert.deepEqual([await ask(pending.code), await ask(pending.code)], ['tokens', 'expired_token'])
    const denied = await begin()
    assert.equal(await ask(denied.code), 'authorization_pending')
    await store.decideGrant(denied.id, 'denied')
    assert.deepEqual([await ask(denied.code), await ask(denied.code)], ['access_denied', 'expired_token'])
    for (const code of ['', 'x', pending.id, pending.userCode!]) assert.equal(await ask(code), 'expired_token')
    for (const state of ['pending', 'approved'] as const) {
      const late = await begin()
      if (state === 'approved') await store.decideGrant(late.id, dev)
      await pass(599_999)
      assert.ok(await store.findGrant(late.userCode!))
      await pass(1)
      assert.deepEqual([await ask(late.code), await store.findGrant(late.userCode!)], ['expired_token', undefined])
      await assert.rejects(store.decideGrant(late.id, dev), { code: 'no_grant' })
    }
    assert.equal((await store.listKeys('one')).length, 1)
  })

  test('Y20 a grant is decided once, for an existing account', async () => {
    const { store } = await open()
    await store.createAccount('two')
    const { id } = await store.beginGrant({ kind: 'device' })
    await assert.rejects(store.decideGrant('grt_1', dev), { code: 'no_grant' })
    await assert.rejects(store.decideGrant(id, { ...dev, account: 'three' }), { code: 'no_account' })
    await store.holdGrant(id, 'sealed')
    assert.deepEqual(
      [(await store.findGrant({ id }))?.sealed, await store.findGrant({ id: 'grt_1' })],
      ['sealed', undefined],
    )
    await store.decideGrant(id, dev)
    await assert.rejects(store.holdGrant(id, 'sealed'), { code: 'grant_decided' })
    for (const again of [dev, 'denied'] as const)
      await assert.rejects(store.decideGrant(id, again), { code: 'grant_decided' })
    const { id: person } = (await store.pagePersons({ limit: 1 }))[0]!
    await store.updatePerson(person, { account: 'one' })
    const other = await store.beginGrant({ kind: 'device' })
    const key = await store.createKey('one', { person })
    await assert.rejects(store.decideGrant(other.id, { ...dev, account: 'two' }), { code: 'person_elsewhere' })
    await store.revokeKey(key.id)
    await store.decideGrant(other.id, { ...dev, account: 'two' })
    assert.equal((await store.findPerson(person)).accountId, (await store.findAccount('two')).id)
  })

  test('Y20 a session that is over does not keep its person from an account that the rules now name', async () => {
    const { store, pass } = await open()
    await store.createAccount('two')
    const [here, there] = [{ requestsPerMinute: 5 }, { requestsPerMinute: 5, account: 'two' }]
    const { session } = await signIn(store, here)
    await pass(lives.absoluteMs - 1)
    await assert.rejects(signIn(store, there), { code: 'person_elsewhere' })
    await pass(1)
    await signIn(store, there)
    const { id } = await store.findAccount('two')
    assert.equal((await store.findPerson(session.personId)).accountId, id)
    const second = await store.createPerson({ name: 'Ada', account: 'two' })
    await store.linkPersons(second.id, session.personId)
    // A key that an operator can extend counts, although it has expired.
    const key = await store.createKey('two', { person: second.id, expiresMs: startMs + 2 * lives.absoluteMs })
    await pass(lives.absoluteMs)
    await assert.rejects(store.updatePerson(second.id, { account: 'one' }), { code: 'person_elsewhere' })
    await store.revokeKey(key.id)
    assert.equal((await store.updatePerson(second.id, { account: 'one' })).id, second.id)
  })

  test('Y20 the rule of a sign-in sets the person’s bounds, and a rule without bounds leaves them unchanged', async () => {
    const { store, account } = await open()
    const first = await signIn(store)
    const budget = { nanos: 5_000_000_000n, per: 'month' as const }
    const boundsOf = async () => {
      const { bounds, accountId, spend } = await store.findPerson(first.session.personId)
      return [bounds.budget, bounds.requestsPerMinute, accountId, spend?.spentNanos]
    }
    assert.deepEqual(await boundsOf(), [undefined, undefined, undefined, undefined])
    const debit = { ...createDebitRow('a', account.id), keyId: first.session.keyId, createdMs: startMs }
    await store.postDebits([{ ...debit, details: { person: first.session.personId } }])
    await signIn(store, { budget, requestsPerMinute: 30 })
    assert.deepEqual(await boundsOf(), [budget, 30, account.id, debit.amountNanos])
    await signIn(store)
    assert.deepEqual((await boundsOf()).slice(0, 3), [budget, 30, account.id])
    const fresh = await signIn(store, { subject: 'u-2', budget })
    const { bounds, spend } = await store.findPerson(fresh.session.personId)
    assert.deepEqual([bounds.budget, spend?.spentNanos], [budget, 0n])
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('Y20 a refresh gives the person the bounds of the current rules, and keeps what they have spent', async () => {
    const { store, account } = await open()
    const month = { nanos: 5_000_000_000n, per: 'month' as const }
    const first = await signIn(store, { budget: month, requestsPerMinute: 30, sealed: 'x' })
    const { personId } = first.session
    const debit = { ...createDebitRow('a', account.id), keyId: first.session.keyId, createdMs: startMs }
    await store.postDebits([{ ...debit, details: { person: personId } }])
    let token = first.refresh
    const settle = async (more: Partial<SignedIn>) => {
      const { secret, ...shown } = tokens.readRefresh(token)!
      const told = await store.settleRefresh(shown, { kind: 'yes', signedIn: { ...dev, ...more } }, lives)
      assert.ok(told.kind === 'issued')
      token = tokensOf(told, secret).refresh
      const { bounds, spend, accountId } = await store.findPerson(personId)
      assert.equal(accountId, account.id)
      return [bounds.budget, bounds.requestsPerMinute, spend?.spentNanos]
    }
    const lower = { ...month, nanos: 2_000_000_000n }
    const total = { nanos: 9_000_000_000n, per: undefined }
    const rows: [Partial<SignedIn>, readonly unknown[]][] = [
      [{ budget: lower, requestsPerMinute: 30 }, [lower, 30, debit.amountNanos]],
      [{ budget: lower, requestsPerMinute: 3 }, [lower, 3, debit.amountNanos]],
      [{}, [lower, 3, debit.amountNanos]],
      [{ budget: total }, [total, 3, debit.amountNanos]],
    ]
    for (const [more, bounds] of rows) assert.deepEqual(await settle(more), bounds)
    // An unbound person may have keys of two accounts. Their sessions go on, without the bounds.
    const free = await signIn(store, { subject: 'u-2', sealed: 'x' })
    await store.createAccount('two')
    await store.createKey('two', { person: free.session.personId })
    token = free.refresh
    const { secret: _, ...shown } = tokens.readRefresh(token)!
    const told = await store.settleRefresh(
      shown,
      { kind: 'yes', signedIn: { ...dev, subject: 'u-2', budget: month } },
      lives,
    )
    assert.equal(told.kind, 'issued')
    assert.equal((await store.findPerson(free.session.personId)).bounds.budget, undefined)
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('Y20 a person is the subject of an issuer, whatever the provider calls them; a linked identity is the first person', async () => {
    const { store } = await open()
    const personOf = async (more: Partial<SignedIn>) => (await signIn(store, more)).session.personId
    const ada = await personOf({ name: 'Ada', email: 'ada@example.com' })
    assert.equal(await personOf({ name: 'Countess', email: 'other@example.com' }), ada)
    assert.equal((await store.findPerson(ada)).name, 'Ada')
    const others = [{ issuer: 'https://other.example' }, { subject: 'u-2', email: 'ada@example.com' }]
    for (const other of others) assert.notEqual(await personOf(other), ada)
    const second = await personOf({ subject: 'u-3' })
    await store.linkPersons(ada, second)
    assert.equal(await personOf({ subject: 'u-3' }), ada)
    assert.equal((await store.pageSessions({ personId: ada, limit: 10 })).length, 4)
    const hostile = await personOf({ subject: 'u-4', name: 'sk-tri-aaaa\u202e', email: 'no address' })
    const { name, email } = await store.findPerson(hostile)
    assert.deepEqual([name, email], [undefined, undefined])
    await store.updatePerson(hostile, { externalId: 'x' })
  })

  test('Y20 an authorization code is redeemed once, by the program that has the verifier, at its own address', async () => {
    const { store } = await open()
    const verifier = 'v'.repeat(43)
    const challenge = createHash('sha256').update(verifier).digest('base64url')
    const redirectUri = 'http://127.0.0.1:5000/callback'
    const begin = async () => {
      const grant = await store.beginGrant({ kind: 'code', challenge, redirectUri, agent: 'triwire' })
      assert.equal(grant.userCode, undefined)
      const early = await store.redeemCode(grant.code, { verifier, redirectUri }, lives)
      assert.deepEqual(early, { error: 'invalid_grant' })
      await store.decideGrant(grant.id, dev)
      return grant.code
    }
    const right = { verifier, redirectUri }
    const code = await begin()
    assert.deepEqual(await store.pollGrant(code, lives), { error: 'expired_token' })
    issuedBy(await store.redeemCode(code, right, lives))
    const wrong = [{ verifier: 'w' }, { verifier: challenge }, { redirectUri: 'http://127.0.0.1:5001/callback' }]
    for (const more of wrong) {
      const next = await begin()
      assert.deepEqual(await store.redeemCode(next, { ...right, ...more }, lives), { error: 'invalid_grant' })
      assert.deepEqual(await store.redeemCode(next, right, lives), { error: 'invalid_grant' })
    }
    const device = await store.beginGrant({ kind: 'device' })
    await store.decideGrant(device.id, dev)
    assert.deepEqual(await store.redeemCode(device.code, right, lives), { error: 'invalid_grant' })
  })

  test('Y20 20 simultaneous refreshes get one successor, the same for 60 s; reuse after that ends the session, audited', async () => {
    const { store, pass } = await open()
    const first = await signIn(store)
    const connections = [store, await store.beside(), await store.beside()]
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => refresh(connections[n % 3]!, first.refresh)))
    const [second] = answers
    assert.ok(typeof second === 'object')
    assert.equal(new Set(answers.map((one) => JSON.stringify(one))).size, 1)
    assert.notEqual(second.refresh, first.refresh)
    await pass(59_999)
    assert.deepEqual(await refresh(connections[1]!, first.refresh), second)
    const used = async () =>
      store.exec(`UPDATE ${engine.name === 'SQLite' ? '' : 'triwire.'}keys SET last_used_ms = ${startMs + 10}`)
    await used()
    await pass(1)
    assert.deepEqual(await refresh(store, first.refresh), 'reuse')
    for (const token of [first.refresh, second.refresh]) assert.deepEqual(await refresh(store, token), 'reuse')
    const [session] = await store.pageSessions({ limit: 1 })
    assert.deepEqual([session?.endedWhy, (await store.listKeys('one'))[0]?.revokedMs], ['reuse', startMs + 60_000])
    assert.deepEqual((await operations(store))[0], 'session.reuse')
    assert.deepEqual(await store.pageSessions({ limit: 1, isLive: { nowMs: startMs, idleMs: day } }), [])
  })

  test('Y20 a machine that slept before it got its answer can continue, since the successor of its token is unused', async () => {
    const { store, pass } = await open()
    const first = await signIn(store)
    const second = await refresh(store, first.refresh)
    await pass(day)
    const third = await refresh(store, first.refresh)
    assert.ok(typeof second === 'object' && typeof third === 'object')
    assert.equal(tokens.readRefresh(third.refresh)!.generation, 2)
    assert.deepEqual(await refresh(store, second.refresh), third, 'within the grace of the third')
    assert.deepEqual(await refresh(store, first.refresh), 'reuse', 'two generations old')
  })

  test('Y20 a store restored from a backup accepts tokens that are newer than it', async () => {
    const { store } = await open()
    const first = await signIn(store)
    const ahead = tokens.issue(first.secret, 7, startMs)
    const next = await refresh(store, ahead.refresh)
    assert.equal(typeof next === 'object' && tokens.readRefresh(next.refresh)!.generation, 8)
  })

  test('Y20 a session ends when idle, at its absolute end, with its key or person, or on request, and reports why', async () => {
    const { store, pass } = await open()
    const other = await signIn(store, { subject: 'u-other' })
    const why = async (end: (session: { id: string; keyId: string; personId: string }) => Promise<unknown>) => {
      const { session, refresh: token } = await signIn(store)
      await end(session)
      const answer = await refresh(store, token)
      const key = (await store.listKeys('one')).find(({ id }) => id === session.keyId)
      assert.ok(key?.revokedMs !== undefined, `${answer}`)
      return answer
    }
    assert.equal(await why(({ id }) => store.endSession({ id }, 'ended')), 'ended')
    assert.equal(await why(({ keyId }) => store.endSession({ keyId }, 'signed_out')), 'signed_out')
    assert.equal(await why(({ keyId }) => store.revokeKey(keyId)), 'revoked')
    assert.equal(await why(({ personId }) => store.erasePerson(personId)), 'person_erased')
    const { session } = await signIn(store)
    await assert.rejects(store.rotateKey(session.keyId, 0), { code: 'key_of_session' })
    const ended = await store.endSession({ id: session.id }, 'ended')
    assert.deepEqual(await store.endSession({ id: session.id }, 'reuse'), ended)
    await assert.rejects(store.endSession({ id: 'ses_1' }, 'ended'), { code: 'no_session' })
    assert.equal(await store.endSession({ digest: 'unknown' }, 'signed_out'), undefined)
    await store.updateAccount('one', { state: 'suspended' })
    assert.equal(await refresh(store, other.refresh), 'suspended')
    await store.updateAccount('one', { state: 'active' })
    await pass(30 * day - 1)
    const next = await refresh(store, other.refresh)
    assert.ok(typeof next === 'object')
    await pass(30 * day)
    assert.equal(await refresh(store, next.refresh), 'idle')
    await pass(30 * day + 1)
    assert.equal(await refresh(store, next.refresh), 'expired')
    assert.equal(await refresh(store, tokens.issue('A'.repeat(22), 0, 0).refresh), 'unknown')
  })

  test('Y21 the browser sessions of an erased person are deleted, with what the provider has said of the person', async () => {
    const { store } = await open()
    const [first, other] = [await signIn(store), await signIn(store, { subject: 'u-other' })]
    for (const { session } of [first, other])
      await store.signInPerson({ ...session, role: 'member', sealed: `of ${session.personId}` })
    await store.erasePerson(first.session.personId)
    await store.forge(async ({ all }) => {
      const rows = await all('SELECT sealed FROM sessions')
      assert.deepEqual(
        rows.map(({ sealed }) => sealed),
        [`of ${other.session.personId}`],
      )
    })
  })

  test('issue 47 a person is signed out of all sessions, own keys and browsers; others and ordinary keys stay', async () => {
    const { store, account } = await open()
    const [ada, bo] = [await signIn(store), await signIn(store, { subject: 'u-2' })]
    const { personId } = ada.session
    const plain = await store.createKey('one', { person: personId })
    const browsers = [
      await store.signInPerson({ personId, role: 'admin' }),
      await store.signInPerson({ personId, role: 'lead', keyId: ada.session.keyId }),
      await store.signInPerson({ personId: bo.session.personId, role: 'member', keyId: bo.session.keyId }),
    ]
    const shown = async () =>
      Promise.all(
        browsers.map(async ({ session }) => (await store.findPrincipal(session.digest, 'cookie')) !== undefined),
      )
    assert.deepEqual(await shown(), [true, true, true])
    const { revision } = await store.readChanges(0n)
    await store.signOutPerson(personId)
    assert.deepEqual((await store.readChanges(revision)).accountIds, [account.id], 'servers read its keys again')
    assert.deepEqual(await shown(), [false, false, true])
    assert.deepEqual(
      [await refresh(store, ada.refresh), typeof (await refresh(store, bo.refresh))],
      ['ended', 'object'],
    )
    const revoked = (await store.listKeys('one')).filter((key) => key.revokedMs !== undefined).map(({ id }) => id)
    assert.deepEqual(revoked, [ada.session.keyId])
    assert.notEqual(plain.id, ada.session.keyId)
    // They may come back, as the same person.
    assert.equal((await signIn(store)).session.personId, personId)
  })

  test('issue 47 an approved but unfetched sign-in ends with its person: signed out, erased, or linked and signed out', async () => {
    const ways = {
      signedOut: (store: TestStore, id: string) => store.signOutPerson(id),
      erased: (store: TestStore, id: string) => store.erasePerson(id),
      linked: async (store: TestStore, id: string) => {
        const { personId: first } = await store.identifyOperator({ ...dev, subject: 'first' })
        await store.linkPersons(first, id)
        await store.signOutPerson(first)
      },
    }
    for (const [way, end] of Object.entries(ways)) {
      const { store } = await open()
      const verifier = 'v'.repeat(43)
      const challenge = createHash('sha256').update(verifier).digest('base64url')
      const redirectUri = 'http://127.0.0.1:5000/callback'
      const device = await store.beginGrant({ kind: 'device' })
      const code = await store.beginGrant({ kind: 'code', challenge, redirectUri })
      const other = await store.beginGrant({ kind: 'device' })
      await store.decideGrant(other.id, { ...dev, subject: 'u-2' })
      const { personId } = await store.decideGrant(device.id, { ...dev, sealed: 'sealed' })
      await store.decideGrant(code.id, dev)
      await end(store, personId!)
      assert.deepEqual(await store.pollGrant(device.code, lives), { error: 'expired_token' }, way)
      assert.deepEqual(await store.redeemCode(code.code, { verifier, redirectUri }, lives), { error: 'invalid_grant' })
      assert.equal((await store.findGrant({ id: device.id }))?.sealed, undefined, way)
      issuedBy(await store.pollGrant(other.code, lives))
    }
  })

  test('issue 47 browsers of a second identity are signed out with the person that it was linked to', async () => {
    const { store } = await open()
    const { personId: first } = await store.identifyOperator(dev)
    const { personId: second } = await store.identifyOperator({ ...dev, subject: 'u-2' })
    const { session } = await store.signInPerson({ personId: second, role: 'admin' })
    await store.linkPersons(first, second)
    const shown = async () => (await store.findPrincipal(session.digest, 'cookie')) !== undefined
    assert.equal(await shown(), true)
    await store.signOutPerson(first)
    assert.equal(await shown(), false)
  })

  test('issue 47 an operator who signs in is the person of their identity; a late provider answer is kept while a session lasts', async () => {
    const { store } = await open()
    const { session } = await signIn(store)
    assert.equal((await store.identifyOperator(dev)).personId, session.personId)
    const { personId } = await store.identifyOperator({ ...dev, subject: 'u-9', name: 'Zoe', email: 'zoe@corp.test' })
    const { name, email, accountId } = await store.findPerson(personId)
    assert.deepEqual([name, email, accountId], ['Zoe', 'zoe@corp.test', undefined])
    assert.equal((await store.identifyOperator({ ...dev, subject: 'u-9' })).personId, personId)
    const sealed = async () => (await store.pageSessions({ id: session.id, limit: 1 }))[0]?.sealed
    await store.keepAnswer(session.id, { ...dev, sealed: 'later' })
    assert.equal(await sealed(), 'later')
    await store.keepAnswer(session.id, dev)
    assert.equal(await sealed(), 'later')
    await store.endSession({ id: session.id }, 'ended')
    await store.keepAnswer(session.id, { ...dev, sealed: 'too late' })
    assert.equal(await sealed(), undefined)
  })

  test('Y20 the key of a session belongs to its person, whatever person is named: only the session can end it', async () => {
    const { store } = await open()
    const [ada, bo] = [await signIn(store), await signIn(store, { subject: 'u-2' })]
    for (const person of [bo.session.personId, null])
      await assert.rejects(store.updateKey(ada.session.keyId, { person }), { code: 'key_of_session' })
    const changed = await store.updateKey(ada.session.keyId, { person: ada.session.personId, label: 'laptop' })
    assert.deepEqual([changed.bounds.person, changed.label], [ada.session.personId, 'laptop'])
  })

  test('Y20 nothing of an erased person stays in their sessions', async () => {
    const { store } = await open()
    const { session } = await signIn(store, { sealed: 'sealed' })
    await store.erasePerson(session.personId)
    const [row] = await store.pageSessions({ id: session.id, limit: 1 })
    assert.deepEqual(
      [row?.agent, row?.address, row?.sealed, row?.personName],
      [undefined, undefined, undefined, undefined],
    )
    assert.notEqual((await signIn(store)).session.personId, session.personId)
  })

  test('Y20 at a refresh one server asks the provider, others wait, and silence counts as a yes for a time', async () => {
    const { store, pass } = await open()
    const first = await signIn(store, { sealed: 'sealed 1' })
    const shown = (token: string) => {
      const { secret: _, ...rest } = tokens.readRefresh(token)!
      return rest
    }
    const ask = (token: string) => store.refreshSession({ ...shown(token), isAsking: true }, lives)
    const asked = await ask(first.refresh)
    assert.ok(asked.kind === 'ask')
    assert.deepEqual([asked.issuer, asked.subject, asked.session.sealed], [dev.issuer, dev.subject, 'sealed 1'])
    assert.equal((await ask(first.refresh)).kind, 'wait')
    await pass(5_000)
    assert.equal((await ask(first.refresh)).kind, 'ask', 'the first server has died')
    const settle = (token: string, word: Parameters<TestStore['settleRefresh']>[1]) =>
      store.settleRefresh(shown(token), word, lives)
    const second = await settle(first.refresh, {
      kind: 'yes',
      signedIn: { ...dev, sealed: 'sealed 2', role: 'lead', models: ['m'] },
    })
    assert.ok(second.kind === 'issued')
    assert.deepEqual([second.session.sealed, second.session.role, second.generation], ['sealed 2', 'lead', 1])
    assert.deepEqual((await store.listKeys('one'))[0]?.bounds.models, ['m'])
    const again = await ask(first.refresh)
    assert.ok(again.kind === 'issued' && again.generation === 1, 'within the grace the provider is not asked')
    assert.deepEqual(await settle(first.refresh, { kind: 'no' }), again, 'a late answer changes nothing')
    const { refresh: token } = tokensOf(second, first.secret)
    await pass(lives.offlineMs - 1)
    const third = await settle(token, { kind: 'silent' })
    assert.ok(third.kind === 'issued')
    const { refresh: last } = tokensOf(third, first.secret)
    await pass(1)
    assert.equal((await ask(last)).kind, 'ask')
    assert.equal((await settle(last, { kind: 'silent' })).kind, 'silent')
    assert.equal((await ask(last)).kind, 'ask', 'and at once again')
    assert.equal((await settle(last, { kind: 'yes' })).kind, 'issued')
    const moved = await signIn(store, { sealed: 'x' })
    await store.createAccount('two')
    const answer = await settle(moved.refresh, { kind: 'yes', signedIn: { ...dev, account: 'two' } })
    assert.deepEqual(answer, { kind: 'ended', why: 'provider' })
    const left = await signIn(store)
    assert.deepEqual(await settle(left.refresh, { kind: 'no' }), { kind: 'ended', why: 'provider' })
  })

  test('Y20 a key that a person made ends a week after the provider’s last yes, and pauses until the next', async () => {
    const { store, pass } = await open()
    const first = await signIn(store, { sealed: 'sealed 1', models: ['large'] })
    const keyOf = async (id: string) => (await store.listKeys('one')).find((key) => key.id === id)!
    const settle = async (token: string, kind: 'yes' | 'no' | 'silent') => {
      const { secret, ...shown } = tokens.readRefresh(token)!
      const settled = await store.settleRefresh(shown, { kind }, lives)
      return settled.kind === 'issued' ? tokensOf(settled, secret).refresh : settled
    }
    const made = await store.createOwnKey(first.session.keyId, 'qwen-code on laptop')
    assert.ok(typeof made === 'object')
    const key = await keyOf(made.id)
    assert.deepEqual(
      [key.label, key.bounds.person, key.bounds.models, key.session, key.expiresMs],
      ['own: qwen-code on laptop', first.session.personId, ['large'], undefined, startMs + 7 * day],
    )
    const operators = await store.createKey('one', {
      person: first.session.personId,
      label: 'ci',
      expiresMs: startMs + day,
    })
    await pass(day / 2)
    const second = await settle(first.refresh, 'yes')
    assert.equal((await keyOf(made.id)).expiresMs, startMs + 7 * day, 'an end is moved once a day at most')
    await pass(8 * day)
    const third = await settle(second as string, 'yes')
    assert.equal((await keyOf(made.id)).expiresMs, startMs + 15.5 * day, 'a key that had paused goes on')
    assert.equal((await keyOf(operators.id)).expiresMs, startMs + day, 'the end that an operator gave stays')
    await settle(third as string, 'no')
    assert.equal((await keyOf(made.id)).expiresMs, startMs + 8.5 * day, 'the provider knows the person no more')
    const again = await signIn(store, { sealed: 'x' })
    await settle(again.refresh, 'yes')
    assert.equal((await keyOf(made.id)).expiresMs, startMs + 15.5 * day)
    const rotated = await store.rotateKey(made.id, day)
    await pass(2 * day)
    await settle((await signIn(store, { sealed: 'x' })).refresh, 'yes')
    assert.equal((await keyOf(made.id)).expiresMs, startMs + 9.5 * day, 'a key that was rotated ends with its grace')
    assert.equal((await keyOf(rotated.id)).expiresMs, startMs + 17.5 * day)
    await store.rotateKey(rotated.id, 30 * day)
    await pass(2 * day)
    await settle((await signIn(store, { sealed: 'x' })).refresh, 'yes')
    assert.equal((await keyOf(rotated.id)).expiresMs, startMs + 17.5 * day - 1, 'a grace does not lengthen a life')
    await store.erasePerson(first.session.personId)
    assert.equal((await keyOf(rotated.id)).revokedMs, startMs + 12.5 * day)
    assert.equal((await keyOf(operators.id)).revokedMs, undefined)
    await assert.rejects(store.createOwnKey(again.session.keyId, 'x'), { code: 'no_session' })
  })

  test('Y20 a key that a person made has the limits of the session, and its budget is counted from the start', async () => {
    const { store } = await open()
    const { session } = await signIn(store)
    await store.updateKey(session.keyId, { budget: { nanos: 5n, per: 'day' }, requestsPerMinute: 7 })
    const made = await store.createOwnKey(session.keyId, 'agent')
    assert.ok(typeof made === 'object')
    const key = (await store.listKeys('one')).find(({ id }) => id === made.id)
    assert.deepEqual(
      [key?.bounds.budget, key?.bounds.requestsPerMinute, key?.spend?.spentNanos],
      [{ nanos: 5n, per: 'day' }, 7, 0n],
    )
    assert.deepEqual((await store.audit(verifyOptions)).findings, [])
  })

  test('Y20 each name that the operation takes for a key of a person is a label with its mark', async () => {
    const { store } = await open()
    const { session } = await signIn(store, { sealed: 'x' })
    const { input } = allOperations.find(({ id }) => id === 'own.key.create')!
    const taken = [1, 94, 95, 96, 100, 101].filter((length) => input.safeParse({ name: 'x'.repeat(length) }).success)
    assert.deepEqual(taken, [1, 94, 95])
    for (const length of taken) assert.ok(await store.createOwnKey(session.keyId, 'x'.repeat(length)))
    await assert.rejects(store.createOwnKey(session.keyId, 'x'.repeat(96)), { code: 'label_invalid' })
  })

  test('Y20 no answer of the provider moves an end that an operator or a rotation gave to a key that a person made', async () => {
    const { store, pass } = await open()
    const make = async (name: string) => {
      const made = await store.createOwnKey((await signIn(store, { sealed: 'x' })).session.keyId, name)
      assert.ok(typeof made === 'object')
      return made.id
    }
    const ask = async (kind: 'yes' | 'no') => {
      const { secret: _, ...shown } = tokens.readRefresh((await signIn(store, { sealed: 'x' })).refresh)!
      await store.settleRefresh(shown, { kind }, lives)
    }
    const endOf = async (id: string) => (await store.listKeys('one')).find((key) => key.id === id)!.expiresMs
    const [ended, shortened, rotated, paused] = [await make('a'), await make('b'), await make('c'), await make('d')]
    await store.updateKey(ended, { expiresMs: startMs })
    await store.updateKey(shortened, { expiresMs: startMs + 3 * day })
    await store.rotateKey(rotated, 3 * day)
    const ends = async () => Promise.all([ended, shortened, rotated, paused].map(endOf))
    await pass(2 * day)
    await ask('yes')
    assert.deepEqual(await ends(), [startMs, startMs + 3 * day, startMs + 3 * day, startMs + 9 * day])
    await ask('no')
    assert.deepEqual(await ends(), [startMs, startMs + 2 * day, startMs + 2 * day, startMs + 2 * day])
    await pass(day)
    await ask('yes')
    assert.deepEqual(await ends(), [startMs, startMs + 2 * day, startMs + 2 * day, startMs + 10 * day])
    await store.updateKey(paused, { expiresMs: startMs + 30 * day })
    assert.equal(await endOf(paused), startMs + 30 * day)
  })

  test('R15 Y20 the successor of a key that a person made gets the sooner end that an operator set, and keeps it', async () => {
    const { store, pass } = await open()
    const { session, refresh: token } = await signIn(store, { sealed: 'x' })
    const make = async (name: string) => {
      const made = await store.createOwnKey(session.keyId, name)
      assert.ok(typeof made === 'object')
      return made.id
    }
    const [shortened, whole] = [await make('a'), await make('b')]
    await store.updateKey(shortened, { expiresMs: startMs + 2 * day })
    const second = (await store.rotateKey(shortened, day / 24)).id
    const third = (await store.rotateKey(second, day / 24)).id
    const other = (await store.rotateKey(whole, day / 24)).id
    const again = (await store.rotateKey(whole, day / 24)).id
    const ends = async () => {
      const keys = await store.listKeys('one')
      return [third, other, again].map((id) => keys.find((key) => key.id === id)!.expiresMs)
    }
    assert.deepEqual(await ends(), [startMs + 2 * day, startMs + 7 * day, startMs + 7 * day])
    await pass(1.5 * day)
    const { secret: _, ...shown } = tokens.readRefresh(token)!
    await store.settleRefresh(shown, { kind: 'yes' }, lives)
    assert.deepEqual(await ends(), [startMs + 2 * day, startMs + 8.5 * day, startMs + 8.5 * day])
  })

  test('Y20 a key is a person’s own only if its label begins with the mark in small letters, on either engine', async () => {
    const { store } = await open()
    const { session, refresh: token } = await signIn(store, { sealed: 'x' })
    const label = 'Own: nightly build'
    const [expiresMs, person] = [startMs + day, session.personId]
    const { id } = await store.createKey('one', { person, label, expiresMs })
    const seen = async () => {
      const key = (await store.listKeys('one')).find((one) => one.id === id)!
      return [key.expiresMs, key.revokedMs]
    }
    const { secret: _, ...shown } = tokens.readRefresh(token)!
    await store.settleRefresh(shown, { kind: 'no' }, lives)
    assert.deepEqual(await seen(), [startMs + day, undefined], 'the provider knows the person no more')
    await store.signOutPerson(person)
    assert.deepEqual(await seen(), [startMs + day, undefined], 'signed out')
    await store.erasePerson(person)
    assert.deepEqual(await seen(), [startMs + day, undefined], 'erased')
  })

  test('Y20 a session that ends because the provider cannot be asked leaves the keys of its person their week', async () => {
    const { store } = await open()
    const { session, refresh: token } = await signIn(store)
    const made = await store.createOwnKey(session.keyId, 'agent')
    assert.ok(typeof made === 'object')
    const { secret: _, ...shown } = tokens.readRefresh(token)!
    const told = await store.settleRefresh(shown, { kind: 'no', isUnasked: true }, lives)
    assert.deepEqual(told, { kind: 'ended', why: 'provider' })
    assert.equal((await store.listKeys('one')).find(({ id }) => id === made.id)?.expiresMs, startMs + 7 * day)
  })

  test('Y20 a late no of the provider pauses the keys of the person as a timely one does', async () => {
    const { store } = await open()
    const { session } = await signIn(store, { sealed: 'x' })
    const made = await store.createOwnKey(session.keyId, 'agent')
    assert.ok(typeof made === 'object')
    await store.endSession({ id: session.id }, 'provider')
    assert.equal((await store.listKeys('one')).find(({ id }) => id === made.id)?.expiresMs, startMs)
  })

  test('Y20 a late yes of the provider has the effects of a timely one: the rules of now, and a week for the keys of the person', async () => {
    const { store, pass } = await open()
    const { session } = await signIn(store, { sealed: 'x', models: ['large', 'small'] })
    const made = await store.createOwnKey(session.keyId, 'agent')
    assert.ok(typeof made === 'object')
    const keyOf = async (id: string) => (await store.listKeys('one')).find((key) => key.id === id)!
    await pass(3 * day)
    const budget = { nanos: 5n, per: 'day' } as const
    await store.keepAnswer(session.id, { ...dev, role: 'lead', models: ['small'], budget })
    const own = await keyOf(made.id)
    assert.deepEqual(
      [own.expiresMs, own.bounds.models, own.personBounds.budget],
      [startMs + 10 * day, ['small'], budget],
    )
    assert.deepEqual((await keyOf(session.keyId)).bounds.models, ['small'])
    const find = async () => (await store.pageSessions({ id: session.id, limit: 1 }))[0]
    assert.deepEqual([(await find())?.role, (await find())?.askedMs], ['lead', startMs + 3 * day])
    await store.createAccount('two')
    await store.keepAnswer(session.id, { ...dev, account: 'two' })
    assert.equal((await find())?.endedWhy, 'provider', 'the rules now give the person another account')
  })

  test('Y20 a person may make a limited number of keys, with a label shown in full, while the provider has answered', async () => {
    const { store, pass } = await open()
    const { session } = await signIn(store)
    for (const [name, code] of [
      ['a\u0007b', 'label_invalid'],
      [createKey().key, 'label_secret'],
    ] as const)
      await assert.rejects(store.createOwnKey(session.keyId, name), { code })
    for (let n = 0; n < 20; n++) assert.ok(typeof (await store.createOwnKey(session.keyId, `a ${n}`)) === 'object')
    assert.equal(await store.createOwnKey(session.keyId, 'b'), 'many')
    const other = await signIn(store, { subject: 'u-2' })
    assert.ok(typeof (await store.createOwnKey(other.session.keyId, 'c')) === 'object')
    await pass(7 * day)
    assert.equal(await store.createOwnKey(session.keyId, 'b'), 'unconfirmed')
    await store.endSession({ id: other.session.id }, 'signed_out')
    await assert.rejects(store.createOwnKey(other.session.keyId, 'd'), { code: 'no_session' })
  })

  test('Y20 law: whatever is refreshed when, the newest token works, and one reused after its grace ends the session for all', async () => {
    const { store, pass } = await open()
    const step = fc.record({ back: fc.nat(3), waitMs: fc.constantFrom(0, 1_000, 59_999, 60_000, 600_000) })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
        const { refresh: token, session } = await signIn(store)
        const chain = [token]
        let [agedMs, isOver] = [Number.POSITIVE_INFINITY, false]
        for (const { back, waitMs } of steps) {
          await pass(waitMs)
          agedMs += waitMs
          const at = Math.max(0, chain.length - 1 - back)
          const age = chain.length - 1 - at
          const answer = await refresh(store, chain[at]!)
          const isNewest = age === 0 || (age === 1 && agedMs >= 60_000)
          if (isOver) assert.equal(answer, 'reuse')
          else if (age === 1 && agedMs < 60_000) assert.deepEqual(answer, await refresh(store, chain[at]!))
          else if (isNewest) {
            // No key was used, so the last answer but one counts as lost.
            assert.ok(typeof answer === 'object', `${answer}`)
            chain.push(answer.refresh)
            agedMs = 0
          } else {
            assert.equal(answer, 'reuse')
            isOver = true
          }
        }
        const [row] = await store.pageSessions({ id: session.id, limit: 1 })
        assert.equal(row?.endedMs !== undefined, isOver)
      }),
      { numRuns: runsUpTo(engine.name === 'SQLite' ? 60 : 15) },
    )
  })

  test('Y20 no store contains a token, a code or a secret', async () => {
    const { store } = await open()
    const { code, userCode } = await store.beginGrant({ kind: 'device' })
    const { secret } = await signIn(store)
    const rows = JSON.stringify(
      [
        await store.listKeys(),
        await store.pageSessions({ limit: 9 }),
        await store.findGrant(userCode!),
        await store.listAudit({ limit: 99 }),
      ],
      (_, value) => (typeof value === 'bigint' ? `${value}` : value),
    )
    for (const text of [code, userCode!, secret]) assert.equal(rows.includes(text), false)
  })
})
