/*
 * Measures PostgreSQL's CPU for each debit, by the number of debits in one call, on one connection: the table of
 * docs/scaling.md. The table's row of admissions is from admission.bench.ts. The CPU is that of all server processes.
 * Sizes take turns, and the median of the fastest quarter of all turns counts, because other programs can only slow a
 * turn down.
 *
 *     node bin/node.mjs bench/database-calls.bench.ts [turns, default 16] [debits in one turn, default 384]
 */
import { readFileSync } from 'node:fs'
import { readStorePlace } from '../src/config/store-place.ts'
import { openBooks } from '../src/store/open-books.ts'
import { openDatabase } from '../src/store/postgres/database.ts'
import { installFunctions } from '../src/store/postgres/migrate.ts'
import { postDebits, postFunctions } from '../src/store/postgres/post.ts'
import { SpendWindows } from '../src/store/postgres/spend-windows.ts'
import { startPostgres } from '../test/support/postgres.ts'
import { billOf } from './bill.ts'
import { readNumbers } from './options.ts'

const usage = 'node bin/node.mjs bench/database-calls.bench.ts [turns] [debits in one turn]'
const [turns = 0, perTurn = 0] = readNumbers(usage, 16, 384)
const sizes = [1, 2, 4, 8, 16, 64]
const accountsCount = 400

const postgres = await startPostgres({ settings: ['fsync = on', 'synchronous_commit = on'] })
try {
  const url = postgres.createDatabase('bench')
  const { books, close } = await openBooks(readStorePlace(url, '.'))
  const accounts: { accountId: string; keyId: string }[] = []
  for (let i = 0; i < accountsCount; i++) {
    const { id: accountId } = await books.createAccount(`account ${i}`, 1_000_000_000_000_000n)
    accounts.push({ accountId, keyId: (await books.createKey(accountId)).id })
  }
  await close()
  const database = openDatabase({ url, max: 1, patienceMs: 20_000, purpose: 'bench' })
  await installFunctions(database, postFunctions)
  const windows = new SpendWindows()
  const costs = new Map<number, number[]>(sizes.map((size) => [size, []]))
  for (let turn = -1; turn < turns; turn++)
    for (const [size, us] of costs) {
      const before = serverUs()
      for (let done = 0; done < perTurn; done += size) {
        const debits = Array.from({ length: size }, () => {
          const { accountId, keyId } = accounts[Math.floor(Math.random() * accountsCount)]!
          return { ...billOf(keyId), accountId }
        })
        const { postings } = await postDebits(database, debits, windows)
        if (postings.some((one) => one !== 'posted')) throw new Error(`${postings}`)
      }
      // The first turn prepares the statements.
      if (turn >= 0) us.push((serverUs() - before) / perTurn)
    }
  const medians = Array.from(costs, ([size, us]) => [size, Math.round(us.sort((a, b) => a - b)[turns >> 3]!)])
  console.log(JSON.stringify({ microsecondsADebit: Object.fromEntries(medians) }))
  await database.close()
} finally {
  postgres.remove()
}

/** The CPU of all processes of the server so far, in µs. */
function serverUs(): number {
  let ns = 0
  for (const pid of postgres.pids())
    try {
      ns += Number(readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ')[0])
    } catch {
      // The process has ended.
    }
  return ns / 1_000
}
