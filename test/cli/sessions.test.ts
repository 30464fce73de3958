import assert from 'node:assert/strict'
import test from 'node:test'
import { createBooks } from '../../src/accounts/books.ts'
import { openStore } from '../../src/store/sqlite/store.ts'
import { createPath } from '../store/fixtures.ts'
import { atEnd } from '../support/at-end.ts'
import { lives } from '../support/sessions.ts'
import { runWarm } from './run.ts'

test('Y20 session list shows where people are signed in, session end ends a session, and key list omits them', async () => {
  const path = createPath()
  const store = ['--store', path]
  const ask = (...args: string[]) => runWarm([...args, ...store])
  const json = async (...args: string[]) => (await runWarm([...args, ...store, '--json'])).json
  await ask('account', 'create', 'acme')
  const { id: keyId } = await json('key', 'create', 'acme')
  assert.equal((await ask('session', 'list')).stdout.includes('ses_'), false)
  const opened = openStore(path)
  atEnd(() => opened.close())
  const books = createBooks(opened, Date.now)
  const signIn = async (name: string) => {
    const { id, code } = await books.beginGrant({ kind: 'device', agent: 'claude_code', address: '192.0.2.9' })
    await books.decideGrant(id, { issuer: 'https://idp.example', subject: name, name, account: 'acme', role: 'member' })
    const redeemed = await books.pollGrant(code, lives)
    assert.ok('session' in redeemed)
    return redeemed.session
  }
  const [ada, bo] = [await signIn('Ada'), await signIn('Bo')]
  assert.match((await ask('session', 'list')).stdout, /Bo +acme +member +claude_code +192\.0\.2\.9[\s\S]*Ada/)
  const listed = await json('session', 'list', '--person', 'Ada')
  assert.deepEqual(
    listed.map(({ id, account_name: account, key, ended }) => [id, account, key, ended]),
    [[ada.id, 'acme', ada.keyId, null]],
  )
  const idsOf = async (...args: string[]) => (await json('key', 'list', ...args)).map(({ id }) => id).sort()
  for (const args of [[], ['acme'], ['--search', 'key_'], ['--state', 'active'], ['acme', '--state', 'active']])
    assert.deepEqual(await idsOf(...args), [keyId], args.join())
  assert.deepEqual(await idsOf('--sessions'), [keyId, ada.keyId, bo.keyId].sort())
  assert.deepEqual(await idsOf('--sessions', '--person', 'Bo'), [bo.keyId])
  assert.equal((await json('key', 'show', bo.keyId))['session'], bo.id)
  const refused = await ask('key', 'rotate', bo.keyId)
  assert.match(
    refused.stderr,
    /is that of a session, which belongs to its person and renews its tokens by itself: to end the session/,
  )
  for (let n = 0; n < 2; n++) assert.equal((await ask('session', 'end', ada.id)).stdout, `${ada.id} has ended\n`)
  assert.match((await ask('session', 'end', 'ses_1')).stderr, /There is no session "ses_1": see triwire session list/)
  assert.deepEqual(
    (await json('session', 'list')).map(({ id }) => id),
    [bo.id],
  )
  const all = await json('session', 'list', '--ended', '--account', 'acme')
  assert.deepEqual(
    all.map(({ id, why }) => [id, why]),
    [
      [bo.id, null],
      [ada.id, 'ended'],
    ],
  )
  assert.ok((await json('key', 'show', ada.keyId))['revoked'])
  const acts = (await json('audit')).filter(({ operation }) => `${operation}`.startsWith('session.end'))
  assert.equal(acts.length, 1)
})
