import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { rewritePage } from '../test/translation/page.ts'
import type { ClientWire } from '../test/translation/pump.ts'

/*
 * Rewrites the computed parts of the pages in test/pages: the request to the upstream, and the answer to the client.
 * Read the difference before you commit it, because the pages are the documentation of the translation.
 *
 *     npm run pages:update
 */

const folder = join(import.meta.dirname, '../test/pages')

export type PageFile = { path: string; client: ClientWire; upstream: ClientWire; name: string }

export function findPages(): PageFile[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md') && file.includes('-to-'))
    .sort()
    .map((file) => {
      const [pair, name] = file.split(/[/\\]/) as [string, string]
      const [client, upstream] = pair.split('-to-') as [ClientWire, ClientWire]
      return { path: join(folder, file), client, upstream, name: name.slice(0, -3) }
    })
}

if (process.argv[1] === import.meta.filename) {
  let changed = 0
  for (const { path, client, upstream } of findPages()) {
    const page = readFileSync(path, 'utf8')
    const rewritten = rewritePage(page, client, upstream).page
    if (rewritten === page) continue
    writeFileSync(path, rewritten)
    changed++
  }
  console.log(`${changed} pages rewritten`)
}
