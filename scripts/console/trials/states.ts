import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { findBarriers, forgive, openPage, settle, signedIn, signIn, visit } from '../browser.ts'
import { pagesOf } from '../pages.ts'
import { startRig } from '../rig.ts'
import type { Trial } from '../trials.ts'

export const stateTrials: readonly Trial[] = [
  {
    name: 'states: every page of a gateway with nothing in it says so, and what to do',
    run: signedIn({ as: 'admin' }, async ({ rig, view }) => {
      const empty: string[] = []
      for (const path of pagesOf()) {
        await visit(view, rig, path)
        const failures = await view.page.locator('.failure').allTextContents()
        assert.deepEqual(failures, [], path)
        if ((await view.page.locator('.empty').count()) > 0) empty.push(path || 'overview')
      }
      for (const path of ['overview', 'requests', 'accounts', 'keys', 'playground', 'webhooks'])
        assert.ok(empty.includes(path), path)
      return [`${pagesOf().length} pages, with a sentence for what is empty on ${empty.length}`]
    }),
  },
  {
    name: 'states: a gateway that does not answer is shown with Retry, and the last figures stay',
    run: signedIn({ as: 'admin' }, async ({ rig, view, page, faults }) => {
      const { key } = await rig.makeAccount('acme')
      await rig.ask(key, 'reasoner')
      await visit(view, rig, 'upstreams')
      await page.route('**/api/v1/**', (route) => route.abort())
      await page.click('nav.rail >> text=Models')
      await page.waitForSelector('.failure >> text=Retry')
      assert.match((await page.textContent('.failure'))!, /Not reached/)
      await page.unroute('**/api/v1/**')
      await page.click('.failure >> text=Retry')
      await page.waitForSelector('td >> text=reasoner')
      // The errors that a browser logs for a broken network are no faults of the page.
      forgive(faults, /ERR_FAILED/)
    }),
  },
  {
    name: 'states: where the stream has lost its place, or something of it was dropped, the list of requests is asked for anew',
    async run() {
      const rig = await startRig()
      const { key } = await rig.makeAccount('acme')
      const view = await openPage(rig)
      const { page } = view
      let event = 'reset'
      // The stream has no events about requests that end.
      await page.route('**/api/v1/events', (route) =>
        route.fulfill({ contentType: 'text/event-stream', body: `retry: 200\nevent: ${event}\ndata: {"count":1}\n\n` }),
      )
      await signIn(view, rig, rig.admin)
      await visit(view, rig, 'requests')
      for (const [at, name] of ['reset', 'dropped'].entries()) {
        event = name
        await rig.ask(key, 'reasoner')
        await page.waitForSelector(`tr[data-row] >> nth=${at}`, { timeout: 5_000 })
      }
      await view.close()
      await rig.close()
    },
  },
  {
    name: 'states: a webhook that fails says how, and since when',
    async run() {
      const receiver = createServer((request, response) => {
        request.resume()
        response.writeHead(500).end()
      })
      await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
      const { port } = receiver.address() as AddressInfo
      const url = `http://127.0.0.1:${port}/hook`
      const rig = await startRig({
        webhooks: [{ url: `${url}?token=hidden`, secret: 'a secret of webhooks', below: '10' }],
      })
      const { key } = await rig.makeAccount('acme')
      const view = await openPage(rig)
      const { page } = view
      await signIn(view, rig, rig.viewer)
      await visit(view, rig, 'webhooks')
      assert.match((await page.textContent('tr[data-row]'))!, /nothing yet/)
      await rig.ask(key, 'reasoner')
      await page.waitForSelector('tr[data-row] .state.bad:has-text("failed (5xx)")')
      assert.deepEqual(await findBarriers(view), [])
      const text = (await page.textContent('tr[data-row]'))!
      assert.ok(text.includes(url) && !text.includes('hidden'), text)
      await view.close()
      await rig.close()
      receiver.close()
    },
  },
  {
    name: 'states: a refusal is shown with its request id, beside its field if it has one',
    run: signedIn({ as: 'admin' }, async ({ rig, view, page, faults }) => {
      await visit(view, rig, 'accounts/acct_0000000000000000')
      assert.match((await page.textContent('.failure code'))!, /^req_/)
      await visit(view, rig, 'accounts?new=1')
      await page.fill('dialog [name=name]', 'acme')
      await page.fill('dialog [name=credit]', 'much')
      await page.click('dialog >> text=Make account and key')
      await page.waitForSelector('dialog [name=credit][aria-invalid]')
      await page.fill('dialog [name=credit]', '1')
      await page.click('dialog >> text=Make account and key')
      await page.waitForSelector('[data-secret]')
      forgive(faults, /status of (400|404)/)
    }),
  },
  {
    name: 'states: a new account with a wrong field is not made; if only its key is refused, the form says what exists',
    run: signedIn({ as: 'admin' }, async ({ rig, view, page, faults }) => {
      const fill = async (name: string) => {
        await visit(view, rig, 'accounts?new=1')
        await page.fill('dialog [name=name]', name)
        await page.fill('dialog [name=credit]', '5')
      }
      const make = () => page.click('dialog .form-foot [type=submit]')
      await fill('wrong')
      for (const [name, wrong, right] of [
        ['budget', '5/year', '5/day'],
        ['budget', '1.000', '5/day'],
        ['label', 'sk-tri-canary', 'ci'],
      ] as const) {
        await page.fill(`dialog [name=${name}]`, wrong)
        await make()
        await page.waitForSelector(`dialog [name=${name}][aria-invalid]:focus`)
        assert.equal(await page.locator('dialog [readonly]').count(), 0)
        await page.fill(`dialog [name=${name}]`, right)
      }
      assert.deepEqual(await rig.books.listAccounts(), [])
      await page.route('**/keys', (route) => route.abort())
      const makeWithout = async (name: string) => {
        await fill(name)
        await make()
        await page.waitForSelector(`dialog >> text=${name} is made and has its credit; only its key is missing.`)
        await page.waitForSelector('dialog [name=credit][readonly]')
        assert.deepEqual(await findBarriers(view), [])
      }
      await makeWithout('acme')
      await page.unroute('**/keys')
      await page.click('dialog >> text=Make its key')
      await page.click('dialog >> text=I have it')
      await page.route('**/keys', (route) => route.abort())
      await makeWithout('other')
      await page.click('dialog >> text=Cancel')
      await page.waitForSelector('h2:text("other")')
      forgive(faults, /ERR_FAILED/)
    }),
  },
  {
    name: 'states: a session that ends leads to the sign-in page and back to where one was',
    run: signedIn({ as: 'viewer' }, async ({ rig, view, page, faults }) => {
      await visit(view, rig, 'models?q=coder')
      await rig.books.revokeOperator('vic')
      await page.click('nav.rail >> text=Operators')
      await page.waitForSelector('.sign-in >> text=Your session has ended')
      await page.fill('#token', rig.admin)
      await page.keyboard.press('Enter')
      await page.waitForSelector('h1:text("Operators")')
      await settle(page)
      forgive(faults, /status of 401/)
      await page.click('[aria-label^="Sign out"]')
      await page.waitForSelector('#token')
    }),
  },
]
