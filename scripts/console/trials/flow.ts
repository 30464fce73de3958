import assert from 'node:assert/strict'
import { settle, signedIn, visit } from '../browser.ts'
import type { Trial } from '../trials.ts'

/** The first day of an operator, from an empty gateway to a colleague whose budget is used up. */
export const flowTrials: readonly Trial[] = [
  {
    name: 'flow: account, credit, key with a budget, request, seen in the charts, budget spent, 402',
    run: signedIn({ as: 'admin' }, async ({ rig, view, page }) => {
      await settle(page)
      await page.click('text=Make an account with a key')
      await page.fill('dialog [name=name]', 'acme')
      await page.fill('dialog [name=credit]', '10')
      await page.fill('dialog [name=label]', 'ci')
      await page.fill('dialog [name=budget]', '0.5/day')
      await page.click('dialog >> text=Make account and key')
      const key = (await page.textContent('[data-secret]'))!
      assert.match(key, /^sk-tri-/)
      assert.ok(!page.url().includes('sk-tri'), 'no key in an address')
      await page.click('dialog >> text=I have it')
      await page.waitForSelector('h2:text("acme")')
      assert.equal(await page.locator('[data-secret]').count(), 0, 'shown once')

      await page.click('.page-head >> text=Credit')
      await page.fill('dialog [name=credits]', '2.5')
      await page.fill('dialog [name=reference]', 'invoice 7')
      await page.click('dialog .form-foot >> text=Credit')
      await page.waitForSelector('.tile .figure >> text=12.50')

      await visit(view, rig, '?range=24h')
      // Waits until the page listens for events.
      await page.waitForSelector('.live.live')
      const startedMs = performance.now()
      assert.equal(await rig.ask(key, 'reasoner'), 200)
      const answeredMs = performance.now()
      await page.waitForSelector('.plot .legend .name:text("reasoner")')
      const seenMs = performance.now() - answeredMs
      assert.ok(seenMs < 2_000, `seen after ${Math.round(seenMs)} ms`)

      await rig.ask(key, 'no such model')
      const failedMs = performance.now()
      await page.waitForSelector('.plot:has(h2:text-is("Requests")) .legend .name:text("refused")')
      const failureMs = performance.now() - failedMs
      assert.ok(failureMs < 2_000, `a failure is seen after ${Math.round(failureMs)} ms`)

      let status = 200
      for (let asked = 0; asked < 40 && status === 200; asked++) status = await rig.ask(key, 'dear')
      assert.equal(status, 402, 'the budget ends it')
      await visit(view, rig, 'keys')
      await page.waitForSelector('.budget.spent')
      assert.match((await page.textContent('.budget'))!, /of 0\.50 a day.*renews in/)
      for (const path of ['accounts?sort=-spent', 'keys?sort=-spent']) {
        await visit(view, rig, path)
        await page.waitForSelector(`tr[data-row] >> text=${path.startsWith('keys') ? 'ci' : 'acme'}`)
        await page.waitForSelector('td.number span[title$=" credits"]')
      }
      await visit(view, rig, 'requests')
      await page.waitForSelector('td .state:has-text("insufficient credits")')
      await page.click('tr[data-row] >> nth=0')
      await page.waitForSelector('.explain .steps')
      return [
        `request of ${Math.round(answeredMs - startedMs)} ms seen in the chart ${Math.round(seenMs)} ms after its end, one that failed after ${Math.round(failureMs)} ms`,
      ]
    }),
  },
]
