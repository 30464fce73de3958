import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import { openPage, settle, signIn, visit } from '../browser.ts'
import { type Rig, startRig } from '../rig.ts'
import type { Trial } from '../trials.ts'

/** A model that speaks for much longer than any step of a trial takes. */
const slow = {
  ...{ id: 'slow', wire: 'chat', upstream_model: 'sim?tokens=4000&delay_ms=20', profile: 'simulator' },
  prices: { input: '3', cache_read: '0.3', cache_write: '3.75', output: '15' },
}

/** The ways to press a button. A key goes to the focused element, and nothing moves the focus between two presses. */
const ways: Record<string, (page: Page, label: string) => Promise<void>> = {
  mouse: (page, label) => page.click(`.composer button:text-is("${label}")`),
  Enter: (page) => hold(page, 'Enter'),
  Space: (page) => hold(page, 'Space'),
}

/** Presses a key that repeats because it is held down. */
async function hold(page: Page, key: string): Promise<void> {
  for (let i = 0; i < 3; i++) await page.keyboard.down(key)
  await page.keyboard.up(key)
}

export const playgroundTrials: readonly Trial[] = Object.entries(ways).map(([way, press]) => ({
  name: `playground: Send, Stop and Send again by ${way} are two requests`,
  async run() {
    const rig = await startRig({ models: [slow] })
    await rig.makeAccount('acme')
    const view = await openPage(rig)
    const { page } = view
    let posts = 0
    page.on('request', (request) => {
      if (request.method() === 'POST' && request.url().endsWith('/playground')) posts++
    })
    await signIn(view, rig, rig.admin)
    await visit(view, rig, 'playground?wire=chat&model=slow')
    await page.focus('.composer button:text-is("Send")')
    for (const sent of [1, 2]) {
      await press(page, 'Send')
      await page.waitForSelector('.results .event')
      assert.equal(await page.evaluate('document.activeElement.textContent'), 'Stop', 'the focus stays with the button')
      // Browsers also submit a form without its button: by Enter in some of its fields.
      await page.evaluate(`document.querySelector('.composer').requestSubmit()`)
      await press(page, 'Stop')
      await page
        .waitForSelector('.panel .unit:has-text("stopped")')
        .catch(() => assert.equal(posts, sent, 'it goes on: POST /playground'))
      assert.equal(await page.evaluate('document.activeElement.textContent'), 'Send', 'the focus stays with the button')
      // The bill is loaded after everything that the press has caused.
      await page.waitForSelector('.panel:has(h2:text-is("Usage and cost"))')
      await settle(page)
      assert.equal(posts, sent, 'POST /playground')
      assert.equal(await page.locator('.composer button:text-is("Send")').count(), 1)
    }
    assert.deepEqual(await outcomesOf(rig), ['client_abort', 'client_abort'])
    await view.close()
    await rig.close()
    return [`${posts} POST /playground for two times Send and Stop`]
  },
}))

/** The outcomes in the ledger, once both requests are in it. */
async function outcomesOf(rig: Rig): Promise<(string | null)[]> {
  const headers = { authorization: `Bearer ${rig.admin}` }
  for (;;) {
    const response = await fetch(`${rig.adminUrl}/api/v1/ledger`, { headers })
    const { items } = (await response.json()) as { items: { model: string | null; outcome: string | null }[] }
    const debits = items.filter(({ model }) => model !== null)
    if (debits.length >= 2) return debits.map(({ outcome }) => outcome)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
