import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { standInSecret, startStandIn } from '../../../test/support/stand-in-issuer.ts'
import { findBarriers, openPage, settle, type View } from '../browser.ts'
import { startRig } from '../rig.ts'
import type { Trial } from '../trials.ts'

/** A gateway at which people sign in, and a provider that knows one of them and asks nothing. */
async function startSignInRig() {
  const standIn = await startStandIn()
  const rules = [
    { groups: ['admins'], role: 'admin' },
    { groups: ['developers'], account: 'acme' },
  ]
  const signIn = { issuer: standIn.issuer, client_id: 'triwire', client_secret: standInSecret, rules }
  const rig = await startRig({ signIn })
  await rig.makeAccount('acme')
  const begin = () => rig.books.beginGrant({ kind: 'device', agent: 'claude_code', address: '10.1.2.3' })
  return { standIn, rig, begin, open, close }

  /** Opens a page, at which the provider counts as one of our hosts. */
  async function open(view?: View) {
    const opened = await openPage({ ...rig, adminUrl: rig.url }, view)
    return {
      ...opened,
      close() {
        opened.hosts.delete(new URL(standIn.issuer).host)
        return opened.close()
      },
    }
  }

  async function close(): Promise<void> {
    await rig.close()
    standIn.close()
  }
}

const views: readonly View[] = [
  { theme: 'light' },
  { theme: 'dark' },
  { theme: 'light', phone: true },
  { theme: 'dark', phone: true },
]

export const signInTrials: readonly Trial[] = [
  {
    name: 'sign-in: by the keyboard alone a person types a code, signs in, sees who they are, and approves',
    async run() {
      const { rig, begin, open, close } = await startSignInRig()
      const { id, userCode } = await begin()
      const view = await open()
      const { page } = view
      await page.goto(`${rig.url}/console/device`)
      await page.keyboard.press('Tab')
      await page.keyboard.type(userCode!.toLowerCase().replace('-', ''))
      await page.keyboard.press('Enter')
      await page.waitForSelector(`.code:text("${userCode}")`)
      await page.keyboard.press('Tab')
      assert.equal(await page.evaluate('document.activeElement.textContent'), 'Continue')
      await page.keyboard.press('Enter')
      await page.waitForSelector('h1:text("Is this you?")')
      await page.waitForSelector('strong:text("Dev One (dev@corp.test)")')
      assert.equal((await rig.books.findGrant({ id }))?.state, 'pending')
      await page.keyboard.press('Tab')
      assert.equal(await page.evaluate('document.activeElement.textContent'), 'Approve')
      await page.keyboard.press('Enter')
      await page.waitForSelector('h1:text("You are signed in")')
      assert.equal((await rig.books.findGrant({ id }))?.state, 'approved')
      await view.close()
      await close()
    },
  },
  {
    name: 'sign-in: a person signs in to their own pages and out again, an operator to the console',
    async run() {
      const { rig, open, close, standIn } = await startSignInRig()
      const view = await open()
      const { page } = view
      await page.goto(`${rig.url}/console/`)
      await page.click('text=Sign in with your organisation')
      await page.waitForSelector('h2:text("acme")')
      await settle(page)
      assert.equal(page.url(), `${rig.url}/console/`)
      const cookies = await page.context().cookies()
      assert.deepEqual(
        cookies.map(({ name, secure, httpOnly }) => [name, secure, httpOnly]).sort(),
        ['__Host-triwire-own', '__Host-triwire-sign-in'].map((name) => [name, true, true]),
      )
      await page.reload()
      await page.waitForSelector('h2:text("acme")')
      await page.click('[aria-label^="Sign out"]')
      await page.waitForSelector('h1:text("You are signed out")')
      await page.waitForSelector('a:text("Sign out at your company as well")')
      await page.click('text=Sign in again')
      await page.waitForSelector('.sign-in')
      await view.close()
      standIn.person['groups'] = ['admins']
      const operator = await openPage(rig)
      await operator.page.goto(`${rig.adminUrl}/console/`)
      await operator.page.click('text=Sign in with your organisation')
      await operator.page.waitForSelector('.frame')
      await settle(operator.page)
      await operator.page.waitForSelector('nav.rail >> text=Operators')
      operator.hosts.delete(new URL(standIn.issuer).host)
      await operator.close()
      await close()
    },
  },
  {
    name: 'sign-in: the policy of the page lets the code through to a program on this machine, by IPv4 and IPv6',
    async run() {
      const { rig, open, close } = await startSignInRig()
      for (const host of ['127.0.0.1', '[::1]']) {
        const got = Promise.withResolvers<string>()
        const program = createServer((request, response) => {
          if (request.url?.startsWith('/callback')) got.resolve(request.url)
          response.end('done')
        })
        await new Promise<void>((resolve) => program.listen(0, host.replace(/[[\]]/g, ''), resolve))
        const { port } = program.address() as AddressInfo
        const query = { response_type: 'code', redirect_uri: `http://${host}:${port}/callback`, state: 's' }
        const pkce = { code_challenge: 'c'.repeat(43), code_challenge_method: 'S256' }
        const view = await open()
        await view.page.goto(`${rig.url}/console/authorize?${new URLSearchParams({ ...query, ...pkce })}`)
        await view.page.click('button:text("Approve")')
        assert.match(await got.promise, /^\/callback\?code=\w{43}&state=s&iss=/)
        view.hosts.delete(`${host}:${port}`)
        await view.page.goto('about:blank')
        await view.close()
        program.closeAllConnections()
        program.close()
      }
      await close()
    },
  },
  {
    name: 'sign-in: axe finds no barrier on its pages, light and dark, wide and on a phone',
    async run() {
      const { rig, begin, open, close, standIn } = await startSignInRig()
      const found: string[] = []
      let pages = 0
      for (const how of views) {
        const view = await open(how)
        const { page } = view
        const look = async (name: string) => {
          pages++
          const where = `${name} (${how.theme}${how.phone ? ', phone' : ''})`
          found.push(...(await findBarriers(view)).map((barrier) => `${where}: ${barrier}`))
          const width = await page.evaluate(
            'document.documentElement.scrollWidth - document.documentElement.clientWidth',
          )
          if (Number(width) > 0) found.push(`${where}: ${width} px wider than the window`)
        }
        const { userCode } = await begin()
        await page.goto(`${rig.url}/console/device`)
        await look('code')
        await page.goto(`${rig.url}/console/device?user_code=${userCode}`)
        await look('ask')
        await page.click('a:text-is("Continue")')
        await page.waitForSelector('h1:text("Is this you?")')
        await look('approve')
        await page.click('button:text("Deny")')
        await page.waitForSelector('h1:text("Nothing was signed in")')
        await look('denied')
        await page.goto(`${rig.url}/console/signed-out`)
        await look('signed out')
        standIn.person['groups'] = ['sales']
        await page.goto(`${rig.url}/console/sign-in`)
        await page.waitForSelector('h1:text("No access yet")')
        await look('refused')
        standIn.person['groups'] = ['developers']
        view.faults.length = 0
        await view.close()
      }
      assert.deepEqual(found, [])
      await close()
      return [`${pages} pages`]
    },
  },
]
