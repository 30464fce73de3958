import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import axe from 'axe-core'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { type Rig, type RigOptions, startRig } from './rig.ts'

/** Debian's path of Chromium, unless the environment has another one. */
export const chromiumPath = process.env['TRIWIRE_CHROMIUM'] ?? '/usr/bin/chromium'

export function hasChromium(): boolean {
  return existsSync(chromiumPath)
}

/** How long a page waits for what a trial expects, in ms. It is long, because only a failing trial waits that long. */
export const patienceMs = 60_000

/** Flags that keep the browser from sending requests of its own. */
const quiet = [
  '--disable-quic',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
]

let browser: Promise<Browser> | undefined

function openBrowser(): Promise<Browser> {
  browser ??= chromium.launch({ executablePath: chromiumPath, chromiumSandbox: true, args: quiet })
  return browser
}

export async function closeBrowser(): Promise<void> {
  await (await browser)?.close()
  browser = undefined
}

/** Removes faults that a trial caused on purpose, because a browser logs every answer with a status of 400 or more. */
export function forgive(faults: string[], asked: RegExp): void {
  faults.splice(0, faults.length, ...faults.filter((fault) => !asked.test(fault)))
}

/** A page, the faults that it showed (a trial fails if there are any), and the hosts that it contacted. */
export type Watched = { page: Page; faults: string[]; hosts: Set<string>; close(): Promise<void> }

export type View = { theme?: 'light' | 'dark'; phone?: boolean; zone?: string }

/** Opens a page in a fresh profile; records every error, dialog and request of it. */
export async function openPage(
  rig: Rig,
  { theme = 'light', phone = false, zone = 'Europe/Berlin' }: View = {},
): Promise<Watched> {
  const options: BrowserContextOptions = {
    viewport: phone ? { width: 390, height: 844 } : { width: 1440, height: 900 },
    colorScheme: theme,
    timezoneId: zone,
    locale: 'en-GB',
    reducedMotion: 'reduce',
  }
  const context = await (await openBrowser()).newContext(options)
  const page = await context.newPage()
  const faults: string[] = []
  const hosts = new Set<string>()
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning')
      faults.push(`console: ${message.text()} ${message.location().url}`)
  })
  page.on('pageerror', (error) => faults.push(`uncaught: ${error.stack}`))
  page.on('dialog', (dialog) => {
    faults.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('request', (request) => {
    const { protocol, host } = new URL(request.url())
    if (protocol.startsWith('http')) hosts.add(host)
  })
  // A breach of the policy is reported to the page itself, which logs it as an error.
  await page.addInitScript(
    `addEventListener('securitypolicyviolation', (event) => console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI))`,
  )
  page.setDefaultTimeout(patienceMs)
  const own = new URL(rig.adminUrl).host
  return {
    page,
    faults,
    hosts,
    async close() {
      await context.close()
      assert.deepEqual(faults, [], 'errors, warnings, dialogs and breaches of the policy')
      assert.deepEqual([...hosts], hosts.size === 0 ? [] : [own], 'every request goes to the listener')
    },
  }
}

/** Signs in by the form, as people do. */
export async function signIn({ page }: Watched, rig: Rig, token: string): Promise<void> {
  await page.goto(`${rig.adminUrl}/console/`)
  await page.fill('#token', token)
  await page.keyboard.press('Enter')
  await page.waitForSelector('.frame')
}

type Visit = { rig: Rig; view: Watched; page: Page; faults: string[] }

/** A trial with a gateway of its own, in a page that an operator has signed in to. Both are closed at its end. */
export function signedIn<Seen>(
  { as, ...options }: RigOptions & { as: 'admin' | 'viewer' | 'finance' },
  act: (visit: Visit) => Promise<Seen>,
): () => Promise<Seen> {
  return async () => {
    const rig = await startRig(options)
    const view = await openPage(rig)
    await signIn(view, rig, rig[as])
    const seen = await act({ rig, view, page: view.page, faults: view.faults })
    await view.close()
    await rig.close()
    return seen
  }
}

/** Opens a page by its address, and waits until it is loaded. */
export async function visit({ page }: Watched, rig: Rig, path: string): Promise<void> {
  await page.goto(`${rig.adminUrl}/console/${path}`)
  await settle(page)
}

export async function settle(page: Page): Promise<void> {
  await page.waitForSelector('.frame, .sign-in')
  // A condition in JavaScript would be evaluated in the page, which its policy forbids.
  await page.waitForSelector('body:not(:has(.skeleton, .opening, [aria-busy="true"]))')
}

/** Runs axe in the page and lists its findings. The debugger injects axe, so the policy of the page stays in force. */
export async function findBarriers({ page }: Watched): Promise<string[]> {
  await page.evaluate(`${axe.source}; undefined`)
  const found = (await page.evaluate(`axe.run(document, { resultTypes: ['violations'] })`)) as axe.AxeResults
  return found.violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary = '' }) => `${id}: ${html.slice(0, 200)} ${failureSummary.split('\n')[1] ?? ''}`),
  )
}

/** The pixels by which the first table of a page is wider than its frame, as an expression. */
export const tableOver = `(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('.table-frame'))`
