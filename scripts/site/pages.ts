import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'

const root = join(import.meta.dirname, '../..')

/** A page of the repository or of the API. `path` is below the site's root and ends in `.md`. */
export type SitePage = { path: string; text: string }

const sources = ['README.md', '*.md', 'docs/**/*.md', 'bench/README.md', 'bench/notes/*.md']

/** Returns all pages of the repository, without comments. Their links lead to pages or files of the site. */
export function repositoryPages(): { pages: SitePage[]; files: Set<string> } {
  const paths = [...new Set(sources.flatMap((pattern) => globSync(pattern, { cwd: root })))].filter(
    (one) => !one.startsWith('node_modules'),
  )
  const files = new Set<string>()
  const pages = paths.map((path) => ({
    path: toSite(path),
    text: rewrite(path, readFileSync(join(root, path), 'utf8'), new Set(paths), files),
  }))
  return { pages, files }
}

/** Returns the path in the site. The `README.md` of a folder becomes the folder's index. */
function toSite(path: string): string {
  return path.replace(/(^|\/)README\.md$/, '$1index.md')
}

function rewrite(path: string, text: string, pages: Set<string>, files: Set<string>): string {
  return text
    .replace(/<!--.*?-->\n?/gs, '')
    .replace(/(!?)\[((?:[^[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)/g, (whole, image: string, label: string, link: string) => {
      if (/^(?:https?:|mailto:|#)/.test(link)) return whole
      const [to = '', section] = link.split('#')
      const target = normalize(join(dirname(path), to)).replace(/\/$/, '')
      const place = [target, `${target}/README.md`].find((one) => pages.has(one))
      if (place !== undefined)
        return `${image}[${label}](${toLink(path, toSite(place))}${section === undefined ? '' : `#${section}`})`
      if (!existsSync(join(root, target)) || statSync(join(root, target)).isDirectory()) return label
      files.add(target)
      return image ? `![${label}](${toLink(path, target)})` : `[${label}](${toLink(path, `files/${target}.txt`)})`
    })
}

function toLink(from: string, to: string): string {
  const link = relative(dirname(from), to)
  return link.startsWith('.') ? link : `./${link}`
}

type Group = { text: string; items: { text: string; link: string }[] }

/** Makes the sidebar from docs/README.md. Each heading becomes a group, and the first link of each table row a page. */
export function sidebarOf(index: string): Group[] {
  const groups: Group[] = []
  for (const line of index.split('\n')) {
    const heading = /^## (.+)$/.exec(line)
    if (heading) groups.push({ text: heading[1]!, items: [] })
    const row = /^\| ([^|]+) \|[^(]*\(([^)#\s]+)/.exec(line)
    if (!row || groups.length === 0) continue
    const place = toSite(normalize(join('docs', row[2]!.endsWith('/') ? `${row[2]}README.md` : row[2]!)))
    groups.at(-1)!.items.push({
      text: row[1]!.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1'),
      link: `/${place.replace(/(index)?\.md$/, '')}`,
    })
  }
  return groups.filter(({ items }) => items.length > 0)
}
