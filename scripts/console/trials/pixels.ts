import assert from 'node:assert/strict'
import { until } from '../../../test/support/waiting.ts'
import { settle, signedIn, visit } from '../browser.ts'
import type { Trial } from '../trials.ts'

type Drawn = { title: string; ground: string; tokens: string[]; found: Record<string, number>; ink: number }

/** For each plot: the colours of its legend by the style, and how many pixels of the canvas have each of them. */
const look = `[...document.querySelectorAll('.plot')].map((plot) => {
  const canvas = plot.querySelector('canvas')
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
  const style = getComputedStyle(document.documentElement)
  const rgb = (token) => style.getPropertyValue('--' + token).match(/[\\d.]+/g).slice(0, 3).map(Number).join(',')
  const tokens = [...new Set([...plot.querySelectorAll('.swatch')].map((swatch) => swatch.classList[1]))]
  const counts = {}
  let ink = 0
  for (let at = 0; at < data.length; at += 4) {
    if (data[at + 3] < 250) continue
    ink++
    const name = data[at] + ',' + data[at + 1] + ',' + data[at + 2]
    counts[name] = (counts[name] ?? 0) + 1
  }
  const found = Object.fromEntries(tokens.map((token) => [token, counts[rgb(token)] ?? 0]))
  return { title: plot.querySelector('h2').textContent, ground: rgb('panel'), tokens: tokens.map((token) => token + ' ' + rgb(token)), found, ink }
})`

export const pixelTrials: readonly Trial[] = [
  {
    name: 'pixels: each plot is drawn in the colours of its legend, in both themes, and again when they change',
    run: signedIn({ as: 'admin' }, async ({ rig, view, page }) => {
      const { id, key } = await rig.makeAccount('acme')
      for (const model of ['reasoner', 'writer-mini', 'coder', 'nothing']) await rig.ask(key, model)
      // Figures that are not in the ledger are written every ten seconds.
      await until(async () => {
        await visit(view, rig, '?range=24h')
        return (await page.locator('.legend .name:text("refused")').count()) > 0
      }, 'the refusal is written')
      const lines: string[] = []
      const colours = new Map<string, Set<string>>()
      for (const path of [
        '?range=24h',
        `?range=24h&by=model&only=reasoner,coder&compare=previous`,
        `accounts/${id}?range=24h`,
        'upstreams',
        'requests',
        'models/reasoner?range=24h',
      ]) {
        await visit(view, rig, path)
        for (const theme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme: theme })
          await settle(page)
          await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))')
          const plots = (await page.evaluate(look)) as Drawn[]
          assert.ok(plots.length > 0, path)
          for (const { title, ground, tokens, found, ink } of plots) {
            const where = `${path}, ${title}, ${theme}`
            assert.ok(ink > 20, `${where}: it has words and lines`)
            assert.ok(
              Object.values(found).some((count) => count > 3) || tokens.length === 0,
              `${where}: none of ${tokens.join('; ')} is in it`,
            )
            for (const token of tokens) assert.ok(!token.endsWith(ground), `${where}: ${token} is the ground`)
            const seen = colours.get(theme) ?? new Set()
            colours.set(theme, seen)
            for (const token of tokens) seen.add(token)
          }
          lines.push(
            `${theme} ${path}: ${plots.map(({ title, found }) => `${title} ${JSON.stringify(found)}`).join(', ')}`,
          )
        }
      }
      const both = [...colours.get('light')!].filter((token) => colours.get('dark')!.has(token))
      assert.deepEqual(both, [], 'every colour is another one in the dark')
      return lines
    }),
  },
  {
    name: 'pixels: parts of a stack have a gap between them, and the sum is shown where the cursor is',
    run: signedIn({ as: 'admin' }, async ({ rig, view, page }) => {
      const { key } = await rig.makeAccount('acme')
      for (const model of ['reasoner', 'writer-mini', 'coder']) for (let at = 0; at < 3; at++) await rig.ask(key, model)
      const lines: string[] = []
      for (const theme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme: theme })
        await visit(view, rig, '?range=24h')
        await page.waitForSelector('.plot:first-of-type .legend li:nth-child(3)')
        await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))')
        const columns = (await page.evaluate(stacks)) as string[]
        assert.ok(columns.length > 0, `${theme}: a stack is drawn`)
        for (const column of columns) assert.match(column, /^s\d panel s\d panel s\d$/, theme)
        await page.focus('.plot [role=slider]')
        await page.keyboard.press('End')
        const told = (await page.getAttribute('.plot [role=slider]', 'aria-valuetext'))!
        const shown = (await page.textContent('.plot .readout'))!
        assert.match(shown, /: 0\.\d+ in all$/)
        assert.ok(told.includes(shown.split(': ').at(-1)!), told)
        lines.push(`${theme}: ${[...new Set(columns)].join('; ')}; ${shown}`)
      }
      await page.click('[aria-label="Credits as a table"]')
      await page.waitForSelector('.plot-table th:has-text("In all")')
      return lines
    }),
  },
]

/** The colours of each column of pixels of the first plot that has three series, from the top, without repetitions. */
const stacks = `(() => {
  const canvas = document.querySelector('.plot canvas')
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
  const style = getComputedStyle(document.documentElement)
  const names = new Map(['s1', 's2', 's3', 's4', 's5', 's6'].map((token) => [style.getPropertyValue('--' + token).match(/[\\d.]+/g).slice(0, 3).map(Number).join(','), token]))
  const panel = style.getPropertyValue('--panel').match(/[\\d.]+/g).slice(0, 3).map(Number).join(',')
  const columns = []
  for (let x = 0; x < canvas.width; x++) {
    const seen = []
    for (let y = 0; y < canvas.height; y++) {
      const at = 4 * (y * canvas.width + x)
      const rgb = data[at + 3] < 250 ? '' : data[at] + ',' + data[at + 1] + ',' + data[at + 2]
      const name = names.get(rgb) ?? (rgb === panel ? 'panel' : undefined)
      if (name && name !== seen.at(-1)) seen.push(name)
    }
    while (seen.at(-1) === 'panel') seen.pop()
    while (seen[0] === 'panel') seen.shift()
    if (new Set(seen).size > 3) columns.push(seen.join(' '))
  }
  return columns
})()`
