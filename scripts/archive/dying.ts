/*
 * Runs a command of `ledger archive` that kills its own process (kill -9) at the statement with this number. The kill
 * comes before the statement, or after it was sent (PostgreSQL) or done (SQLite). A command with fewer statements ends.
 *
 *     node bin/node.mjs scripts/archive/dying.ts detach|attach PLACE FILE NUMBER before|after
 */
import { DatabaseSync, StatementSync } from 'node:sqlite'
import pg from 'pg'
import { priceNanos } from '../../src/catalog/model.ts'
import { readKeptList } from '../../src/config/list-text.ts'
import { readStorePlace } from '../../src/config/store-place.ts'
import { attachMonth, detachMonth } from '../../src/store/archive/archive.ts'
import { openArchiveStore } from '../../src/store/archive/open-end.ts'
import { month } from './trial.ts'

const [word, place, file, number, moment] = process.argv.slice(2)
let left = Number(number)

const works = { detach: detachMonth, attach: attachMonth }
const store = await openArchiveStore(readStorePlace(place!, '.'))
// Statements that open the store are not counted, because they are the same for all commands.
dieIn(pg.Client.prototype, ['query'])
dieIn(StatementSync.prototype, ['run', 'get', 'all'])
dieIn(DatabaseSync.prototype, ['exec'])
const wishes = { month, file: file!, act: { actor: 'cli:trial@here' }, priceNanos, readList: readKeptList }
await works[word as keyof typeof works](store, wishes)
await store.close()

function dieIn(prototype: object, names: readonly string[]): void {
  const methods = prototype as Record<string, (...values: unknown[]) => unknown>
  for (const name of names) {
    const call = methods[name]!
    methods[name] = function (this: unknown, ...values) {
      const isLast = left-- === 0
      if (isLast && moment === 'before') process.kill(process.pid, 'SIGKILL')
      const result = call.apply(this, values)
      // By now the driver has passed the statement to the operating system.
      if (isLast) process.kill(process.pid, 'SIGKILL')
      return result
    }
  }
}
