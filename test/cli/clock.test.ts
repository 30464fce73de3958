import assert from 'node:assert/strict'
import test from 'node:test'
import { createDebitRow, createPath, open, until } from '../store/fixtures.ts'
import { openStore } from '../support/operator.ts'
import { run, runWarm } from './run.ts'

/* Without a server nothing holds the clock but the newest entry (ruling Y15). */

const dayMs = 86_400_000

test('Y15 the command line posts no credit while the clock is years past the newest entry; it names the cure, which works', async (t) => {
  const path = createPath(t)
  const old = openStore(path, { nowMs: () => Date.now() - 730 * dayMs })
  t.after(() => old.close())
  const { id } = old.createAccount('one', 5n)
  const credit = ['account', 'credit', 'one', '5', '--reference', 'invoice 1', '--store', path]
  for (const command of [credit, ['account', 'create', 'two', '--credit', '1', '--store', path]]) {
    const { code, stdout, stderr } = await runWarm(command)
    assert.deepEqual([code, stdout], [1, ''])
    assert.match(
      stderr,
      /^triwire: The clock that dates entries shows \d{4}-.*Z, which is in doubt: .* with triwire clock confirm\n$/,
    )
  }
  assert.equal((await runWarm(['account', 'create', 'three', '--store', path])).code, 0)
  assert.equal(old.listEntries({ limit: 9 }).length, 1)
  const confirmed = await run(['clock', 'confirm', '--store', path, '--json'])
  assert.ok(Math.abs(Date.parse(confirmed.json['time']!) - Date.now()) < dayMs)
  assert.match((await runWarm(['clock', 'confirm', '--store', path])).stdout, /^time +\d{4}-/)
  assert.equal((await runWarm(credit)).code, 0)
  assert.equal(old.findAccount(id).balanceNanos, 5_000_000_005n)
  const { json } = await runWarm(['audit', '--operation', 'clock.confirm', '--store', path, '--json'])
  assert.deepEqual([json[0]!['operation'], json[0]!['object']], ['clock.confirm', 'clock'])
})

test('Y15 a clock confirmed at the command line takes effect in a running server', async (t) => {
  const path = createPath(t)
  const old = openStore(path, { nowMs: () => Date.now() - 730 * dayMs })
  t.after(() => old.close())
  old.createAccount('one', 5n)
  const { ledger, clock } = await open(t, path, { isStuck: true, settleDeadlineMs: 20 })
  await until(() => clock.news?.problem === 'rest')
  assert.equal((await runWarm(['clock', 'confirm', '--store', path])).code, 0)
  await until(() => ledger.whyBlocked() === undefined)
})

test('Y15 verify reports entries with future dates at its first run, and fails', async (t) => {
  const path = createPath(t)
  const ahead = openStore(path, { nowMs: () => Date.now() + 2 * dayMs })
  t.after(() => ahead.close())
  const { id } = ahead.createAccount('one', 5n)
  ahead.postDebits([createDebitRow('req_1', id)])
  const { code, stdout } = await run(['ledger', 'verify', '--store', path])
  assert.equal(code, 1)
  assert.match(
    stdout,
    new RegExp(`^account ${id}: its last entry is posted at .*, and that is to come: a clock was ahead\\n$`),
  )
})
