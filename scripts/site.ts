import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { apiPages } from './site/api-pages.ts'
import { repositoryPages, sidebarOf } from './site/pages.ts'

// npm run site
//
// Builds the documentation as a static site in site/dist/VERSION, beside the folders of other versions. It has the
// pages of the repository, the admin API from its OpenAPI document, each page also as Markdown, and llms.txt. VitePress
// is installed in site/ first, because only this script needs it (docs/decisions/0072-vitepress.md).

const root = join(import.meta.dirname, '..')
const site = join(root, 'site')
const sources = join(site, '.pages')
const { version: release } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
const version = release.split('.').slice(0, 2).join('.')
const out = join(site, 'dist', version)

if (!existsSync(join(site, 'node_modules/vitepress'))) run('npm', ['ci', '--ignore-scripts'])

rmSync(sources, { recursive: true, force: true })
const { pages: ours, files } = repositoryPages()
const { pages: api, document } = apiPages(release)
const pages = [...ours, ...api]
for (const { path, text } of pages) put(join(sources, path), text)
for (const file of files) {
  // Pictures are parts of their pages. Other files are served as text, so that a browser shows them.
  const to = /\.(?:png|svg)$/.test(file) ? join(sources, file) : join(sources, 'public/files', `${file}.txt`)
  mkdirSync(dirname(to), { recursive: true })
  copyFileSync(join(root, file), to)
}
put(join(sources, 'public/api/openapi.json'), JSON.stringify(document))
put(join(sources, 'public/api/openapi.json.txt'), JSON.stringify(document, undefined, 2))

const versions = [...new Set([version, ...globSync('*/index.html', { cwd: join(site, 'dist') }).map(dirname)])]
  .sort()
  .reverse()
const sidebar = [
  ...sidebarOf(readFileSync(join(root, 'docs/README.md'), 'utf8')),
  {
    text: 'Admin API',
    items: api.map(({ path }) => ({ text: path.slice(4, -3), link: `/${path.slice(0, -3)}` })),
  },
]
put(join(sources, 'site.json'), JSON.stringify({ version, versions, sidebar }))

run(process.execPath, [join(site, 'node_modules/vitepress/bin/vitepress.js'), 'build', '.'])

for (const { path, text } of pages) put(join(out, path), text)
put(join(out, 'llms.txt'), llms())
put(join(site, 'dist/llms.txt'), llms().replaceAll('](', `](${version}/`))
put(
  join(site, 'dist/index.html'),
  `<!doctype html><html lang="en"><meta charset="utf-8"><title>triwire</title><meta http-equiv="refresh" content="0; url=${versions[0]}/"><a href="${versions[0]}/">triwire ${versions[0]}</a></html>\n`,
)
console.log(`${pages.length} pages in ${out}`)

/** Makes the list of pages for language models (https://llmstxt.org, as of 2026-11-28). */
function llms(): string {
  const lines = pages.map(({ path, text }) => `- [${/^# (.+)$/m.exec(text)?.[1] ?? path}](${path})`)
  return `# triwire\n\n> An HTTP gateway in front of many language models: three wires, any model on any of them, prepaid credit.\n\n## Pages\n\n${lines.join('\n')}\n`
}

function put(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

function run(program: string, args: readonly string[]): void {
  const { status } = spawnSync(program, args, { cwd: site, stdio: 'inherit' })
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} ends with ${status}`)
}
