import assert from 'node:assert/strict'
import { settle, signedIn, visit } from '../browser.ts'
import type { Trial } from '../trials.ts'

export const keyboardTrials: readonly Trial[] = [
  {
    name: 'keyboard: pages, rows, search, help and plots without a mouse',
    run: signedIn({ as: 'admin' }, async ({ rig, view, page }) => {
      for (const name of ['alpha', 'beta', 'gamma']) {
        const { key } = await rig.makeAccount(name)
        await rig.ask(key, 'reasoner')
      }
      await visit(view, rig, '')
      const press = async (...keys: string[]) => {
        for (const key of keys) await page.keyboard.press(key)
      }
      await page.focus('.plot [role=slider]')
      await press('End', 'ArrowLeft')
      const told = await page.getAttribute('.plot [role=slider]', 'aria-valuetext')
      assert.match(told!, /to \d\d:\d\d: .*reasoner/)
      await press('g', 'a')
      await page.waitForSelector('h1:text("Accounts")')
      await settle(page)
      await press('j', 'j', 'k', 'Enter')
      await page.waitForSelector('h2:text("gamma")')
      await press('/')
      await page.waitForSelector('.palette-input')
      await page.waitForSelector('[role=option] >> text=Operators')
      assert.equal(await page.locator('[role=option] >> text=Sessions').count(), 0, 'a page of people is not offered')
      await page.keyboard.type('bet')
      await page.waitForSelector('[role=option] >> text=beta')
      await press('Enter')
      await page.waitForSelector('h2:text("beta")')
      await press('?')
      await page.waitForSelector('dialog >> text=next row')
      await press('Escape')
      await page.waitForSelector('dialog', { state: 'detached' })
      await press('g', 'r')
      await page.waitForSelector('h1:text("Requests")')
      await settle(page)
      const focused = () => page.evaluate('document.activeElement.textContent')
      for (const width of [1440, 800]) {
        await page.setViewportSize({ width, height: 900 })
        await press('j', 'j')
        const row = await focused()
        await press('Enter')
        await page.waitForSelector('.explain dd >> text=ok')
        await settle(page)
        assert.equal(await focused(), 'Request', `${width}: the focus is at the explanation`)
        await press('Tab')
        assert.match((await page.getAttribute(':focus', 'aria-label'))!, /Copy request id/)
        await press('Escape')
        await page.waitForSelector('.explain', { state: 'detached' })
        assert.equal(await focused(), row, `${width}: the focus returns to the row`)
        await press('k', 'k')
      }
      // The next row is opened from the explanation. The list is beside it only in a wide window.
      await page.setViewportSize({ width: 1440, height: 900 })
      await press('Enter')
      await page.waitForSelector('tr[data-row="0"].selected')
      await press('j', 'Enter')
      await page.waitForSelector('tr[data-row="1"].selected')
      await settle(page)
      assert.equal(await focused(), 'Request')
      await press('Escape')
      // The first stop of the Tab key is a link that skips the navigation.
      await page.reload()
      await settle(page)
      await press('Tab')
      assert.equal(await page.evaluate('document.activeElement.className'), 'skip')
    }),
  },
]
