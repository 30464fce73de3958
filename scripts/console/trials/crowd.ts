import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { until } from '../../../test/support/waiting.ts'
import { settle, signedIn, visit } from '../browser.ts'
import { pagesOf } from '../pages.ts'
import type { Trial } from '../trials.ts'

const many = 100_000

/** Fills a store with as many accounts as somebody may have who sells to people, each with a key. */
function fill(storePath: string): void {
  const store = new DatabaseSync(storePath)
  store.exec(`BEGIN;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${many})
    INSERT INTO accounts (id, name, state, revision, created_ms)
      SELECT printf('acct_%016d', i), printf('customer %06d', i), 'active', i, 1700000000000 + i FROM n;
    INSERT INTO keys (id, account_id, digest, prefix, created_ms, label)
      SELECT printf('key_%016d', rowid), id, 'digest ' || id, printf('sk-tri-%06d', rowid), created_ms, 'laptop' FROM accounts;
    COMMIT`)
  store.close()
}

export const crowdTrials: readonly Trial[] = [
  {
    name: 'crowd: 100,000 accounts with keys: each page within seconds, few rows in it, more as one scrolls',
    run: signedIn({ as: 'admin', prepare: fill }, async ({ rig, view, page }) => {
      const { id, key } = await rig.makeAccount('acme')
      await rig.ask(key, 'reasoner')
      const [row] = await rig.books.listKeys(id)
      const lines: string[] = []
      for (const path of pagesOf({ account: id, key: row!.id })) {
        const startedMs = performance.now()
        await visit(view, rig, path)
        const ms = Math.round(performance.now() - startedMs)
        assert.deepEqual(await page.locator('.failure').allTextContents(), [], path)
        assert.ok(ms < 5_000, `${path} after ${ms} ms`)
        lines.push(`${path || 'overview'} ${ms} ms`)
      }
      await visit(view, rig, 'accounts')
      let [rows, last] = [0, 0]
      await until(async () => {
        await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)')
        rows = Math.max(rows, await page.locator('tr[data-row]').count())
        last = Number(await page.getAttribute('tr[data-row] >> nth=-1', 'data-row'))
        return last > 300
      }, 'row 300 is seen')
      assert.ok(rows < 120, `${rows} rows in the page`)
      await page.fill('[type=search]', 'customer 054321')
      await page.waitForSelector('td >> text=customer 054321')
      await settle(page)
      assert.equal(await page.locator('tr[data-row]').count(), 1)
      return [lines.join(', '), `scrolled to row ${last}: at most ${rows} rows in the page`]
    }),
  },
]
