import assert from 'node:assert/strict'
import test from 'node:test'
import { runTriwire, testFolder } from '../support/child.ts'

const start = ['serve', '--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0']

test('X4 the first start prints a key once, with a working call for each wire; the second one says how to make a key', async (t) => {
  const folder = testFolder('first-start')
  const first = runTriwire(t, start, folder)
  const lastCall = /curl -s (\S+)\/v1\/responses .*\n/
  await first.said(lastCall)
  const calls = [...first.stdout().matchAll(/curl -s (\S+) -H 'authorization: (\S+ \S+)' .* -d '(.*)'/g)]
  assert.equal(calls.length, 3)
  for (const [, url, authorization, body] of calls) {
    const headers = { authorization: authorization!, 'content-type': 'application/json' }
    const answer = await fetch(url!, { method: 'POST', headers, body: body! })
    assert.equal(answer.status, 200, await answer.text())
  }
  const [, admin] = await first.said(/readiness on (\S+)\)/)
  // N-F8: which file, store, models and accounts.
  await first.said(/\nconfiguration none, store \S+data\/triwire\.db \(new\), models 14, accounts 1\n/)
  assert.equal((await fetch(`${admin}/readyz`)).status, 200)
  assert.equal(await first.stop(), 0)

  const second = runTriwire(t, start, folder)
  await second.said(/triwire key create demo /)
  assert.match(second.stdout(), /store \S+data\/triwire\.db, models 14, accounts 1\n/)
  assert.doesNotMatch(second.stdout(), /sk-tri-/)
  assert.equal(await second.stop('SIGINT'), 0)
})

test('CON-16 a start prints the address of the console; a single-use sign-in link is only printed on request', async (t) => {
  const folder = testFolder('console-link')
  const first = runTriwire(t, start, folder)
  const [, url] = await first.said(/\nconsole (\S+\/console\/)\n/)
  assert.equal((await fetch(url!)).status, 200)
  assert.doesNotMatch(first.stdout() + first.stderr(), /tri-op-/)
  assert.equal(await first.stop(), 0)

  const second = runTriwire(t, [...start, '--link', '--json'], folder)
  await second.said(/}\n/)
  const { console_url: link } = JSON.parse(second.stdout()) as { console_url: string }
  const [page, token] = link.split('#t=')
  const signIn = () =>
    fetch(new URL('../api/v1/session', page), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token }),
    })
  const answer = await signIn()
  assert.equal(answer.status, 200, await answer.clone().text())
  assert.deepEqual(
    Object.entries((await answer.json()) as object).filter(([name]) => name !== 'name' && name !== 'expires'),
    [
      ['kind', 'operator'],
      ['role', 'admin'],
    ],
  )
  const cookie = answer.headers.get('set-cookie')!.split(';')[0]!
  assert.equal((await fetch(new URL('../api/v1/audit', page), { headers: { cookie } })).status, 200)
  assert.equal((await signIn()).status, 401)
  assert.equal(await second.stop(), 0)
})

test('F-P16 a second server on the same store refuses to start', async (t) => {
  const folder = testFolder('two-servers')
  const first = runTriwire(t, start, folder)
  await first.said(/listens on/)
  const second = runTriwire(t, start, folder)
  assert.equal(await second.stop('SIGCONT'), 1)
  assert.match(second.stderr(), /another triwire server/i)
  assert.equal(await first.stop(), 0)
})
