import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { forgive, openPage, settle, signedIn, signIn, visit, type Watched } from '../browser.ts'
import { startEvilUpstream } from '../evil-upstream.ts'
import { pagesOf } from '../pages.ts'
import { startRig } from '../rig.ts'
import type { Trial } from '../trials.ts'

/** Texts that would run as code, or leave an attribute or a cell, if they were not escaped. */
const markup = [
  '<img src=x onerror=alert(1)>',
  '"><script>alert(2)</script>',
  "'-alert(3)-'",
  'javascript:alert(4)',
  '</title><svg onload=alert(5)>',
  '{{constructor.constructor("alert(6)")()}}',
  '\u202eevil\u2066',
]

export const markupTrials: readonly Trial[] = [
  {
    name: 'markup: in names of accounts, labels, references, models, upstreams and addresses it is a text',
    async run() {
      const model = 'm"><img src=x onerror=alert(7)>'
      const rig = await startRig({
        models: [
          { id: model, wire: 'messages', prices: { input: '3', cache_read: '0.3', cache_write: '3.75', output: '15' } },
        ],
      })
      const ids: string[] = []
      const keys: string[] = []
      // The last text has hidden characters, which no field accepts.
      const taken = markup.slice(0, -1)
      for (const [at, name] of taken.entries()) {
        const { id, key } = await rig.makeAccount(name)
        await rig.books.createKey(id, { label: taken[(at + 1) % taken.length]! })
        await rig.books.credit(id, 1_000_000_000n, taken[(at + 2) % taken.length]!)
        await rig.ask(key, at === 0 ? model : 'reasoner')
        await rig.ask(key, '<b>no model</b>')
        ids.push(id)
        keys.push((await rig.books.listKeys(id)).at(-1)!.id)
      }
      // Earlier releases accepted them in names, so the name is written into the store.
      const { id } = await rig.makeAccount('earlier')
      ids.push(id)
      const store = new DatabaseSync(rig.storePath)
      store.prepare('UPDATE accounts SET name = ? WHERE id = ?').run(markup.at(-1)!, id)
      store.close()
      const view = await openPage(rig)
      const { page, faults } = view
      await signIn(view, rig, rig.admin)
      const visits = [
        ...pagesOf({ account: ids[0]!, key: keys[0]! }),
        ...ids.slice(1).map((id) => `accounts/${id}`),
        ...keys.slice(1).map((id) => `keys/${id}`),
        `models/${encodeURIComponent(model)}`,
        `requests?account=${encodeURIComponent(markup[0]!)}&model=${encodeURIComponent(model)}`,
        `?by=account&only=${encodeURIComponent(ids[0]!)}`,
        `${encodeURIComponent(markup[0]!)}/${encodeURIComponent(markup[1]!)}`,
        `setup/${encodeURIComponent(markup[0]!)}`,
        `audit?actor=${encodeURIComponent(markup[0]!)}`,
      ]
      for (const path of visits) {
        await visit(view, rig, path)
        assert.equal(await countStrange(view), 0, path)
      }
      await visit(view, rig, 'accounts')
      for (const name of markup.slice(0, 6)) assert.ok((await page.textContent('table'))!.includes(name), name)
      // Some of the addresses name nothing, and the API answers 400 or 404.
      forgive(faults, /status of (400|404)/)
      await view.close()
      await rig.close()
      return [`${visits.length} addresses: no dialog, no element of theirs, no breach of the policy`]
    },
  },
  {
    name: 'markup: in what an upstream answers, refuses and fails with it is a text',
    async run() {
      const upstream = await startEvilUpstream(markup)
      const prices = { input: '3', cache_read: '0.3', cache_write: '3.75', output: '15' }
      const ways = ['answers', 'refuses', 'fails', 'cuts']
      const rig = await startRig({
        models: ways.map((way) => ({ id: way, wire: 'chat', upstream_model: `up-${way}`, prices })),
        upstreamUrl: upstream.url,
      })
      const { id } = await rig.makeAccount('acme')
      const view = await openPage(rig)
      const { page, faults } = view
      await signIn(view, rig, rig.admin)
      let looks = 0
      const look = async (what: string) => {
        looks++
        assert.equal(await countStrange(view), 0, what)
      }
      const requests: string[] = []
      for (const way of ways)
        for (const wire of ['messages', 'chat', 'responses'])
          for (const isStream of [true, false]) {
            const what = `${way}, ${wire}, ${isStream ? 'stream' : 'whole'}`
            await visit(view, rig, `playground?model=${way}&wire=${wire}&account=${id}`)
            if (!isStream) await page.uncheck('text=as a stream')
            await page.click('text="Send"')
            // The cost of an answer is shown when it is over.
            await page.waitForSelector('.results h2:text("Usage and cost")')
            await settle(page)
            const href = await page.getAttribute('.results a[href*="/requests/"]', 'href')
            requests.push(href!.split('/').at(-1)!)
            const shown = (await page.textContent('.results'))!
            if (way !== 'fails')
              assert.ok(shown.includes('onerror=alert(1)'), `${what}: the text itself is there: ${shown}`)
            await look(what)
          }
      for (const request of requests) {
        await visit(view, rig, `requests/${request}`)
        await look(`requests/${request}`)
      }
      for (const path of [
        '',
        'requests',
        'upstreams',
        'upstreams/sim',
        'models',
        'models/fails',
        `accounts/${id}`,
        'audit',
      ]) {
        await visit(view, rig, path)
        await look(path)
      }
      // The browser logs the refusals of the models.
      forgive(faults, /status of (400|429|5\d\d)/)
      await view.close()
      await rig.close()
      upstream.close()
      return [`${requests.length} answers, ${looks} pages: no dialog, no element of theirs, no breach of the policy`]
    },
  },
  {
    name: 'markup: a name of 90 letters without a blank fits into every page and dialog at 360 px',
    run: signedIn({ as: 'admin' }, async ({ rig, view, page }) => {
      const { id } = await rig.makeAccount('a'.repeat(90))
      const key = await rig.books.createKey(id, { label: 'k'.repeat(90) })
      await page.setViewportSize({ width: 360, height: 740 })
      const over = (selector: string) =>
        page.evaluate(
          `(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('${selector}'))`,
        )
      for (const [path, acts] of [
        [`accounts/${id}`, ['Credit', 'Rename', 'Suspend', 'New key']],
        [`keys/${key.id}`, ['Edit', 'Rotate', 'Revoke']],
        ['accounts', []],
        ['keys', []],
        [`requests?account=${id}&key=${key.id}`, []],
        ['finance', []],
        ['audit', []],
      ] as const) {
        await visit(view, rig, path)
        assert.equal(await over('html'), 0, path)
        for (const act of acts) {
          await page.click(`main button:has-text("${act}")`)
          assert.equal(await over('dialog'), 0, act)
          await page.keyboard.press('Escape')
        }
      }
    }),
  },
]

async function countStrange({ page }: Watched): Promise<number> {
  return Number(
    await page.evaluate(
      `document.querySelectorAll('img, script:not([src]), iframe, object, svg[onload], [onerror], a[href^="javascript:"]').length`,
    ),
  )
}
