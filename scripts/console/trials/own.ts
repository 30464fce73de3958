import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import { tellCredits } from '../../../console/src/pure/format.ts'
import { until } from '../../../test/support/waiting.ts'
import { findBarriers, forgive, openPage, settle, signIn, tableOver, visit } from '../browser.ts'
import { type Rig, type RigOptions, startRig } from '../rig.ts'
import type { Trial } from '../trials.ts'

/** The pixels by which a page is wider than its window. */
const widthOver = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'

/** The pages of the owner of a key, with the id of one request. */
const pagesOf = (request: string) => [
  '',
  'requests',
  `requests/${request}`,
  'models',
  'playground',
  'setup/claude-code',
]

/** A gateway with own pages, whose console is that of the listener of clients. */
async function startOwnRig(options: RigOptions = {}): Promise<Rig> {
  const rig = await startRig({ ownPages: true, creditName: 'EUR', ...options })
  return { ...rig, adminUrl: rig.url }
}

const focused = (page: Page) => page.evaluate('document.activeElement?.textContent')

/** Presses Tab until an element has the focus. */
async function tabTo(page: Page, selector: string): Promise<void> {
  for (let presses = 0; presses < 60; presses++) {
    await page.keyboard.press('Tab')
    if (await page.evaluate(`document.activeElement.matches(${JSON.stringify(selector)})`)) return
  }
  assert.fail(`no Tab leads to ${selector}`)
}

export const ownTrials: readonly Trial[] = [
  {
    name: 'own pages: by the keyboard alone an owner signs in, finds out why a request was refused, and tries a model',
    async run() {
      const rig = await startOwnRig()
      const { id, key } = await rig.makeAccount('acme', '0.1')
      await rig.makeAccount('globex')
      await rig.ask(key, 'writer-mini')
      await rig.ask(key, 'dear')
      assert.equal(await rig.ask(key, 'writer-mini'), 402)
      const view = await openPage(rig)
      const { page } = view
      await page.goto(`${rig.url}/console/`)
      await page.waitForSelector('#token')
      assert.equal(await page.textContent('label[for=token]'), 'API key')
      // The field has the focus from the start.
      await page.keyboard.type(key)
      await page.keyboard.press('Enter')
      await page.waitForSelector('h2:text("acme")')
      await settle(page)
      assert.deepEqual(await page.locator('nav.rail li a').allTextContents(), [
        ...['Overview', 'Requests', 'Models', 'Playground', 'Set up'],
      ])
      const words = await page.locator('main').innerText()
      assert.match(words, /\bEUR\b/)
      assert.doesNotMatch(words, /(?<!insufficient )\bcredits\b/, words)
      // The figure of the month equals the ledger, which has one account with one key, and only entries of this month.
      const spent = (await rig.books.listEntries({ accountId: id, limit: 9 })).filter(({ kind }) => kind === 'debit')
      const nanos = spent.reduce((sum, { amountNanos }) => sum + amountNanos, 0n)
      const month = page.locator('.tile', { hasText: /\s20\d\d, 3 requests$/ })
      assert.equal(await month.locator('.figure').innerText(), tellCredits(nanos))
      const [cookie] = await page.context().cookies()
      assert.deepEqual([cookie!.name, cookie!.secure, cookie!.httpOnly], ['__Host-triwire-own', true, true])
      await page.keyboard.press('?')
      await page.waitForSelector('dialog >> text=next row')
      assert.equal(await page.locator('dialog >> text=find an account').count(), 0, 'owners have no search')
      await page.keyboard.press('Escape')
      await page.keyboard.press('g')
      await page.keyboard.press('r')
      await page.waitForSelector('tr[data-row]')
      await settle(page)
      await page.keyboard.press('j')
      const row = await focused(page)
      await page.keyboard.press('Enter')
      await page.waitForSelector('.explain >> text=The account has no credit left.')
      await page.waitForSelector('.explain >> text=not read: the request ended before that')
      await page.waitForSelector('.explain >> text=Ask the operator of the gateway to add credit.')
      await page.waitForSelector('.explain >> text=credits left: add credit and try again')
      await page.keyboard.press('Escape')
      await page.waitForSelector('.explain', { state: 'detached' })
      assert.equal(await focused(page), row, 'the focus returns to the row')
      await rig.books.credit(id, 10_000_000_000n, 'more')
      // The credit was not booked by the server, so the server notices it a moment later.
      await until(async () => (await rig.ask(key, 'writer-mini')) === 200)
      await page.keyboard.press('g')
      await page.keyboard.press('p')
      await page.waitForSelector('.composer')
      await settle(page)
      assert.equal(await page.evaluate('document.activeElement.id'), 'main', 'the focus is at the new page')
      await tabTo(page, '.composer button[type=submit]')
      await page.keyboard.press('Enter')
      await page.waitForSelector('.results .answer-text')
      await page.waitForSelector('.panel:has(h2:text-is("Usage and cost")) >> text=tokens')
      await settle(page)
      assert.equal(await page.locator('text=globex').count(), 0)
      assert.equal(await focused(page), 'Send', 'the focus stays with the button')
      await tabTo(page, '.results a')
      await page.keyboard.press('Enter')
      await page.waitForSelector('.explain dd >> text=ok')
      const { keyId } = (await rig.books.listEntries({ accountId: id, limit: 1 }))[0]!.bill!
      assert.equal(keyId, (await rig.books.listKeys(id))[0]!.id)
      await page.keyboard.press('Escape')
      await tabTo(page, '[aria-label^="Sign out"]')
      await page.keyboard.press('Enter')
      await page.waitForSelector('text=You are signed out.')
      assert.equal(await page.evaluate('document.activeElement.id'), 'token')
      assert.deepEqual(await page.context().cookies(), [])
      await view.close()
      await rig.close()
    },
  },
  {
    name: 'own pages: axe finds no barrier on any page, light and dark, and nothing is wider than 360 px',
    async run() {
      const rig = await startOwnRig()
      const { key } = await rig.makeAccount('acme')
      await rig.ask(key, 'reasoner')
      await rig.ask(key, 'nothing')
      const list = await fetch(`${rig.url}/console/api/requests`, { headers: { authorization: `Bearer ${key}` } })
      const [request] = ((await list.json()) as { items: { request_id: string }[] }).items
      for (const theme of ['light', 'dark'] as const) {
        const view = await openPage(rig, { theme })
        await visit(view, rig, '')
        assert.deepEqual(await findBarriers(view), [], 'sign-in')
        await view.page.fill('#token', key)
        await view.page.keyboard.press('Enter')
        await view.page.waitForSelector('.frame')
        for (const path of pagesOf(request!.request_id)) {
          await visit(view, rig, path)
          assert.deepEqual(await view.page.locator('.failure').allTextContents(), [], path)
          for (const width of [1440, 360]) {
            await view.page.setViewportSize({ width, height: 800 })
            // Nobody scrolls sideways to see what a request cost.
            if (path === '' || path === 'requests')
              assert.equal(await view.page.evaluate(tableOver), 0, `${path} ${width}`)
            // Tables and plots take the new width a frame later.
            await until(async () => (await view.page.evaluate(widthOver)) === 0, `${path} fits ${width} px`)
            assert.deepEqual(await findBarriers(view), [], `${path} at ${width} px, ${theme}`)
          }
        }
        await view.close()
      }
      await rig.close()
    },
  },
  {
    name: 'own pages: a wrong key and the token of an operator are refused in words, and the field keeps the focus',
    async run() {
      const rig = await startOwnRig()
      const view = await openPage(rig)
      const { page } = view
      await page.goto(`${rig.url}/console/requests`)
      await page.waitForSelector('#token')
      for (const token of ['sk-tri-wrong', rig.admin]) {
        await page.fill('#token', token)
        await Promise.all([page.waitForResponse(/\/session$/), page.keyboard.press('Enter')])
        await page.waitForSelector('text=This is no key, or no longer. Operators sign in on the admin listener.')
        assert.equal(await page.evaluate('document.activeElement.id'), 'token')
      }
      forgive(view.faults, /401/)
      const { key } = await rig.makeAccount('acme')
      await page.fill('#token', key)
      await page.keyboard.press('Enter')
      // The address that was asked for is shown after signing in.
      await page.waitForSelector('text=No request is listed yet.')
      await view.close()
      await rig.close()
    },
  },
  {
    name: 'own pages: a key that may use a model only by another name tries it by that name',
    async run() {
      const prices = { input: '3', cache_read: '0.3', cache_write: '3.75', output: '15' }
      const rig = await startOwnRig({ models: [{ id: 'large', also: ['best'], wire: 'chat', prices }] })
      const { id } = await rig.makeAccount('acme')
      const { key } = await rig.books.createKey(id, { label: 'ci', models: ['best'] })
      const view = await openPage(rig)
      const { page } = view
      await signIn(view, rig, key!)
      await visit(view, rig, 'models')
      await page.click('[aria-label="Try best"]')
      await page.waitForSelector('.composer')
      await settle(page)
      assert.deepEqual(await page.getByLabel('Model', { exact: true }).locator('option').allTextContents(), ['best'])
      await page.click('text="Send"')
      await page.waitForSelector('.panel .unit:has-text("status 200")')
      await page.waitForSelector('.panel:has(h2:text-is("Usage and cost")) >> text=tokens')
      await view.close()
      await rig.close()
    },
  },
  {
    name: 'own pages: a lead ends a session by the keyboard, and finds out why a request of a person was refused',
    async run() {
      const rig = await startOwnRig()
      const { books } = rig
      const { id: account } = await rig.makeAccount('acme')
      const ada = await signInAgent(rig, account, 'Ada')
      const bo = await signInAgent(rig, account, 'Bo')
      const { key } = await books.createKey(account, { person: bo, models: ['reasoner'], label: 'ci' })
      await rig.ask(key!, 'reasoner')
      await rig.ask(key!, 'coder')
      const { id: keyId } = await books.createKey(account, { person: ada, label: 'console' })
      const { token } = await books.signInPerson({ personId: ada, role: 'lead', keyId })
      const view = await openPage(rig)
      const { page } = view
      const cookie = { name: '__Host-triwire-own', value: token, path: '/', secure: true, httpOnly: true }
      const { hostname } = new URL(rig.url)
      await page.context().addCookies([{ ...cookie, domain: hostname, sameSite: 'Strict' }])
      await page.goto(`${rig.url}/console/?signed-in=1`)
      await page.waitForSelector('h2:text("acme")')
      await settle(page)
      assert.equal(new URL(page.url()).search, '')
      assert.deepEqual(await page.locator('nav.rail li a').allTextContents(), [
        ...['Overview', 'Requests', 'People', 'Models', 'Playground', 'Set up', 'Sessions'],
      ])
      assert.match((await page.textContent('.signed-in'))!, /Ada\s*lead/)
      await page.waitForSelector('h2:text("This session")')
      const facts = await page.locator('.facts dt').allTextContents()
      assert.equal(new Set(facts).size, facts.length, `${facts}`)
      for (const path of ['people', 'requests?whose=all', 'sessions']) {
        await visit(view, rig, path)
        for (const width of [1440, 360]) {
          await page.setViewportSize({ width, height: 800 })
          assert.equal(
            await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
            0,
            `${path} at ${width} px`,
          )
          assert.deepEqual(await findBarriers(view), [], `${path} at ${width} px`)
        }
        await page.setViewportSize({ width: 1440, height: 900 })
      }
      await visit(view, rig, 'setup/claude-code')
      await page.waitForSelector('.note >> text=You have signed in, so you need no key')
      await page.waitForSelector('code:text-matches("^triwire setup claude-code --login --url http://[^ ]+ --write$")')
      await visit(view, rig, 'sessions')
      // The session of Ada's program.
      await tabTo(page, '[aria-label="End the session of claude code"]')
      await page.keyboard.press('Enter')
      await page.waitForSelector('dialog[open]')
      assert.deepEqual(await findBarriers(view), [])
      await page.keyboard.press('Escape')
      await page.waitForSelector('dialog[open]', { state: 'detached' })
      assert.equal(await focused(page), 'End', 'the focus returns to the button')
      await page.keyboard.press('Enter')
      await tabTo(page, 'dialog button[type=submit]')
      await page.keyboard.press('Enter')
      await page.waitForSelector('text=You are signed in nowhere else.')
      assert.equal(await page.evaluate('document.activeElement.id'), 'main', 'the focus is at the page')
      await page.keyboard.press('g')
      await page.keyboard.press('e')
      await page.waitForSelector('td >> text=Bo')
      await settle(page)
      const byModel = page.locator('[aria-label="By model"] tbody tr')
      assert.match((await byModel.allTextContents()).join(), /^reasoner100\.0.*,no model110$/)
      const choose = async (label: string) => {
        await page.selectOption('main select', { label })
        await settle(page)
      }
      await choose('Ada')
      await page.waitForSelector('text=There was no request in this time.')
      await choose('Bo')
      assert.equal(await byModel.count(), 2)
      assert.equal(new URL(page.url()).searchParams.get('whose'), bo)
      await choose('of all people')
      // Bo has spent, and Ada has not, so Bo is first.
      await page.keyboard.press('j')
      assert.equal(await focused(page), 'Bo')
      await page.keyboard.press('Enter')
      await page.waitForSelector('td >> text=model not found')
      await settle(page)
      await page.keyboard.press('j')
      await page.keyboard.press('Enter')
      await page.waitForSelector('.explain >> text=There is no such model, or this key may not name it.')
      await view.close()
      await rig.close()
    },
  },
]

/** Signs a person in on a machine. @returns the id of the person */
async function signInAgent({ books }: Rig, account: string, name: string): Promise<string> {
  const { id, code } = await books.beginGrant({ kind: 'device', agent: 'claude_code', address: '192.0.2.9' })
  const whose = { issuer: 'https://idp.example', subject: name, name, account, role: 'member' } as const
  const { personId } = await books.decideGrant(id, whose)
  await books.pollGrant(code, { accessMs: 3_600_000, idleMs: 30 * 86_400_000, absoluteMs: 90 * 86_400_000 })
  return personId!
}
