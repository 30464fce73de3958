import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { findBarriers, openPage, settle, signIn, visit } from '../browser.ts'
import { pagesOf } from '../pages.ts'
import { startRig } from '../rig.ts'
import type { Trial } from '../trials.ts'

const wider = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'

export const firstMinutesTrials: readonly Trial[] = [
  {
    name: 'first minutes: the checklist ticks itself as things happen, by keyboard too, and stays away when it is dismissed',
    async run() {
      const rig = await startRig()
      const view = await openPage(rig)
      const { page } = view
      await signIn(view, rig, rig.admin)
      await visit(view, rig, '')
      await page.waitForSelector('.first-steps >> text=0 of 4')
      await page.focus('#main')
      for (let at = 0; at < 40; at++) {
        await page.keyboard.press('Tab')
        if (await page.evaluate(`document.activeElement.closest('.first-steps li') !== null`)) break
      }
      await page.keyboard.press('Enter')
      await page.waitForSelector('dialog >> text=New account')
      await page.keyboard.press('Escape')
      await visit(view, rig, '')
      const { key } = await rig.makeAccount('acme')
      await rig.ask(key, 'reasoner')
      await page.waitForSelector('.first-steps >> text=3 of 4')
      assert.deepEqual(await findBarriers(view), [])
      await page.setViewportSize({ width: 360, height: 760 })
      assert.deepEqual([await findBarriers(view), await page.evaluate(wider)], [[], 0])
      await page.setViewportSize({ width: 1440, height: 900 })
      await page.click('.first-steps >> text=Set up an agent')
      await page.waitForSelector('.choices a')
      await page.click('.choices a >> nth=0')
      await page.click('.snippet button >> nth=0')
      await visit(view, rig, '')
      await page.waitForSelector('.first-steps >> text=4 of 4')
      await page.click('.first-steps >> text=Dismiss')
      await visit(view, rig, '')
      assert.equal(await page.locator('.first-steps').count(), 0)
      await view.close()
      // If the gateway is in use already, a person who opens it for the first time sees no first steps.
      const other = await openPage(rig)
      await signIn(other, rig, rig.admin)
      await visit(other, rig, '')
      await other.page.waitForSelector('.tiles')
      assert.equal(await other.page.locator('.first-steps').count(), 0)
      await other.close()
      await rig.close()
    },
  },
  {
    name: 'first minutes: the demo fills every page, says on each that it is one, changes nothing, and its file goes with it',
    async run() {
      const rig = await startRig()
      const file = join(dirname(rig.storePath), 'demo.db')
      const view = await openPage(rig)
      const { page } = view
      await signIn(view, rig, rig.admin)
      await visit(view, rig, '')
      await page.focus('text=Look around in a demo')
      await page.keyboard.press('Enter')
      await page.waitForSelector('.demo-bar')
      await settle(page)
      assert.ok(existsSync(file))
      await page.waitForSelector('.needs >> text=runs dry')
      for (const path of pagesOf()) {
        await visit(view, rig, path)
        await page.waitForSelector('.demo-bar >> text=nothing here is real')
        assert.deepEqual(await page.locator('.failure').allTextContents(), [], path)
        assert.match(await page.title(), /^Demo · /)
      }
      for (const [path, rows] of [
        ['accounts', 8],
        ['keys', 24],
      ] as const) {
        await visit(view, rig, path)
        assert.equal(await page.locator('tr[data-row]').count(), rows, path)
      }
      // A model that the overview names is not in the gateway's catalog. Each page that lists models says so.
      await visit(view, rig, '?range=30d')
      await page.click('table[aria-label="Top models"] tbody a:text("large")')
      await page.waitForSelector('main >> text=The models of the demo are made up')
      await page.click('main >> text=To the models')
      await page.waitForSelector('.note >> text=The models of the demo are made up')
      await visit(view, rig, 'requests?range=30d')
      const models = await page.locator('select:has(option:text("any model")) option').allTextContents()
      assert.deepEqual(models.toSorted(), ['any model', 'coder', 'drafts', 'large', 'small'])
      await visit(view, rig, 'playground')
      await page.waitForSelector('main >> text=The playground is off in the demo')
      await visit(view, rig, '?range=30d')
      assert.equal(await page.locator('main button:text-matches("^New ")').count(), 0)
      assert.deepEqual(await findBarriers(view), [])
      await page.setViewportSize({ width: 360, height: 760 })
      await visit(view, rig, '')
      assert.deepEqual([await findBarriers(view), await page.evaluate(wider)], [[], 0])
      await page.click('.demo-bar >> text=Leave the demo')
      await page.waitForSelector('.demo-bar', { state: 'detached' })
      await settle(page)
      assert.ok(!existsSync(file))
      assert.equal((await rig.books.listAccounts()).length, 0)
      await view.close()
      await rig.close()
    },
  },
]
