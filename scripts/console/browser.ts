import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import axe from 'axe-core'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import type { Rig } from './rig.ts'

/** Where Debian has it, or who runs this. */
export const chromiumPath = process.env['TRIWIRE_CHROMIUM'] ?? '/usr/bin/chromium'

export function hasChromium(): boolean {
  return existsSync(chromiumPath)
}

/** It asks nobody for anything by itself. */
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

/** A browser logs every answer of 400 and more: those that a trial asked for on purpose are no faults. */
export function forgive(faults: string[], asked: RegExp): void {
  faults.splice(0, faults.length, ...faults.filter((fault) => !asked.test(fault)))
}

/** What a page did that none may do. */
export type Watched = { page: Page; faults: string[]; hosts: Set<string>; close(): Promise<void> }

export type View = { theme?: 'light' | 'dark'; phone?: boolean; zone?: string }

/** A page of somebody who was never here; it hears every error, question and request. */
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
  // What the policy forbids is told to the page itself.
  await page.addInitScript(
    `addEventListener('securitypolicyviolation', (event) => console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI))`,
  )
  page.setDefaultTimeout(15_000)
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

/** Signs in as people do. */
export async function signIn({ page }: Watched, rig: Rig, token: string): Promise<void> {
  await page.goto(`${rig.adminUrl}/console/`)
  await page.fill('#token', token)
  await page.keyboard.press('Enter')
  await page.waitForSelector('.frame')
}

/** Opens a page by its address, and waits until nothing waits any more. */
export async function visit({ page }: Watched, rig: Rig, path: string): Promise<void> {
  await page.goto(`${rig.adminUrl}/console/${path}`)
  await settle(page)
}

export async function settle(page: Page): Promise<void> {
  await page.waitForSelector('.frame, .sign-in')
  // A condition in words of the page would be evaluated there, which its policy forbids.
  await page.waitForSelector('body:not(:has(.skeleton, .opening, [aria-busy="true"]))')
}

/** What axe finds; it is put in by the debugger, so that the policy of the page stays on. */
export async function findBarriers({ page }: Watched): Promise<string[]> {
  await page.evaluate(`${axe.source}; undefined`)
  const found = (await page.evaluate(`axe.run(document, { resultTypes: ['violations'] })`)) as axe.AxeResults
  return found.violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary = '' }) => `${id}: ${html.slice(0, 200)} ${failureSummary.split('\n')[1] ?? ''}`),
  )
}
