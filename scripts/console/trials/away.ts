import assert from 'node:assert/strict'
import { createBooks } from '../../../src/accounts/books.ts'
import { createCalendar } from '../../../src/accounts/calendar.ts'
import { priceNanos } from '../../../src/catalog/model.ts'
import { readKeptList } from '../../../src/config/list-text.ts'
import { detachMonth } from '../../../src/store/archive/archive.ts'
import { openSqliteArchive } from '../../../src/store/archive/sqlite-end.ts'
import { openStore } from '../../../src/store/sqlite/store.ts'
import { createDebitRow } from '../../../test/store/fixtures.ts'
import { findBarriers, forgive, openPage, settle, signIn, visit } from '../browser.ts'
import { startRig } from '../rig.ts'
import type { Trial } from '../trials.ts'

const zone = { timeZone: 'Europe/Berlin', weekStarts: 'monday' } as const
const months = ['2026-08', '2026-09', '2026-10'] as const
/** The months that are detached. The last month stays in the store. */
const detached = months.slice(0, 2)

/** Fills three months of one account and its key, and detaches the first two. */
async function fill(path: string): Promise<void> {
  let nowMs = 0
  const store = openStore(path, { nowMs: () => nowMs, zone })
  const books = createBooks(store, () => nowMs, undefined, createCalendar(zone))
  nowMs = Date.parse('2026-08-03T12:00:00Z')
  store.adoptReporting({ ...zone, keepMonths: 13 }, nowMs)
  const { id } = await books.createAccount('acme', 50_000_000_000n)
  const key = await books.createKey(id, { label: 'laptop' })
  for (const month of months)
    for (const day of ['05', '06']) {
      nowMs = Date.parse(`${month}-${day}T12:00:00Z`)
      store.postDebits([{ ...createDebitRow(`req_${month}_${day}`, id), keyId: key.id, createdMs: nowMs }])
    }
  nowMs = Date.now()
  while (store.fold(1_000) > 0);
  store.close()
  const archive = await openSqliteArchive(path)
  for (const month of detached)
    await detachMonth(archive, { month, act: { actor: 'cli:trial@here' }, priceNanos, readList: readKeptList })
  await archive.close()
}

const note = 'main .note[role=status]'

export const awayTrials: readonly Trial[] = [
  {
    name: 'away: lists of entries and requests and the bill of a detached month say that it is away, and the cure',
    async run() {
      const rig = await startRig({ prepare: fill, ownPages: true })
      const [account] = await rig.books.listAccounts()
      const attach = `triwire ledger archive attach ${months[0]}`
      const view = await openPage(rig)
      const { page, faults } = view
      await signIn(view, rig, rig.admin)
      for (const path of [`accounts/${account!.id}`, 'requests']) {
        await visit(view, rig, path)
        const said = await page.locator(note).innerText()
        assert.match(said, /^Entries of 2026-08, 2026-09 are away and not listed: they were archived\./, path)
        assert.ok(said.includes(attach), path)
        // Requests without a bill are only in memory, which is empty because this server has just started.
        const unbilled = await page.locator('main >> text=/Of the requests before .*only those with a bill/').count()
        assert.equal(unbilled, path === 'requests' ? 1 : 0, path)
      }
      // A span in a month that is not detached.
      await visit(view, rig, 'requests?from=2026-10-01T00:00:00Z&to=2026-10-31T00:00:00Z')
      assert.equal(await page.locator('tr[data-row]').count(), 2)
      assert.equal(await page.locator(note).count(), 0)
      await view.close()
      for (const width of [1440, 360]) {
        const paid = await openPage(rig)
        await signIn(paid, rig, rig.finance)
        await paid.page.setViewportSize({ width, height: 800 })
        await visit(paid, rig, '?month=2026-09&account=acme&by=key')
        const said = await paid.page.locator(note).innerText()
        assert.match(said, /^Entries of 2026-09 are away: .* triwire ledger archive attach 2026-09\.$/)
        assert.equal(await paid.page.textContent('main h1, header h1'), 'Finance')
        // The sums of a detached month stay in the store.
        await paid.page.waitForSelector('main tbody tr')
        assert.deepEqual(await findBarriers(paid), [])
        assert.equal(
          await paid.page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
          0,
        )
        await paid.page.click('text=Statement')
        await paid.page.waitForSelector('.toasts >> text=Entries of 2026-09 are away: they were archived')
        forgive(paid.faults, /409/)
        await paid.page.click('[aria-label="Next month"]')
        await settle(paid.page)
        assert.equal(await paid.page.locator(note).count(), 0)
        await paid.close()
      }
      assert.deepEqual(faults, [])
      const { key } = await rig.books.createKey(account!.id, { label: 'own' })
      const own = await openPage({ ...rig, adminUrl: rig.url })
      await signIn(own, { ...rig, adminUrl: rig.url }, key!)
      await visit(own, { ...rig, adminUrl: rig.url }, 'requests')
      assert.match(await own.page.locator(note).innerText(), /away and not listed.*Ask the operator of the gateway/)
      await own.close()
      await rig.close()
    },
  },
]
