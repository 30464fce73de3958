/*
 * Fills a SQLite store, for trials with long ledgers: `node bin/node.mjs scripts/fill-store.ts PATH 1000000 100`. The
 * numbers are debits and accounts, each with a key. Debits are posted as by a server, but without requests.
 */
import { createBooks } from '../src/accounts/books.ts'
import { openStore } from '../src/store/sqlite/store.ts'
import { debitOf } from './usage/month.ts'

const [path, debits = '100000', accounts = '100'] = process.argv.slice(2)
if (!path) throw new Error('name the file to fill')

const batch = 2_000
const store = openStore(path)
const books = createBooks(store, Date.now)
const owners: { accountId: string; keyId: string }[] = []
for (let n = 0; n < Number(accounts); n++) {
  const { id } = await books.createAccount(`account ${n} of ${Date.now()}`, 1_000_000_000_000_000n)
  owners.push({ accountId: id, keyId: (await books.createKey(id)).id })
}
for (let done = 0; done < Number(debits); done += batch) {
  const size = Math.min(batch, Number(debits) - done)
  store.postDebits(Array.from({ length: size }, (_, at) => debitOf(owners[(done + at) % owners.length]!)))
}
store.close()
