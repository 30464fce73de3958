import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openPage, settle, signIn, type View, visit } from '../browser.ts'
import { fillHistory } from '../history.ts'
import { toPalettePng } from '../palette-png.ts'
import { startRig } from '../rig.ts'
import type { Trial } from '../trials.ts'

type Picture = {
  name: string
  path: string
  how: View
  act?: (page: import('playwright-core').Page) => Promise<void>
}

/** Takes the pictures of docs/console.md on a gateway with weeks of traffic. Runs only if pictures are asked for. */
export const pictureTrials: readonly Trial[] = [
  {
    name: 'pictures of the documentation',
    async run({ pictures }) {
      if (!pictures) return ['not asked for: --screenshots']
      mkdirSync(pictures, { recursive: true })
      const rig = await startRig({ prepare: fillHistory })
      const live = await rig.makeAccount('playground')
      for (const model of ['reasoner', 'writer-mini', 'coder', 'no-such-model', 'reasoner'])
        await rig.ask(live.key, model)
      const account = (await rig.books.listAccounts()).find(({ name }) => name === 'acme')!
      const list: readonly Picture[] = [
        { name: 'overview-light', path: '', how: {} },
        { name: 'overview-dark', path: '', how: { theme: 'dark' } },
        { name: 'account-light', path: `accounts/${account.id}`, how: {} },
        { name: 'finance-light', path: 'finance', how: {} },
        {
          name: 'explain-dark',
          path: 'requests',
          how: { theme: 'dark' },
          act: async (page) => {
            await page.click('tr[data-row] >> nth=0')
            await page.waitForSelector('.explain .steps')
          },
        },
        { name: 'overview-phone', path: '', how: { theme: 'dark', phone: true } },
      ]
      for (const { name, path, how, act } of list) {
        const view = await openPage(rig, how)
        if (!how.phone) await view.page.setViewportSize({ width: 1280, height: 800 })
        await signIn(view, rig, rig.admin)
        await visit(view, rig, path)
        await act?.(view.page)
        await settle(view.page)
        writeFileSync(join(pictures, `${name}.png`), toPalettePng(await view.page.screenshot()))
        await view.close()
      }
      await rig.close()
      return list.map(({ name }) => name)
    },
  },
]
