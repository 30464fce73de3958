import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, extname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import axe from 'axe-core'
import { type Browser, chromium } from 'playwright-core'

// npm run test:site, after npm run site
//
// Tries the built site in the system's Chromium: accessibility in both themes, search, size, and that no page contacts
// another host. Links of all pages, and their sections, are checked in the files. Root runs it as nobody.

const nobody = 65_534
const weightMax = 300 * 1024
/** The longest wait for a page, in ms. A page takes a second, and much longer on a machine with other work. */
const waitMsMax = 120_000
const findings: string[] = []
const dist = fileURLToPath(new URL('../site/dist', import.meta.url))
const types: Record<string, string> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.png': 'image/png',
  '.json': 'application/json',
  '.txt': 'text/plain',
  '.md': 'text/plain',
}

if (process.getuid?.() === 0) {
  const folder = mkdtempSync(join(tmpdir(), 'triwire-site-'))
  chmodSync(folder, 0o700)
  chownSync(folder, nobody, nobody)
  const env = { PATH: process.env['PATH'], HOME: folder, TMPDIR: folder }
  const { status } = spawnSync(process.execPath, [fileURLToPath(import.meta.url)], {
    uid: nobody,
    gid: nobody,
    stdio: 'inherit',
    env,
    cwd: folder,
  })
  rmSync(folder, { recursive: true, force: true })
  process.exitCode = status ?? 1
} else await tryAll()

async function tryAll(): Promise<void> {
  const version = globSync('*/index.html', { cwd: dist }).map(dirname).sort().at(-1)
  assert.ok(version !== undefined, 'there is no site: npm run site')
  const pages = globSync('**/*.html', { cwd: join(dist, version) }).sort()
  checkLinks(version, pages)
  const server = createServer((request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url!, 'http://site').pathname)).replace(
      /\/$/,
      '/index.html',
    )
    try {
      const body = gzipSync(readFileSync(join(dist, path)))
      response.writeHead(200, {
        'content-type': types[extname(path)] ?? 'application/octet-stream',
        'content-encoding': 'gzip',
        'content-length': body.length,
      })
      response.end(body)
    } catch {
      response.writeHead(404).end()
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const browser = await chromium.launch({
    executablePath: process.env['TRIWIRE_CHROMIUM'] ?? '/usr/bin/chromium',
    chromiumSandbox: true,
  })
  try {
    const sample = pages.filter((page) =>
      /^(?:index|404|docs\/(?:index|quickstart|cli|configuration|operating|kubernetes|console|rulings|decisions\/index)|api\/(?:index|account))\.html$/.test(
        page,
      ),
    )
    const heaviest = pages
      .map((page) => [page, readFileSync(join(dist, version, page)).length] as const)
      .sort((a, b) => b[1] - a[1])
      .map(([page]) => page)
    for (const page of new Set([...sample, ...heaviest.slice(0, 3)]))
      await tryPage(browser, `${origin}/${version}/${page}`, page)
    await trySearch(browser, `${origin}/${version}/`)
    assert.deepEqual(findings, [], 'accessibility')
  } finally {
    await browser.close()
    server.close()
  }
}

/** Checks that every link of every page leads to a file of the site, and to a section in it. */
function checkLinks(version: string, pages: readonly string[]): void {
  const ids = new Map<string, Set<string>>()
  const broken: string[] = []
  const idsOf = (file: string): Set<string> => {
    const known =
      ids.get(file) ?? new Set([...readFileSync(file, 'utf8').matchAll(/ id="([^"]+)"/g)].map(([, id]) => id!))
    ids.set(file, known)
    return known
  }
  let count = 0
  for (const page of pages) {
    const text = readFileSync(join(dist, version, page), 'utf8')
    for (const [, attribute, link] of text.matchAll(/ (href|src)="([^"]+)"/g)) {
      const url = new URL(link!.replaceAll('&amp;', '&'), `http://site/${version}/${page}`)
      if (url.host !== 'site') {
        if (attribute === 'src') broken.push(`${page}: ${link} is of another host`)
        continue
      }
      count++
      const file = join(dist, decodeURIComponent(url.pathname).replace(/\/$/, '/index.html'))
      // Entries of the change log keep the links of their release.
      const hash = page === 'CHANGELOG.html' ? '' : url.hash
      try {
        const isPage = file.endsWith('.html')
        if (!isPage) readFileSync(file)
        else if (hash !== '' && !idsOf(file).has(decodeURIComponent(hash.slice(1))))
          broken.push(`${page}: ${link} has no such section`)
        else if (hash === '') idsOf(file)
      } catch {
        broken.push(`${page}: ${link} leads nowhere`)
      }
    }
  }
  assert.deepEqual([...new Set(broken)], [], 'links')
  console.log(`ok links: ${count} on ${pages.length} pages`)
}

async function tryPage(browser: Browser, url: string, name: string): Promise<void> {
  let weight = 0
  for (const colorScheme of ['light', 'dark'] as const) {
    const context = await browser.newContext({
      colorScheme,
      reducedMotion: 'reduce',
      viewport: { width: 1280, height: 900 },
    })
    const page = await context.newPage()
    page.setDefaultTimeout(waitMsMax)
    const foreign = new Set<string>()
    const faults: string[] = []
    let bytes = 0
    page.on('request', (request) => {
      if (new URL(request.url()).origin !== new URL(url).origin) foreign.add(request.url())
    })
    page.on('response', (response) => {
      bytes += Number(response.headers()['content-length'] ?? 0)
    })
    page.on('pageerror', (error) => faults.push(String(error)))
    await page.goto(url, { waitUntil: 'load' })
    weight = bytes
    await page.waitForFunction('document.querySelector("#app")?.__vue_app__ !== undefined')
    await page.evaluate(axe.source)
    const { violations } = (await page.evaluate('axe.run(document, { resultTypes: ["violations"] })')) as axe.AxeResults
    for (const { id, nodes } of violations)
      findings.push(
        `${name} in ${colorScheme}: ${id}: ${nodes
          .map(({ html }) => html.slice(0, 160))
          .slice(0, 3)
          .join(' ')} (${nodes.length})`,
      )
    assert.deepEqual([...foreign], [], `${name}: requests to other hosts`)
    assert.deepEqual(faults, [], `${name}: errors`)
    await context.close()
  }
  assert.ok(weight <= weightMax, `${name} has ${weight} bytes compressed`)
  console.log(`ok ${name}: ${(weight / 1024).toFixed(0)} KB compressed, tried in both themes, no other host`)
}

async function trySearch(browser: Browser, url: string): Promise<void> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } })
  const page = await context.newPage()
  page.setDefaultTimeout(waitMsMax)
  await page.goto(url)
  await page.click('.DocSearch-Button')
  await page.fill('#localsearch-input', 'insufficient_credits')
  const result = page.locator('.result').first()
  await result.waitFor()
  const title = (await result.innerText()).replace(/\s+/g, ' ')
  await page.keyboard.press('Enter')
  await page.waitForURL((to) => to.pathname !== new URL(url).pathname)
  console.log(`ok search: "insufficient_credits" leads to ${title}`)
  await context.close()
}
