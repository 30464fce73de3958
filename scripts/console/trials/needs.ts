import assert from 'node:assert/strict'
import { until } from '../../../test/support/waiting.ts'
import { findBarriers, openPage, settle, signIn, visit } from '../browser.ts'
import { startRig } from '../rig.ts'
import type { Trial } from '../trials.ts'

export const needTrials: readonly Trial[] = [
  {
    name: 'needs: the overview names what needs an operator, a link by keyboard leads to the act, and the line goes with it',
    async run() {
      const rig = await startRig()
      const { id, key } = await rig.makeAccount('acme', '0.001')
      await until(async () => {
        await rig.ask(key, 'reasoner')
        return (await rig.books.findAccount(id)).balanceNanos <= 0n
      }, 'the credit is used up')
      for (const phone of [false, true]) {
        const view = await openPage(rig, { theme: phone ? 'dark' : 'light', phone })
        const { page } = view
        await signIn(view, rig, rig.admin)
        if (phone) await page.setViewportSize({ width: 360, height: 760 })
        await visit(view, rig, '')
        await page.waitForSelector('.needs >> text=Account acme has no credit left')
        const bar = phone ? '.bottom' : '.rail'
        assert.match((await page.innerText(`${bar} .mark.count`)).trim(), /^1/)
        assert.deepEqual(await findBarriers(view), [])
        const width = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
        assert.equal(width, 0)
        if (phone) await view.close()
        else {
          await page.focus('#main')
          for (let at = 0; at < 30; at++) {
            await page.keyboard.press('Tab')
            if (await page.evaluate(`document.activeElement.closest('.needs') !== null`)) break
          }
          await page.keyboard.press('Enter')
          await page.waitForSelector('h2:text("acme")')
          await settle(page)
          await view.close()
        }
      }
      await rig.books.credit(id, 50_000_000_000n, 'invoice')
      const view = await openPage(rig)
      await signIn(view, rig, rig.viewer)
      // The gateway answers from facts that are ten seconds old at most.
      await until(async () => {
        await visit(view, rig, '')
        return (await view.page.locator('.needs, .mark.count').count()) === 0
      }, 'nothing needs an operator')
      await view.close()
      await rig.close()
    },
  },
]
