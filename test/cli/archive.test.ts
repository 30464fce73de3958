import assert from 'node:assert/strict'
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import test, { type TestContext } from 'node:test'
import { createDebitRow, createPath } from '../store/fixtures.ts'
import { openStore } from '../support/operator.ts'
import { run, runWarm } from './run.ts'

const day = 86_400_000
const januaryMs = Date.UTC(2025, 0, 10)

/** January and February of 2025, in UTC: two accounts, folded. The clock of the command is the system's. */
function createBooks(t: TestContext) {
  const path = createPath(t)
  let now = januaryMs
  const store = openStore(path, { nowMs: () => now })
  t.after(() => store.close())
  store.adoptReporting({ timeZone: 'UTC', weekStarts: 'monday', keepMonths: 13 }, now)
  const [a, b] = [store.createAccount('one', 9_000_000n).id, store.createAccount('two', 9_000_000n).id]
  for (let n = 0; n < 8; n++) {
    now = januaryMs + n * 7 * day
    for (const id of [a, b]) store.postDebits([createDebitRow(`req_${id === a ? 'a' : 'b'}${n}`, id)])
  }
  while (store.fold(1_000) > 0);
  return { path, store, a }
}

test('issue 48 ledger archive: export, detach, list, attach, with the output of each', async (t) => {
  const { path, store } = createBooks(t)
  const ask = async (...args: string[]) => {
    const { code, stdout, stderr } = await runWarm([...args, '--store', path, '--json'])
    assert.equal(code, 0, stderr)
    return { told: JSON.parse(stdout), stderr }
  }
  const file = `${path}.2025-01.archive`
  // Four weeks of both accounts, and their first credits; February has the rest.
  const counts = { month: '2025-01', accounts: 2, entries: 10 }
  assert.deepEqual((await ask('ledger', 'archive', 'detach', '2025-01', '--dry-run')).told, {
    ...counts,
    ...{ state: 'here', file, sha256: null },
  })
  const { told: exported } = await ask('ledger', 'archive', 'export', '2025-01')
  assert.deepEqual({ ...exported, sha256: '' }, { ...counts, state: 'here', file, sha256: '' })
  assert.deepEqual((await ask('ledger', 'archive', 'list')).told, [])
  const { told: detached } = await ask('ledger', 'archive', 'detach', '2025-01')
  assert.deepEqual({ ...detached, sha256: '' }, { ...counts, state: 'away', file, sha256: '' })
  assert.deepEqual((await ask('ledger', 'archive', 'list')).told, [detached])
  assert.equal((await ask('ledger', 'verify')).told.ok, true)

  const { told: rows, stderr } = await ask('ledger', 'list')
  assert.equal(rows.length, 8)
  assert.match(stderr, /entries of 2025-01 are away and not listed: bring them back with triwire ledger archive attach/)
  assert.equal((await ask('ledger', 'list', '--since', '2025-02-01')).stderr, '')
  for (const refused of [
    ['ledger', 'totals'],
    ['ledger', 'export'],
    ['ledger', 'show', 'req_a1'],
    ['statement', 'one', '2025-01'],
  ]) {
    const { code, stderr } = await runWarm([...refused, '--store', path, '--json'])
    assert.equal(code, 1, refused.join(' '))
    assert.match(stderr, /Entries of 2025-01 are away: they were archived.*triwire ledger archive attach MONTH/)
  }
  assert.equal((await ask('statement', 'one', '2025-02')).told.opening, '0.00648')
  assert.equal(store.postDebits([createDebitRow('req_a1', store.findAccount('one').id)])[0], 'exists')
  const { told: audit } = await ask('audit')
  assert.equal(audit[0].operation, 'ledger.detach')

  await ask('ledger', 'archive', 'attach', '2025-01')
  assert.equal((await ask('ledger', 'list')).told.length, 18)
  assert.equal((await ask('ledger', 'totals')).told[0].requests, 16)
  assert.equal((await ask('ledger', 'verify')).told.ok, true)
})

test('issue 48 ledger verify detects a forged archive file, and notes one that is elsewhere', async (t) => {
  const { path } = createBooks(t)
  const file = `${createPath(t)}.elsewhere`
  await runWarm(['ledger', 'archive', 'detach', '2025-01', '--file', file, '--store', path])
  writeFileSync(file, 'other')
  const forged = await runWarm(['ledger', 'verify', '--store', path])
  assert.equal(forged.code, 1)
  assert.match(forged.stdout, /archive of 2025-01: .*\.elsewhere is not as it was sealed/)
  rmSync(file)
  const elsewhere = await runWarm(['ledger', 'verify', '--store', path])
  assert.equal(elsewhere.code, 0, elsewhere.stdout)
  assert.match(elsewhere.stderr, /2025-01 is away, and its file .*\.elsewhere is not on this machine/)
  const attached = await runWarm(['ledger', 'archive', 'attach', '2025-01', '--file', `${file}.none`, '--store', path])
  assert.equal(attached.code, 1)
  assert.match(attached.stderr, /the archive of 2025-01, does not exist: name its path with --file/)
})

test('issue 48 ledger archive as text, with one error of each kind', async (t) => {
  const { path } = createBooks(t)
  const said = async (...args: string[]) => {
    const { code, stdout, stderr } = await run(['ledger', 'archive', ...args, '--store', path])
    return `${code} ${stdout}${stderr}`
  }
  assert.match(await said('detach', '2025-1'), /^2 error.*Write it like 2025|^2 .*Write it like 2026-01/s)
  assert.match(await said('detach', '2025-02'), /^1 .*Entries of 2025-01 are not archived yet.*detach that one first/s)
  assert.match(await said('detach', '2999-01'), /^1 .*no month that has been over for a week/s)
  assert.match(await said('list'), /^0 no month was detached/)
  assert.match(
    await said('detach', '2025-01'),
    /^0 2025-01: 10 entries of 2 accounts\n.*\.archive has the entries now.*SHA-256 \w{64}\n/s,
  )
  assert.match(await said('list'), /^0 month +state +accounts +entries +file\n2025-01 +away/)
  const file = `${path}.2025-01.archive`
  const kept = `${file}.kept`
  renameSync(file, kept)
  assert.match(
    await said('detach', '2025-01'),
    /^0 .*\n2025-01 was detached before, so its file was not read: .* export verifies the file\n/,
  )
  assert.match(
    await said('attach', '2025-01', '--file', kept),
    /^0 .*\n.*\.kept was read: its entries are in the store again/,
  )
  assert.match(await said('attach', '2025-01'), /^0 .*\n2025-01 was attached before: its entries are in the store\n/)
})
