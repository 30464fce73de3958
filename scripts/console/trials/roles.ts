import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { until } from '../../../test/support/waiting.ts'
import { findBarriers, openPage, settle, signedIn, signIn, tableOver, visit } from '../browser.ts'
import { pagesOf } from '../pages.ts'
import { startRig } from '../rig.ts'
import type { Trial } from '../trials.ts'

/** The texts of all buttons that change something. */
const acts = /^(New |Credit$|Limits$|Rename|Suspend|Edit|Rotate|Revoke|Disable|Enable|Retry now|Send$)/

/** The sentence by which a viewer learns what is missing: by the first part of a path, with a slash for one object. */
const lacks: Readonly<Record<string, string>> = {
  accounts: 'Only admins can make accounts.',
  'accounts/': 'Only admins can credit, limit, rename and suspend accounts.',
  keys: 'Only admins can make keys.',
  'keys/': 'Only admins can edit, rotate and revoke keys.',
  upstreams: 'Only admins can retry, disable and enable upstreams.',
  'upstreams/': 'Only admins can retry, disable and enable upstreams.',
  playground: 'an operator with the role admin may send them',
  operators: 'Only admins can make and revoke operators.',
}

export const roleTrials: readonly Trial[] = [
  {
    name: 'roles: a viewer of an empty gateway is not offered to make an account, not even by an address',
    run: signedIn({ as: 'viewer' }, async ({ rig, view, page }) => {
      await visit(view, rig, '')
      await page.waitForSelector('main >> text=No request was billed in this time')
      assert.equal(await page.locator('main >> text=Make an account').count(), 0)
      await visit(view, rig, 'accounts?new=1')
      await page.waitForSelector('main >> text=There is no account yet')
      assert.equal(await page.locator('dialog').count(), 0)
    }),
  },
  {
    name: 'roles: a viewer sees every page and is offered nothing that he may not do',
    run: signedIn({ as: 'viewer' }, async ({ rig, view }) => {
      const { id, key } = await rig.makeAccount('acme')
      await rig.ask(key, 'reasoner')
      const [row] = await rig.books.listKeys(id)
      for (const path of pagesOf({ account: id, key: row!.id })) {
        await visit(view, rig, path)
        assert.deepEqual(await view.page.locator('.failure').allTextContents(), [], path)
        const offered = await view.page.locator('main button').allTextContents()
        assert.deepEqual(
          offered.filter((text) => acts.test(text.trim())),
          [],
          path,
        )
        const [start = '', one] = path.split('/')
        const lacking = lacks[one ? `${start}/` : start]
        if (lacking) await view.page.waitForSelector(`main >> text=${lacking}`)
      }
      for (const width of [1440, 375]) {
        await view.page.setViewportSize({ width, height: 800 })
        const name = view.page.locator('.signed-in')
        assert.ok(await name.isVisible(), `${width}`)
        assert.match((await name.innerText()).replaceAll(/\s+/g, ' '), /vic viewer$/)
        assert.equal(
          await view.page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
          0,
        )
      }
      assert.deepEqual(await findBarriers(view), [])
    }),
  },
  {
    name: 'roles: signing out keeps the theme, and the cookies of other applications',
    run: signedIn({ as: 'viewer' }, async ({ page }) => {
      await page.context().addCookies([{ name: 'other', value: '1', domain: '127.0.0.1', path: '/' }])
      await page.click('[aria-label^="Colours"]')
      const theme = await page.getAttribute('html', 'data-theme')
      // A request of the page that is answered after the sign-out gets 401, which the browser prints.
      await settle(page)
      await page.click('[aria-label^="Sign out"]')
      await page.waitForSelector('.sign-in')
      assert.deepEqual(
        (await page.context().cookies()).map(({ name }) => name),
        ['other'],
      )
      await page.reload()
      await page.waitForSelector('.sign-in')
      assert.equal(await page.getAttribute('html', 'data-theme'), theme)
      assert.notEqual(theme, 'auto')
    }),
  },
  {
    name: 'roles: a tab shows nothing of an admin who signed out in another tab, and the pages of the owner who signs in there',
    run: signedIn({ as: 'admin' }, async ({ rig, page }) => {
      await rig.makeAccount('acme')
      const { key } = await rig.makeAccount('globex')
      const other = await page.context().newPage()
      await other.goto(`${rig.adminUrl}/console/accounts`)
      await other.waitForSelector('main >> text=acme')
      await page.click('[aria-label^="Sign out"]')
      await other.waitForSelector('.sign-in >> text=You are signed out.')
      await page.fill('#token', key)
      await page.keyboard.press('Enter')
      await page.waitForSelector('.frame')
      await other.waitForSelector('.signed-in >> text=globex')
      assert.equal(await other.locator('text=acme').count(), 0)
      await other.close()
      await settle(page)
    }),
  },
  {
    name: 'roles: finance sees the bill of every account, to its keys and models, and no other page',
    run: signedIn({ as: 'finance' }, async ({ rig, view }) => {
      const { page } = view
      const { key } = await rig.makeAccount('acme')
      const other = await rig.makeAccount('globex')
      for (const model of ['reasoner', 'writer-mini']) await rig.ask(key, model)
      await rig.ask(other.key, 'reasoner')
      await visit(view, rig, '')
      assert.deepEqual(await page.locator('nav.rail li a').allTextContents(), ['Finance'])
      const names = () => page.locator('main tbody tr a').allTextContents()
      const total = async () => (await page.textContent('main tfoot'))!.replaceAll(/\s+/g, '')
      assert.deepEqual(await names(), ['acme', 'globex'])
      assert.match(await total(), /^Total0\.\d+100\.03\d+$/)
      assert.deepEqual(await findBarriers(view), [])
      const [saved] = await Promise.all([page.waitForEvent('download'), page.click('[aria-label="This table as CSV"]')])
      const lines = readFileSync(await saved.path(), 'utf8')
        .trim()
        .split('\r\n')
      assert.deepEqual(
        lines.map((line) => line.split(',')[0]),
        ['account', 'acme', 'globex', 'total'],
      )
      // A row leads to its parts by the keyboard: account, key, model.
      for (const [link, parts] of [
        ['acme', ['laptop']],
        ['laptop', ['reasoner', 'writer-mini']],
      ] as const) {
        await page.focus(`main tbody a:text("${link}")`)
        await page.keyboard.press('Enter')
        await settle(page)
        const shown = await names()
        assert.deepEqual(
          shown.map((name) => name.replace(/ \(sk-tri-.*\)$/, '')),
          parts,
        )
      }
      assert.match(await total(), /^Total0\.\d+100\.02\d+$/)
      const [paper] = await Promise.all([page.waitForEvent('download'), page.click('text=Statement')])
      const statement = readFileSync(await paper.path(), 'utf8')
      assert.match(statement, /<!doctype html>.*acme.*triwire statement /is)
      const printed = await page.context().newPage()
      // A4 less usual margins, at 96 px an inch: nothing is cut off on paper.
      await printed.setViewportSize({ width: 718, height: 1000 })
      await printed.emulateMedia({ media: 'print' })
      await printed.setContent(statement)
      assert.equal(
        await printed.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
        0,
      )
      await printed.close()
      const fields = new URL(page.url()).searchParams
      assert.deepEqual([fields.get('account'), fields.get('by')], ['acme', 'model'])
      assert.match(fields.get('key')!, /^sk-tri-/)
      await page.click('[aria-label="Month before"]')
      await settle(page)
      await page.waitForSelector('text=Nothing was spent in')
      await page.goBack()
      await settle(page)
      assert.deepEqual(await names(), ['reasoner', 'writer-mini'])
      for (const width of [1440, 375]) {
        await page.setViewportSize({ width, height: 800 })
        assert.equal(
          await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
          0,
        )
        assert.deepEqual(await findBarriers(view), [])
      }
      // The bill of a person leads to its parts too, and the most expensive row is first.
      const { id: person } = await rig.books.createPerson({ name: 'Ada' })
      const owned = await rig.books.createKey(other.id, { label: 'ada', person })
      await rig.ask(owned.key!, 'reasoner')
      await visit(view, rig, 'finance?by=person')
      await page.waitForSelector('th[aria-sort=descending] >> text=Spent')
      await page.setViewportSize({ width: 1440, height: 800 })
      await page.click('main tbody a:text("Ada")')
      await settle(page)
      assert.deepEqual(
        (await names()).map((name) => name.replace(/ \(sk-tri-.*\)$/, '')),
        ['ada'],
      )
      await visit(view, rig, 'accounts')
      await page.waitForSelector('text=This page is for other operators.')
    }),
  },
  {
    name: 'roles: the bill by key names the account of each key, and each saved table names its account',
    run: signedIn({ as: 'finance' }, async ({ rig, view, page }) => {
      for (const name of ['acme', 'globex AG']) await rig.ask((await rig.makeAccount(name)).key, 'reasoner')
      const save = async () => {
        const [saved] = await Promise.all([page.waitForEvent('download'), page.click('[aria-label$="as CSV"]')])
        const lines = readFileSync(await saved.path(), 'utf8')
          .trim()
          .split('\r\n')
        const month = /^usage-\d{4}-\d\d-/
        assert.match(saved.suggestedFilename(), month)
        return [saved.suggestedFilename().replace(month, ''), ...lines.map((line) => line.split(',')[0])]
      }
      await visit(view, rig, 'finance?by=key')
      assert.deepEqual(await page.locator('main tbody td:nth-child(2)').allTextContents(), ['acme', 'globex AG'])
      assert.deepEqual(await findBarriers(view), [])
      assert.deepEqual(await save(), ['by-key.csv', 'account', 'acme', 'globex AG', 'total'])
      await visit(view, rig, 'finance?by=key&account=globex+AG')
      assert.deepEqual(await save(), ['account-globex-AG-by-key.csv', 'account', 'globex AG', 'total'])
      const { id } = await rig.makeAccount('initech', '90000')
      const long = await rig.books.createKey(id, { label: 'continuous integration of the northern office' })
      await until(async () => (await rig.ask(long.key, 'dear')) === 200)
      await page.setViewportSize({ width: 390, height: 844 })
      await visit(view, rig, 'finance?by=key')
      await page.waitForSelector('text=continuous')
      assert.equal(await page.evaluate(tableOver), 0, 'no column is cut off on a phone')
    }),
  },
  {
    name: 'roles: the owner of a key sees balance, spend, limits, models without prices, settings, and nothing else',
    async run() {
      const rig = await startRig()
      const { key } = await rig.makeAccount('acme', '25')
      await rig.makeAccount('globex')
      await rig.ask(key, 'reasoner')
      const view = await openPage(rig)
      const { page } = view
      const asked = new Set<string>()
      page.on('request', (request) => {
        const { pathname } = new URL(request.url())
        if (pathname.startsWith('/api/')) asked.add(pathname.replace(/^(\/api\/v1(\/me)?\/\w+).*/, '$1'))
      })
      await signIn(view, rig, key)
      await page.waitForSelector('h2:text("acme")')
      await settle(page)
      assert.match((await page.textContent('.tiles'))!, /24\.99|25\.00/)
      const links = await page.locator('nav.rail li a').allTextContents()
      assert.deepEqual(links, ['Overview', 'Requests', 'Models', 'Playground', 'Set up'])
      await page.click('nav.rail >> text=Models')
      await page.waitForSelector('td >> text=reasoner')
      await page.click('nav.rail >> text=Set up')
      await settle(page)
      await visit(view, rig, 'accounts')
      await page.waitForSelector('text=This page is for operators.')
      assert.ok(!(await page.content()).includes('globex'))
      assert.deepEqual([...asked].sort(), [
        ...['/api/v1/me', '/api/v1/me/models', '/api/v1/me/requests', '/api/v1/me/usage'],
        ...['/api/v1/session', '/api/v1/setup'],
      ])
      await view.close()
      await rig.close()
    },
  },
]
