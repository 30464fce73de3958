import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import { findBarriers, forgive, openPage, settle, signedIn, signIn, visit } from '../browser.ts'
import { startEvilUpstream } from '../evil-upstream.ts'
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

const sendTrials: readonly Trial[] = Object.entries(ways).map(([way, press]) => ({
  name: `playground: Send, Stop and Send again by ${way} are two requests`,
  run: signedIn({ as: 'admin', models: [slow] }, async ({ rig, view, page }) => {
    await rig.makeAccount('acme')
    let posts = 0
    page.on('request', (request) => {
      if (request.method() === 'POST' && request.url().endsWith('/playground')) posts++
    })
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
      await page.waitForSelector(`${bill} >> text=Its debit is in the ledger.`)
    }
    assert.deepEqual(await outcomesOf(rig), ['client_abort', 'client_abort'])
    return [`${posts} POST /playground for two times Send and Stop`]
  }),
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

/** The bodies of the requests that the page sends to be answered. */
function watchPlays(page: Page): { account: string; wire: string; body: string }[] {
  const plays: { account: string; wire: string; body: string }[] = []
  page.on('request', (request) => {
    if (request.method() === 'POST' && request.url().endsWith('/playground')) plays.push(request.postDataJSON())
  })
  return plays
}

const account = '.composer [role=combobox]'
const bill = '.panel:has(h2:text-is("Usage and cost"))'

/** The pixels by which the page is wider than a narrow phone. */
async function overflowAt375(page: Page): Promise<number> {
  await page.setViewportSize({ width: 375, height: 700 })
  return Number(await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'))
}

const payerTrial: Trial = {
  name: 'playground payer: no account pays that was not chosen; of 250 each can be found, by keyboard alone; the choice is kept for the operator',
  run: signedIn({ as: 'admin' }, async ({ rig, view, page, faults }) => {
    const ids: string[] = []
    for (let at = 0; at < 250; at++) ids.push((await rig.books.createAccount(`team-${at}`, 5_000_000_000n)).id)
    const plays = watchPlays(page)
    const payers = () => plays.map((play) => play.account)
    await visit(view, rig, 'playground?wire=chat&model=writer-mini')
    await page.focus('.composer button:text-is("Send")')
    await page.keyboard.press('Enter')
    await page.waitForSelector('[role=alert]:has-text("Choose the account that pays.")')
    assert.equal(await page.evaluate('document.activeElement.getAttribute("role")'), 'combobox')
    assert.deepEqual(payers(), [], 'nothing was sent')
    assert.deepEqual(await findBarriers(view), [])
    // Enter is pressed before the list has been loaded. The account is the last one of all.
    await page.keyboard.type('team-249')
    await page.keyboard.press('Enter')
    await page.waitForSelector('.pick-list', { state: 'detached' })
    assert.equal(await page.inputValue(account), 'team-249')
    await page.keyboard.press('Enter')
    assert.deepEqual(payers(), [], 'Enter in the field chooses, and does not send')
    await page.focus('.composer button:text-is("Send")')
    await page.keyboard.press('Enter')
    await page.waitForSelector(bill)
    assert.deepEqual(payers(), [ids[249]])
    // Tab chooses the account with exactly this name, even before the list has been loaded.
    await page.focus(account)
    await page.keyboard.type('team-24')
    await page.keyboard.press('Tab')
    await page.waitForSelector('.pick-list', { state: 'detached' })
    await settle(page)
    assert.equal(await page.inputValue(account), 'team-24')
    assert.equal(new URL(page.url()).searchParams.get('account'), ids[24])
    await page.focus(account)
    await page.keyboard.type('team-249')
    await page.waitForSelector('[role=option] >> text=team-249')
    await page.keyboard.press('Tab')
    await page.waitForSelector('.pick-list', { state: 'detached' })
    assert.equal(await page.inputValue(account), 'team-249')
    await page.focus(account)
    await page.keyboard.type('eam-24')
    await page.waitForSelector('[role=option] >> text=team-24')
    await page.keyboard.press('Tab')
    await page.waitForSelector('.pick-list', { state: 'detached' })
    assert.equal(await page.inputValue(account), 'team-249', 'a part of a name chooses nothing')
    // Arrow keys choose; Escape does not.
    await page.focus(account)
    await page.keyboard.type('team-10')
    await page.waitForSelector('[role=option] >> text=team-100')
    assert.equal(await overflowAt375(page), 0)
    assert.deepEqual(await findBarriers(view), [])
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Escape')
    assert.equal(await page.inputValue(account), 'team-249')
    await visit(view, rig, 'playground')
    await page.waitForSelector(`${account} >> nth=0`)
    assert.equal(await page.inputValue(account), 'team-249', 'kept')
    await rig.books.updateAccount(ids[249]!, { state: 'suspended' })
    await visit(view, rig, 'playground')
    await page.waitForSelector('[role=alert]:has-text("suspended")')
    await page.click('text="Send"')
    assert.equal(payers().length, 1, 'a suspended account pays nothing')
    await rig.books.updateAccount(ids[249]!, { state: 'active' })
    const other = (await rig.books.createOperator('eve', 'admin', Date.now() + 3_600_000)).token!
    await page.click('[aria-label^="Sign out"]')
    await page.waitForSelector('.sign-in')
    await signIn(view, rig, other)
    await visit(view, rig, 'playground')
    assert.equal(await page.inputValue(account), '', 'another operator has chosen none')
    await visit(view, rig, 'playground?account=acct_0000000000000000')
    await page.waitForSelector('[role=alert]:has-text("no such account")')
    forgive(faults, /status of 404/)
  }),
}

const bodyTrial: Trial = {
  name: 'playground body: it survives a reload, going back and a look elsewhere; signing out deletes it; as curl it runs in a shell',
  run: signedIn({ as: 'admin' }, async ({ rig, view, page }) => {
    const { key } = await rig.makeAccount('acme')
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    const path = 'playground?wire=messages&model=writer-mini'
    await visit(view, rig, path)
    const odd = String.raw`it's "$HOME" \\ \n \u00e9 \'id\' $(id) !! %s`
    const body = JSON.stringify({ model: 'writer-mini', max_tokens: 50, messages: [{ role: 'user', content: odd }] })
    await page.fill('#body', body)
    await page.reload()
    await settle(page)
    assert.equal(await page.inputValue('#body'), body, 'after a reload')
    await page.click('nav.rail >> text=Requests')
    await page.waitForSelector('h1:text("Requests")')
    await page.goBack()
    await page.waitForSelector('#body')
    assert.equal(await page.inputValue('#body'), body, 'after going back')
    await page.goto('about:blank')
    await page.goBack()
    await page.waitForSelector('#body')
    assert.equal(await page.inputValue('#body'), body, 'after another site')
    assert.equal(await overflowAt375(page), 0)
    await page.click('text="Copy as curl"')
    await page.waitForSelector('text="Copied."')
    // The gateway of a trial listens on any free port, which its settings do not name.
    const copied = String(await page.evaluate('navigator.clipboard.readText()'))
    const command = copied.replace('http://127.0.0.1:0', rig.url)
    assert.ok(!command.includes(key) && command.includes('$TRIWIRE_API_KEY'), command)
    for (const shell of ['/bin/sh', '/bin/bash']) {
      const env = { PATH: process.env['PATH'], TRIWIRE_API_KEY: key, HOME: '/wrong' }
      const { stdout } = await promisify(execFile)(shell, ['-c', command], { env })
      assert.equal((JSON.parse(stdout) as { type: string }).type, 'message', stdout)
    }
    await page.fill('#body', "no JSON: '")
    await visit(view, rig, 'playground?wire=messages&model=reasoner')
    assert.match(await page.inputValue('#body'), /"model": "reasoner"/, 'a link to another model has its body')
    await page.fill('#body', body)
    await page.click('[aria-label^="Sign out"]')
    await page.waitForSelector('#token')
    await signIn(view, rig, rig.admin)
    await visit(view, rig, 'playground?wire=messages&model=reasoner')
    assert.notEqual(await page.inputValue('#body'), body, 'signing out deletes it')
    await visit(view, rig, 'translate?from=chat')
    await page.fill('#request', '{"model":"coder","messages":[]}')
    await page.reload()
    await settle(page)
    assert.equal(await page.inputValue('#request'), '{"model":"coder","messages":[]}')
    return [command]
  }),
}

const callTrial: Trial = {
  name: 'playground calls: the tool calls of an answer are shown, as a stream and as a body, on each wire',
  async run() {
    const upstream = await startEvilUpstream(['alpha', 'call_beta', 'gamma'])
    const rig = await startRig({ upstreamUrl: upstream.url })
    const { id } = await rig.makeAccount('acme')
    const view = await openPage(rig)
    const { page } = view
    await signIn(view, rig, rig.admin)
    const tool = { name: 'gamma', parameters: { type: 'object', properties: {} } }
    const question = { role: 'user', content: 'Hello!' }
    const bodies = {
      messages: {
        ...{ max_tokens: 50, messages: [question] },
        tools: [{ name: 'gamma', input_schema: tool.parameters }],
      },
      chat: { messages: [question], tools: [{ type: 'function', function: tool }] },
      responses: { input: 'Hello!', tools: [{ type: 'function', ...tool }] },
    }
    for (const [wire, body] of Object.entries(bodies))
      for (const stream of [true, false]) {
        await visit(view, rig, `playground?model=writer-mini&wire=${wire}&account=${id}`)
        await page.fill('#body', JSON.stringify({ model: 'writer-mini', ...body, stream }))
        await page.click('text="Send"')
        await page.waitForSelector(bill)
        const shown = await page.locator('[aria-label="Tool calls"] li').allTextContents()
        assert.equal(shown.length, 1, `${wire} ${stream}: ${shown}`)
        assert.match(shown[0]!, /gamma.*"alpha": "call_beta"/s, `${wire} ${stream}`)
        assert.deepEqual(await findBarriers(view), [], wire)
      }
    await view.close()
    await rig.close()
    upstream.close()
  },
}

export const playgroundTrials: readonly Trial[] = [...sendTrials, payerTrial, bodyTrial, callTrial]
