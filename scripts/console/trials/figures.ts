import assert from 'node:assert/strict'
import { settle, signedIn, visit } from '../browser.ts'
import type { Trial } from '../trials.ts'

/** A model so cheap that a request costs less than a hundredth of a credit. */
const cheap = {
  ...{ id: 'cheap', wire: 'chat' },
  prices: { input: '0.01', cache_read: '0.001', cache_write: '0.01', output: '0.5' },
}

export const figureTrials: readonly Trial[] = [
  {
    name: 'figures: small amounts can be read and add up, on the page of an account, in its plots, and in lists',
    run: signedIn({ as: 'admin', models: [cheap] }, async ({ rig, view, page }) => {
      const { id, key } = await rig.makeAccount('acme', '25')
      for (let at = 0; at < 3; at++) await rig.ask(key, 'cheap')
      await rig.books.credit(id, -3_000_000_000n, 'a correction')
      await visit(view, rig, `accounts/${id}?range=24h`)
      await page.waitForSelector('[aria-label=Entries] tr[data-row] >> nth=4')
      const rows = await page.locator('[aria-label=Entries] tr[data-row]').all()
      const read = async (row: (typeof rows)[number], at: number) =>
        Number((await row.locator('td').nth(at).innerText()).replace('−', '-'))
      const entries = await Promise.all(rows.map(async (row) => [await read(row, 3), await read(row, 4)] as const))
      for (const [at, [amount, balance]] of entries.slice(0, -1).entries())
        assert.ok(Math.abs(entries[at + 1]![1] + amount - balance) < 1e-10, `${entries}`)
      assert.equal(new Set(entries.map(([, balance]) => balance)).size, 5, 'each entry has another balance')
      for (const path of ['', 'requests', 'keys', 'accounts', `accounts/${id}`]) {
        await visit(view, rig, `${path}?range=24h`)
        await settle(page)
        const text = (await page.textContent('main'))!
        assert.ok(!/[<>]\s?−?0\.01/.test(text), `${path}: ${text.match(/.{40}[<>]\s?−?0\.01/)}`)
      }
      assert.match((await page.textContent('.tile:has-text("Lasts")'))!, />100\sy|\d+ y|\d+\sd/)
      return entries.map(([amount, balance]) => `${amount}: ${balance}`)
    }),
  },
  {
    name: 'figures: words break at their ends, boxes beside each other are equally high, and amounts may have a comma',
    run: signedIn({ as: 'admin' }, async ({ rig, view, page }) => {
      const { id } = await rig.makeAccount('acme', '25')
      for (const width of [1440, 375]) {
        await page.setViewportSize({ width, height: 900 })
        await visit(view, rig, 'translate')
        await page.click('.composer [type=submit]')
        await page.waitForSelector('.fate')
        for (const cell of await page.locator('.fate, .plain td:first-child code').all()) {
          const box = (await cell.boundingBox())!
          assert.ok(box.height < 24, `${width}: ${await cell.innerText()} is ${box.height} px high`)
        }
        assert.ok(!(await page.locator('.results .table').allInnerTexts()).join('').includes('`'), 'no raw backtick')
        assert.equal(
          await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
          0,
        )
      }
      await page.setViewportSize({ width: 1440, height: 900 })
      await visit(view, rig, `accounts/${id}`)
      await page.click('main >> text=New key')
      const heights = new Set<number>()
      for (const input of await page.locator('dialog .fields input').all())
        heights.add(Math.round((await input.boundingBox())!.height))
      assert.equal(heights.size, 1, `heights ${[...heights]}`)
      await page.fill('dialog [name=label]', 'comma')
      await page.fill('dialog [name=budget]', '0,5/day')
      await page.click('dialog [type=submit]')
      await page.waitForSelector('[data-secret]')
      assert.equal(
        (await rig.books.listKeys(id)).find(({ label }) => label === 'comma')?.bounds.budget?.nanos,
        500_000_000n,
      )
      await page.click('dialog >> text=I have it')
      await page.click('.page-head >> text=Credit')
      await page.fill('dialog [name=credits]', '12,50')
      await page.fill('dialog [name=reference]', 'invoice 7')
      await page.keyboard.press('Enter')
      await page.waitForSelector('.tile .figure >> text=37.50')
    }),
  },
]
