import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Route } from 'playwright-core'
import { findBarriers, forgive, openPage, settle, signedIn, signIn, visit, type Watched } from '../browser.ts'
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
    run: signedIn({ as: 'admin' }, async ({ rig, view, page, faults }) => {
      await rig.makeAccount('acme')
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
    }),
  })),
  {
    name: 'outage: CON-7b a page that says Live shows what somebody else has changed',
    run: signedIn({ as: 'viewer' }, async ({ rig, view, page }) => {
      const { id } = await rig.makeAccount('acme', '10')
      const { id: keyId } = (await rig.books.listKeys(id))[0]!
      await visit(view, rig, `accounts/${id}`)
      await page.waitForSelector('.live.live')
      await rig.books.credit(id, 2_500_000_000n, 'an invoice')
      await page.waitForSelector('.tile .figure >> text=12.50')
      await page.waitForSelector('tr[data-row] >> text=an invoice')
      await rig.books.updateAccount(id, { name: 'globex' })
      await page.waitForSelector('h2:text("globex")')
      await rig.books.createKey(id, { label: 'made elsewhere' })
      await page.waitForSelector('td >> text=made elsewhere')
      await visit(view, rig, `keys/${keyId}`)
      await page.waitForSelector('.live.live')
      await rig.books.updateKey(keyId, { requestsPerMinute: 77 })
      await page.waitForSelector('.facts >> text=77')
    }),
  },
  {
    name: 'outage: CON-8 a model that always fails is failing on every page that shows it, and an account below zero is not green',
    async run() {
      const failed = createServer((request, response) => {
        request.resume()
        response.writeHead(500, { 'content-type': 'application/json' }).end('{"error":{"message":"lost"}}')
      })
      await new Promise<void>((resolve) => failed.listen(0, '127.0.0.1', resolve))
      const { port } = failed.address() as AddressInfo
      const rig = await startRig({ upstreamUrl: `http://127.0.0.1:${port}` })
      const { id, key } = await rig.makeAccount('acme')
      const { id: docs } = await rig.makeAccount('docs', '1')
      await rig.books.credit(docs, -3_430_000_000n, 'a correction')
      const view = await openPage(rig)
      const { page } = view
      await signIn(view, rig, rig.viewer)
      await page.waitForSelector('.live.live')
      assert.equal(await page.locator('main .failure').count(), 0)
      for (let at = 0; at < 14; at++) await rig.ask(key, 'reasoner')
      await page.waitForSelector('main .failure:has-text("Failing now") >> text=reasoner')
      await page.waitForSelector('nav.rail a:has-text("Upstreams") .mark')
      assert.deepEqual(await findBarriers(view), [])
      for (const [path, shown] of [
        ['upstreams', 'tr:has-text("reasoner") .state.bad:has-text("failing")'],
        ['models', 'tr:has-text("reasoner") .state.bad:has-text("failing")'],
        ['models/reasoner', '.page-head .state.bad:has-text("failing")'],
        ['accounts', 'tr:has-text("docs") .state.bad:has-text("no credit")'],
        ['accounts', 'tr:has-text("acme") .state.good:has-text("active")'],
        [`accounts/${docs}`, '.page-head .state.bad:has-text("no credit")'],
        [`accounts/${id}`, '.page-head .state.good:has-text("active")'],
      ] as const) {
        await visit(view, rig, path)
        await page.waitForSelector(shown)
        assert.deepEqual(await findBarriers(view), [], path)
      }
      await view.close()
      await rig.close()
      failed.close()
    },
  },
]
