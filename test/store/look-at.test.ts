import assert from 'node:assert/strict'
import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import type { StorePlace } from '../../src/config/config.ts'
import { startMistake } from '../../src/store/open.ts'
import { testFolder } from '../support/folder.ts'
import { openStore } from '../support/operator.ts'
import { fileAt } from '../support/store-place.ts'

const mistakeAt = async (path: string, timeZone = 'UTC') =>
  (
    await startMistake({
      store: fileAt(path),
      stateDir: '',
      reporting: { timeZone, weekStarts: 'monday', keepMonths: 13 },
    })
  )?.message

for (const [to, words] of [
  ['', /triwire\.db is an unfinished copy: repeat triwire store copy/],
  ['postgres://db.example/main', /triwire\.db was moved to postgres:\/\/db\.example\/main/],
] as const)
  test(`X14 X12 a store whose content is not here is reported before a start: ${words.source}`, async () => {
    const path = join(testFolder('look'), 'triwire.db')
    openStore(path).close()
    const db = new DatabaseSync(path)
    db.prepare('INSERT INTO moved (to_store, moved_ms) VALUES (?, 1)').run(to)
    db.close()
    assert.match((await mistakeAt(path))!, words)
  })

test('F-P16 X12 files that a server could not open are reported before a start', async (t) => {
  if (process.geteuid?.() === 0) return t.skip('root may open all files')
  const path = join(testFolder('look'), 'triwire.db')
  openStore(path).close()
  chmodSync(path, 0o400)
  assert.match((await mistakeAt(path))!, /triwire\.db cannot be opened: check its folder, its owner/)
})

test('X13 a server folder for a database is reported if it cannot be created', async () => {
  const file = join(testFolder('look'), 'file')
  writeFileSync(file, '')
  const store = { engine: 'postgres', shown: 'postgres://db.example/main' } as StorePlace
  const reporting = { timeZone: 'UTC', weekStarts: 'monday', keepMonths: 13 } as const
  const mistake = (stateDir: string) => startMistake({ store, stateDir, reporting })
  for (const stateDir of [join(file, 'state'), file]) {
    const { path, message } = (await mistake(stateDir))!
    assert.equal(path, 'state_dir')
    assert.match(message, /^\S+(state cannot be created: \S+)?file is a file; choose another place with state_dir$/)
  }
  for (const stateDir of [dirname(file), join(dirname(file), 'state')]) assert.equal(await mistake(stateDir), undefined)
})

test('X12 anything that would keep a server from starting is reported without a server, and the store stays unchanged', async () => {
  const path = join(testFolder('look'), 'triwire.db')
  const mistake = (timeZone = 'UTC') => mistakeAt(path, timeZone)
  assert.equal(await mistake(), undefined, 'none yet')
  const store = openStore(path)
  store.createAccount('one')
  assert.equal(await mistake(), undefined, 'somebody has it open')
  store.adoptReporting({ timeZone: 'Europe/Berlin', weekStarts: 'monday', keepMonths: 13 }, Date.now())
  store.close()
  const before = [readFileSync(path), readdirSync(dirname(path))]
  assert.match((await mistake())!, /^the days of \S+ are those of Europe\/Berlin, and reporting\.time_zone says UTC/)
  assert.equal(await mistake('Europe/Berlin'), undefined)
  assert.deepEqual([readFileSync(path), readdirSync(dirname(path))], before)
  const db = new DatabaseSync(path)
  db.exec('PRAGMA user_version = 999')
  db.close()
  assert.match((await mistake())!, /has schema version 999 and this triwire knows \d+/)
})
