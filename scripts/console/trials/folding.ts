import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { createBooks } from '../../../src/accounts/books.ts'
import { unfoldedMax } from '../../../src/accounts/usage/question.ts'
import { openStore } from '../../../src/store/sqlite/store.ts'
import { makeOwners, readOwners, sessions } from '../../usage/ledger.ts'
import { writeEntries } from '../../usage/sqlite.ts'
import { patienceMs, signedIn, visit } from '../browser.ts'
import type { Trial } from '../trials.ts'

const entries = unfoldedMax + 30_000

/** Keeps the mark of folding where it is. Entries above the mark are folded once, however often they are read. */
const stay = 'CREATE TRIGGER stay BEFORE UPDATE ON sums_state BEGIN SELECT raise(IGNORE); END'

/** Fills a store with entries that are not folded, as an older triwire leaves them, and that stay so for now. */
async function fill(path: string): Promise<void> {
  const store = openStore(path)
  const books = createBooks(store, Date.now)
  await makeOwners(books)
  writeEntries(path, sessions(entries, await readOwners(books), Date.now()), () => {})
  store.close()
  change(path, stay)
}

function change(path: string, sql: string): void {
  const db = new DatabaseSync(path, { timeout: patienceMs })
  db.exec(sql)
  db.close()
}

const note = '.note[role=status]'

export const foldingTrials: readonly Trial[] = [
  {
    name: 'folding: CON-10 the console says how much of the ledger its figures are of, and follows until it is all',
    run: signedIn({ as: 'admin', prepare: fill }, async ({ rig, view, page }) => {
      await visit(view, rig, '?range=13m')
      const said = await page.locator(note).textContent()
      assert.match(
        said ?? '',
        /^Figures are of \d+ % of the ledger\. The rest is being counted, and this page follows\.$/,
      )
      await visit(view, rig, 'keys?sort=-spent')
      assert.equal(await page.locator(note).count(), 1)
      change(rig.storePath, 'DROP TRIGGER stay')
      await page.waitForSelector(note, { state: 'detached', timeout: 4 * patienceMs })
      await page.waitForSelector('tr[data-row]')
      return [said ?? '']
    }),
  },
]
