import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import { startMistake } from '../../src/store/look-at.ts'
import { testFolder } from '../support/folder.ts'
import { openStore } from '../support/operator.ts'
import { fileAt } from '../support/store-place.ts'

test('X12 what a server would not start on is told without a server, and the store stays as it is', async () => {
  const path = join(testFolder('look'), 'triwire.db')
  const mistake = (timeZone = 'UTC') => startMistake(fileAt(path), timeZone)
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
