import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import { until } from '../../../test/support/waiting.ts'
import { findBarriers, forgive, openPage, settle, signedIn, signIn, tableOver, visit } from '../browser.ts'
import { type Rig, startRig } from '../rig.ts'
import type { Trial } from '../trials.ts'

/** The texts of a column, by its heading, without those of hidden columns. */
async function column(page: Page, head: string): Promise<string[]> {
  const heads = (await page.locator('.table thead th').allInnerTexts()).map((text) =>
    text.replaceAll(/\s+/g, ' ').replace(/ ?[↑↓]?$/, ''),
  )
  const at = heads.findIndex((text) => text === head || text.startsWith(`${head} `))
  assert.ok(at >= 0, `${head} is one of ${heads.join(', ')}`)
  return page.locator(`.table tbody tr[data-row] td:nth-child(${at + 1})`).allInnerTexts()
}

/** Presses a heading with the keyboard, and waits until the rows are sorted. */
async function press(page: Page, head: string): Promise<string | null> {
  const heading = page.locator(`.table thead th:has(button:text-matches("^${head}"))`).first()
  await heading.locator('button').focus()
  await page.keyboard.press('Enter')
  await settle(page)
  return heading.getAttribute('aria-sort')
}

/** Chooses the first object that a search field finds, by keyboard. */
async function pick(page: Page, label: string, text: string): Promise<void> {
  await page.getByLabel(label, { exact: true }).focus()
  await page.keyboard.type(text)
  await page.keyboard.press('Enter')
  await page.waitForSelector('.pick-list', { state: 'detached' })
  await settle(page)
}

const long = 'an-account-with-a-name-as-long-as-people-make-them (Łódź, contractor)'

async function fill(rig: Rig): Promise<{ id: string; keys: string[] }> {
  const { id, key } = await rig.makeAccount(long)
  const other = await rig.makeAccount('globex')
  for (const model of ['reasoner', 'writer-mini', 'dear', 'coder']) await rig.ask(key, model)
  await rig.ask(other.key, 'reasoner')
  await rig.ask(other.key, 'no such model')
  await rig.ask('sk-tri-wrong', 'reasoner')
  return { id, keys: [key, other.key] }
}

const requestTrial: Trial = {
  name: 'lists: requests are filtered by key, upstream and status, sorted by cost and times, and saved as CSV, by keyboard alone',
  run: signedIn({ as: 'admin' }, async ({ rig, view, page, faults }) => {
    await fill(rig)
    await visit(view, rig, 'requests')
    assert.equal(await page.locator('tr[data-row]').count(), 7)
    for (const [label, value, count] of [
      ['Status', '404', 1],
      ['Status', '401', 1],
      ['Upstream', 'sim', 5],
      ['Ended', 'refused', 2],
      ['Model', 'reasoner', 2],
    ] as const) {
      await page.getByLabel(label, { exact: true }).selectOption(value)
      await settle(page)
      await page.waitForSelector(`table[aria-rowcount="${count + 1}"]`)
      await page.getByLabel(label, { exact: true }).selectOption('')
      await page.waitForSelector('table[aria-rowcount="8"]')
    }
    await pick(page, 'Any account', 'globex')
    await page.waitForSelector('table[aria-rowcount="3"]')
    await pick(page, 'Any key', 'lap')
    await page.waitForSelector('table[aria-rowcount="3"]')
    assert.match(page.url(), /account=acct_.*key=key_/)
    // An emptied field ends its filter.
    for (const label of ['Any account', 'Any key']) {
      await page.getByLabel(label, { exact: true }).focus()
      await page.keyboard.press('Delete')
      await page.keyboard.press('Enter')
    }
    await page.waitForSelector('table[aria-rowcount="8"]')
    await page.setViewportSize({ width: 375, height: 700 })
    assert.equal(
      await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
      0,
      'at 375 px',
    )
    assert.deepEqual(await findBarriers(view), [])
    await page.setViewportSize({ width: 1440, height: 900 })
    assert.equal(await press(page, 'Cost'), 'descending')
    assert.match((await column(page, 'Model'))[0]!, /dear/)
    assert.deepEqual((await column(page, 'Cost')).slice(-2), ['–', '–'], 'requests without a price are last')
    assert.equal(await press(page, 'Cost'), 'ascending')
    assert.equal((await column(page, 'Model')).indexOf('dear'), 4)
    assert.equal(await press(page, 'Cost'), null)
    assert.equal(await press(page, 'Total'), 'descending')
    assert.match(page.url(), /sort=-total_ms/)
    assert.equal(await press(page, 'Account'), 'ascending')
    const accounts = await column(page, 'Account')
    assert.deepEqual([...new Set(accounts)], [long, 'globex', '–'])
    const [saved] = await Promise.all([page.waitForEvent('download'), page.click('[aria-label="Requests as CSV"]')])
    const stream = await saved.createReadStream()
    let text = ''
    for await (const piece of stream) text += piece
    assert.equal(text.trimEnd().split('\r\n').length, 8)
    await page.click('tr[data-row] >> nth=0')
    await page.waitForSelector('.explain .steps')
    for (const width of [1440, 1280, 1100]) {
      await page.setViewportSize({ width, height: 900 })
      const cut = await page.evaluate(
        `(() => { const frame = document.querySelector('.first .table-frame'); return frame.scrollWidth - frame.clientWidth })()`,
      )
      assert.equal(cut, 0, `columns are cut at ${width} px`)
    }
    assert.ok(await page.locator('.first th:has-text("Cost")').isVisible())
    assert.deepEqual(await findBarriers(view), [])
    forgive(faults, /status of (404)/)
  }),
}

const tailTrial: Trial = {
  name: 'lists: requests that ended while the list did not follow them are there when it follows again',
  run: signedIn({ as: 'viewer' }, async ({ rig, view, page }) => {
    const { key } = await rig.makeAccount('acme')
    await rig.ask(key, 'reasoner')
    await visit(view, rig, 'requests')
    await page.waitForSelector('table[aria-rowcount="2"]')
    await rig.ask(key, 'coder')
    await page.waitForSelector('table[aria-rowcount="3"]')
    await page.uncheck('text=as they end')
    await rig.ask(key, 'writer-mini')
    await page.check('text=as they end')
    await page.waitForSelector('table[aria-rowcount="4"]')
    await rig.ask(key, 'dear')
    await page.waitForSelector('table[aria-rowcount="5"]')
    assert.deepEqual(await column(page, 'Model'), ['dear', 'writer-mini', 'coder', 'reasoner'])
  }),
}

const liveTrial: Trial = {
  name: 'lists: a long list of accounts keeps its length while balances change, and is not loaded for each change',
  run: signedIn({ as: 'viewer' }, async ({ rig, view, page }) => {
    const { key } = await rig.makeAccount('first')
    for (let at = 0; at < 60; at++) await rig.books.createAccount(`team-${at}`)
    let asked = 0
    page.on('request', (request) => {
      if (request.url().includes('/accounts?')) asked++
    })
    await visit(view, rig, 'accounts')
    await page.waitForSelector('.frame >> text=Live')
    const balance = page.locator('tr[data-row]:has-text("first") td:nth-child(3)')
    const lasts = async () => {
      const before = await balance.innerText()
      await rig.ask(key, 'dear')
      await until(async () => (await balance.innerText()) !== before)
    }
    await until(async () => {
      await page.evaluate('window.scrollTo(0, 1e6)')
      return (await page.getAttribute('.table', 'aria-rowcount')) === '62'
    })
    const pages = asked
    for (let at = 0; at < 3; at++) await lasts()
    assert.equal(await page.getAttribute('.table', 'aria-rowcount'), '62')
    assert.equal(asked, pages, 'the changes come as events')
    await visit(view, rig, 'accounts?q=first')
    await page.waitForSelector('.frame >> text=Live')
    await lasts()
  }),
}

const entryTrial: Trial = {
  name: 'lists: further pages of entries are loaded when one scrolls to them, and stay while requests end',
  run: signedIn({ as: 'viewer' }, async ({ rig, view, page }) => {
    const { id, key } = await rig.makeAccount('acme')
    for (let at = 0; at < 60; at++) await rig.books.credit(id, 1_000_000_000n, `invoice ${at}`)
    const entries = page.locator('table[aria-label=Entries]')
    const rowsOf = () => entries.getAttribute('aria-rowcount')
    let further = 0
    page.on('request', (request) => {
      if (/\/ledger\?.*cursor=/.test(request.url())) further++
    })
    await visit(view, rig, `accounts/${id}`)
    await page.waitForSelector('.frame >> text=Live')
    const asks = async () => {
      const answered = page.waitForResponse(/\/accounts\/acct_\w+$/)
      assert.equal(await rig.ask(key, 'dear'), 200)
      await answered
    }
    await asks()
    await entries.locator('tr[data-row="0"]:has-text("dear")').waitFor()
    assert.deepEqual([await rowsOf(), further], ['-1', 0], 'nobody has scrolled to the second page')
    await until(async () => {
      await page.evaluate('window.scrollTo(0, 1e6)')
      return (await rowsOf()) === '63'
    })
    await settle(page)
    const loaded = further
    let least = Number.POSITIVE_INFINITY
    for (let at = 0; at < 3; at++) {
      await asks()
      await settle(page)
      least = Math.min(least, Number(await rowsOf()))
    }
    assert.deepEqual([least, further], [63, loaded], 'the list keeps its length')
  }),
}

const searchTrial: Trial = {
  name: 'lists: a search for requests that has found none yet is continued by a button',
  run: signedIn({ as: 'viewer' }, async ({ rig, view, page }) => {
    const { key } = await rig.makeAccount('acme')
    await rig.ask(key, 'dear')
    // The gateway answers so if none of some thousand entries of the ledger fits.
    await page.route(/\/requests\?upstream=sim&limit=50$/, (route) => route.fulfill({ json: { items: [], next: 'c' } }))
    await page.route(/\/requests\?.*&cursor=c$/, (route) =>
      route.continue({ url: route.request().url().replace('&cursor=c', '') }),
    )
    await visit(view, rig, 'requests?upstream=sim')
    const further = page.locator('button:text-is("Search further")')
    await further.waitFor()
    assert.deepEqual(await findBarriers(view), [])
    await further.click()
    await page.waitForSelector('table[aria-rowcount="2"]')
  }),
}

const upstreamTrial: Trial = {
  name: 'lists: Upstreams is loaded a few times, and not once for each service whose state changes',
  run: signedIn(
    {
      as: 'admin',
      models: Array.from({ length: 60 }, (_, at) => ({
        ...{ id: `m-${at}`, wire: 'chat' },
        prices: { input: '3', cache_read: '0.3', cache_write: '3.75', output: '15' },
      })),
    },
    async ({ rig, view, page }) => {
      let asked = 0
      page.on('request', (request) => {
        if (request.url().endsWith('/upstreams')) asked++
      })
      await visit(view, rig, 'upstreams')
      await page.waitForSelector('.frame >> text=Live')
      // The states that events are compared with are read by the first tick.
      await new Promise((resolve) => setTimeout(resolve, 2_500))
      const headers = { authorization: `Bearer ${rig.admin}` }
      const url = `${rig.adminUrl}/api/v1/upstreams/sim/disable`
      assert.equal((await fetch(url, { method: 'POST', headers })).status, 200)
      await page.waitForSelector('main >> text=disabled')
      await until(async () => (await page.locator('main tr:has-text("ready")').count()) === 0)
      assert.ok(asked < 10, `${asked} requests for 128 services`)
    },
  ),
}

const keyTrial: Trial = {
  name: 'lists: keys are filtered by account, expired and revoked, also at 375 px',
  run: signedIn({ as: 'admin' }, async ({ rig, view, page }) => {
    const { id } = await rig.makeAccount('acme')
    await rig.makeAccount('globex')
    const person = await rig.books.createPerson({ name: 'Maximiliane Wolkenstein-Rodenegg', externalId: 'u-1' })
    const gone = await rig.books.createKey(id, {
      label: 'gone',
      person: person.id,
      models: ['reasoner', 'writer-mini', 'coder', 'dear'],
      budget: { nanos: 1_500_000_000_000n, per: 'month' },
      requestsPerMinute: 12_000,
    })
    await rig.books.revokeKey(gone.id)
    const over = await rig.books.createKey(id, { label: 'over', expiresMs: Date.now() + 300 })
    await new Promise((resolve) => setTimeout(resolve, 400))
    await visit(view, rig, 'keys')
    const shown = async (count: number) => {
      await page.waitForSelector(`table[aria-rowcount="${count + 1}"]`)
      return column(page, 'Key')
    }
    assert.equal((await shown(4)).length, 4)
    assert.equal(await page.evaluate(tableOver), 0, 'all columns fit beside each other')
    await page.getByLabel('State', { exact: true }).selectOption('revoked')
    assert.match((await shown(1))[0]!, /gone/)
    await page.getByLabel('State', { exact: true }).selectOption('expired')
    assert.match((await shown(1))[0]!, /over/)
    await page.getByLabel('State', { exact: true }).selectOption('')
    await pick(page, 'Any account', 'glob')
    assert.match((await shown(1))[0]!, /laptop/)
    await page.setViewportSize({ width: 375, height: 700 })
    assert.equal(await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'), 0)
    assert.deepEqual(await findBarriers(view), [])
    return [over.id, gone.id]
  }),
}

/** The px at which the words of the visible headings end, for each table. All have one font. */
const bottomsOfHeads = `[...document.querySelectorAll('table thead tr')].map((row) =>
  [...row.querySelectorAll('th')].flatMap((head) => {
    const words = document.createTreeWalker(head, NodeFilter.SHOW_TEXT).nextNode()
    if (words === null || head.querySelector('.offscreen')) return []
    const range = document.createRange()
    range.selectNodeContents(words)
    return [Math.round(range.getBoundingClientRect().bottom)]
  }))`

const headingTrial: Trial = {
  name: 'lists: on every page each heading of a table sorts its rows, and says so',
  async run() {
    const rig = await startRig({
      webhooks: [
        { url: 'https://hooks.example.com/triwire', secret: 'a secret of webhooks', events: ['upstream_down'] },
      ],
    })
    const { id } = await fill(rig)
    const view = await openPage(rig)
    const { page } = view
    await signIn(view, rig, rig.admin)
    await settle(page)
    let pressed = 0
    for (const path of [
      ...['?range=24h', 'requests', 'accounts', `accounts/${id}`, 'keys', 'models', 'models/reasoner'],
      ...['upstreams', 'webhooks', 'audit', 'operators'],
    ]) {
      await visit(view, rig, path)
      if (path === '?range=24h') await page.click('[aria-label="Credits as a table"]')
      const heads = page.locator('table thead th')
      const count = await heads.count()
      assert.ok(count > 0, path)
      for (const bottoms of await page.evaluate<number[][]>(bottomsOfHeads))
        assert.equal(new Set(bottoms).size, 1, `${path}: the words of the headings end at ${bottoms}`)
      for (let at = 0; at < count; at++) {
        const head = heads.nth(at)
        const name = await head.innerText()
        if (/^(Compare|Acts)?$/.test(name.trim())) continue
        await head
          .locator('button')
          .focus()
          .catch((error: Error) => assert.fail(`${path}, ${name}: ${error.message}`))
        await page.keyboard.press('Enter')
        await settle(page)
        assert.match(String(await head.getAttribute('aria-sort')), /^(as|des)cending$/, `${path}, ${name}`)
        pressed++
      }
      assert.deepEqual(await findBarriers(view), [], path)
    }
    await visit(view, rig, 'accounts')
    assert.equal(await press(page, 'Balance'), 'descending')
    const figures = (await column(page, 'Balance')).map(Number)
    assert.deepEqual(
      figures,
      figures.toSorted((a, b) => b - a),
    )
    await view.close()
    await rig.close()
    return [`${pressed} headings`]
  },
}

/** The buttons of a table that begin or end outside of their cells, or whose text is cut off without dots. */
const badlyCut = `[...document.querySelectorAll('tbody td > button')].flatMap((button) => {
  const [cell, own] = [button.parentElement.getBoundingClientRect(), button.getBoundingClientRect()]
  const text = document.createRange()
  text.selectNodeContents(button)
  const isCut = text.getBoundingClientRect().width > own.width + 1
  const { display, textOverflow } = getComputedStyle(button)
  const hasDots = display === 'inline-block' && textOverflow === 'ellipsis'
  return own.left < cell.left || own.right > cell.right || (isCut && !hasDots) ? [button.textContent] : []
})`

const auditTrial: Trial = {
  name: 'lists: the audit shows each name from its first character, and what is cut off ends in dots',
  run: signedIn({ as: 'admin' }, async ({ rig, view, page }) => {
    const { id } = await rig.makeAccount('acme')
    const actor = 'cli:a-user-of-a-long-name@a-host-of-a-name-that-is-still-longer-than-the-column.example.com'
    const books = rig.books.as({ actor })
    await books.updateKey((await rig.books.listKeys(id))[0]!.id, {
      label: 'laptop',
      models: ['reasoner', 'writer-mini'],
    })
    await books.createOperator(
      'operator-of-a-long-name-that-is-still-longer-than-the-column',
      'viewer',
      Date.now() + 86_400_000,
    )
    for (const width of [700, 1024, 1440]) {
      await page.setViewportSize({ width, height: 900 })
      await visit(view, rig, 'audit')
      assert.deepEqual(await page.evaluate(badlyCut), [], `${width}`)
    }
    assert.deepEqual(await findBarriers(view), [])
  }),
}

export const listTrials: readonly Trial[] = [
  requestTrial,
  tailTrial,
  liveTrial,
  entryTrial,
  searchTrial,
  upstreamTrial,
  keyTrial,
  headingTrial,
  auditTrial,
]
