import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
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
  {
    name: 'needs: the link of a refused upstream leads to a page on which the refused services are the first',
    async run() {
      const refusing = createServer((_, answer) => answer.writeHead(401).end('{}')).listen(0, '127.0.0.1')
      await once(refusing, 'listening')
      const port = (refusing.address() as AddressInfo).port
      const more = Array.from({ length: 12 }, (_, at) => ({ id: `model-${at}`, wire: 'chat' }))
      const rig = await startRig({
        models: more.map((one) => ({ ...one, prices: { input: '1', cache_read: '1', cache_write: '1', output: '1' } })),
        upstreamUrl: `http://127.0.0.1:${port}`,
      })
      const { key } = await rig.makeAccount('acme')
      await rig.ask(key, 'model-9')
      const view = await openPage(rig)
      const { page } = view
      await signIn(view, rig, rig.admin)
      await until(async () => {
        await visit(view, rig, '')
        return (await page.locator('.needs >> text=is refused by its provider').count()) > 0
      }, 'the refusal is listed')
      await page.click('.needs >> text=is refused by its provider')
      await settle(page)
      const states = await page.locator('main tbody tr .state').allInnerTexts()
      assert.deepEqual(
        [...new Set(states)].map((state) => state.trim()),
        ['left alone', 'ready'],
      )
      assert.deepEqual(
        [states[0], states[1]].map((state) => state?.trim()),
        ['left alone', 'left alone'],
      )
      assert.deepEqual(await findBarriers(view), [])
      const retry = page.locator('main tbody tr button:text("Retry now")').first()
      const { y, height } = (await retry.boundingBox())!
      assert.ok(y + height <= page.viewportSize()!.height, `the button is at ${y}`)
      await view.close()
      await rig.close()
      refusing.close()
    },
  },
]
