import assert from 'node:assert/strict'
import type { Route } from 'playwright-core'
import { forgive, openPage, settle, signIn, visit, type Watched } from '../browser.ts'
import { startRig } from '../rig.ts'
import type { Trial } from '../trials.ts'

/** The ways in which a gateway is not there: no network, no listener, or a proxy that answers in its place. */
const outages: Record<string, (watched: Watched) => Promise<() => Promise<void>>> = {
  'no network': async ({ page }) => {
    await page.context().setOffline(true)
    return () => page.context().setOffline(false)
  },
  'no listener': ({ page }) => intercept(page, (route) => route.abort('connectionrefused')),
  'a proxy with 502': ({ page }) =>
    intercept(page, (route) =>
      route.fulfill({ status: 502, contentType: 'text/html', body: '<html>502 Bad Gateway</html>' }),
    ),
}

async function intercept(page: Watched['page'], answer: (route: Route) => Promise<void>): Promise<() => Promise<void>> {
  const path = '**/api/v1/**'
  await page.route(path, answer)
  return () => page.unroute(path)
}

export const outageTrials: readonly Trial[] = [
  ...Object.entries(outages).map(([name, begin]) => ({
    name: `outage: CON-9 the page recovers by itself after ${name}`,
    async run() {
      const rig = await startRig()
      await rig.makeAccount('acme')
      const view = await openPage(rig)
      const { page, faults } = view
      await signIn(view, rig, rig.admin)
      await settle(page)
      const end = await begin(view)
      await page.click('nav.rail >> text=Keys')
      await page.waitForSelector('.failure:has-text("Not reached")')
      await end()
      await page.waitForSelector('td >> text=laptop')
      await page.waitForSelector('.failure', { state: 'detached' })
      // Also while the page is opened, before anything is known of the operator.
      if (name !== 'no network') {
        const endAgain = await begin(view)
        await page.reload()
        await page.waitForSelector('.failure:has-text("Not reached")')
        await endAgain()
        await page.waitForSelector('td >> text=laptop')
      }
      assert.equal(await page.locator('.failure').count(), 0)
      forgive(faults, /ERR_|status of 502|MIME type/)
      await view.close()
      await rig.close()
    },
  })),
  {
    name: 'outage: CON-7b a page that says Live shows what somebody else has changed',
    async run() {
      const rig = await startRig()
      const { id } = await rig.makeAccount('acme', '10')
      const { id: keyId } = (await rig.books.listKeys(id))[0]!
      const view = await openPage(rig)
      const { page } = view
      await signIn(view, rig, rig.viewer)
      await visit(view, rig, `accounts/${id}`)
      await page.waitForSelector('.live.live')
      await rig.books.credit(id, 2_500_000_000n, 'an invoice')
      await page.waitForSelector('.tile .figure >> text=12.50')
      await page.waitForSelector('tr[data-row] >> text=an invoice')
      await rig.books.renameAccount(id, 'globex')
      await page.waitForSelector('h2:text("globex")')
      await rig.books.createKey(id, { label: 'made elsewhere' })
      await page.waitForSelector('td >> text=made elsewhere')
      await visit(view, rig, `keys/${keyId}`)
      await page.waitForSelector('.live.live')
      await rig.books.updateKey(keyId, { requestsPerMinute: 77 })
      await page.waitForSelector('.facts >> text=77')
      await view.close()
      await rig.close()
    },
  },
]
