import assert from 'node:assert/strict'
import { findBarriers, forgive, openPage, settle } from '../browser.ts'
import { startRig } from '../rig.ts'
import type { Trial } from '../trials.ts'

export const linkTrials: readonly Trial[] = [
  {
    name: 'link: the link of a start signs in one browser as an admin, leaves the address, and tells a second browser what to do',
    async run() {
      const rig = await startRig()
      const { token } = await rig.books.makeLinkToken()
      const link = `${rig.adminUrl}/console/accounts#t=${token}`
      const view = await openPage(rig)
      await view.page.goto(link)
      await settle(view.page)
      await view.page.waitForSelector('h1:text("Accounts")')
      await view.page.waitForSelector('main >> text=New account')
      assert.equal(view.page.url(), `${rig.adminUrl}/console/accounts`)
      await view.page.reload()
      await settle(view.page)
      await view.page.waitForSelector('main >> text=New account')
      await view.close()
      const second = await openPage(rig)
      await second.page.goto(link)
      await second.page.waitForSelector('.sign-in >> text=This link was used')
      assert.ok(!second.page.url().includes(token))
      assert.deepEqual(await findBarriers(second), [])
      forgive(second.faults, /401/)
      await second.close()
      await rig.close()
    },
  },
]
