import assert from 'node:assert/strict'
import { findBarriers, openPage, signIn, type View, visit } from '../browser.ts'
import { pagesOf } from '../pages.ts'
import { startRig } from '../rig.ts'
import type { Trial } from '../trials.ts'

const views: readonly View[] = [
  { theme: 'light' },
  { theme: 'dark' },
  { theme: 'light', phone: true },
  { theme: 'dark', phone: true },
]

export const barrierTrials: readonly Trial[] = [
  {
    name: 'barriers: axe finds none on any page, light and dark, wide and on a phone',
    async run() {
      const webhooks = [
        { url: 'https://hooks.example.com/triwire', secret: 'a secret of webhooks', events: ['upstream_down'] },
      ]
      const rig = await startRig({ webhooks })
      const { id, key } = await rig.makeAccount('acme')
      await rig.ask(key, 'reasoner')
      await rig.ask(key, 'no model')
      const [row] = await rig.books.listKeys(id)
      const response = await fetch(`${rig.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'coder', messages: [{ role: 'user', content: 'Hello!' }] }),
      })
      await response.text()
      const request = response.headers.get('x-request-id')!
      const found: string[] = []
      let pages = 0
      for (const how of views) {
        const view = await openPage(rig, how)
        const { page } = view
        const look = async (name: string) => {
          pages++
          const barriers = await findBarriers(view)
          found.push(...barriers.map((barrier) => `${name} (${how.theme}${how.phone ? ', phone' : ''}): ${barrier}`))
          const width = Number(
            await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
          )
          if (width > 0)
            found.push(`${name} (${how.theme}${how.phone ? ', phone' : ''}): ${width} px wider than the window`)
        }
        await page.goto(`${rig.adminUrl}/console/`)
        await page.waitForSelector('#token')
        await look('sign-in')
        // An operator may ask 600 times a minute, which is not enough for all pages: each round has its own operator.
        const { token } = await rig.books.createOperator(`ann-${pages}`, 'admin', Date.now() + 3_600_000)
        await signIn(view, rig, token!)
        for (const path of pagesOf({ account: id, key: row!.id, request })) {
          await visit(view, rig, path)
          await look(path || 'overview')
        }
        for (const [path, open] of [
          ['accounts?new=1', undefined],
          [`accounts/${id}`, 'main >> text=New key'],
          [`accounts/${id}`, '.page-head >> text=Credit'],
          [`accounts/${id}`, '.page-head >> text=Suspend'],
          [`keys/${row!.id}`, '.page-head >> text=Edit'],
          ['operators', 'main >> text=New operator'],
          ['', '[aria-label=Find]'],
          ['', 'text="Days"'],
          ['', '[aria-label="Credits as a table"]'],
        ] as const) {
          await visit(view, rig, path)
          if (open) await page.click(open)
          await look(`${path || 'overview'}, open ${open ?? 'form'}`)
        }
        await view.close()
      }
      await rig.close()
      assert.deepEqual(found, [])
      return [`${pages} pages and dialogs`]
    },
  },
]
