import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import test from 'node:test'
import { jsonSchema } from '../src/config/schema.ts'

/*
 * Pages that people write are held to what is there: files they link to or name, and defaults they repeat. That the
 * numbers they cite lead somewhere is test/citations.test.ts. Pages that scripts make are checked by the scripts.
 */

const root = join(import.meta.dirname, '..')
const pages = globSync(
  ['*.md', 'docs/*.md', 'docs/{decisions,wires}/*.md', 'docs/translation/README.md', 'bench/{*,results/*,notes/*}.md'],
  { cwd: root },
)
  .filter((page) => !page.endsWith('conformance-tests.md'))
  .sort()

/** Links within the repository, without their anchors. */
const link = /\]\((?!https?:|#)([^)#\s]+)(?:#[^)\s]*)?\)/g
/** Files of ours that a text names in code style; a name with a star or an ellipsis stands for several. */
const named = /`((?:src|test|scripts|bench|examples|docs|bin)\/[\w./-]+\.\w+)`/g

test('every link of a page leads to a file', () => {
  assert.deepEqual(
    pages.flatMap((page) => lost(page, link, dirname(page))),
    [],
  )
})

test('every anchor of a link to a page leads to a heading', () => {
  const wrong = pages.flatMap((page) => {
    const links = withoutCode(read(page)).matchAll(/\]\(([^)#\s:]*)#([^)\s]+)\)/g)
    return [...links].flatMap(([, path = '', anchor = '']) => {
      const target = path === '' ? page : join(dirname(page), path)
      return !target.endsWith('.md') || anchorsOf(target).has(anchor) ? [] : [`${page}: ${path}#${anchor}`]
    })
  })
  assert.deepEqual(wrong, [])
})

const anchorsByPage = new Map<string, ReadonlySet<string>>()

/** Returns the anchors that a renderer gives the headings of a page. A heading that occurs again gets a number. */
function anchorsOf(page: string): ReadonlySet<string> {
  const known = anchorsByPage.get(page)
  if (known) return known
  const anchors = new Set<string>()
  anchorsByPage.set(page, anchors)
  for (const [, heading = ''] of withoutCode(read(page)).matchAll(/^#+ (.+)$/gm)) {
    const text = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const anchor = text.replace(/[^\p{L}\p{M}\p{N}\p{Pc} -]/gu, '').replaceAll(' ', '-')
    let name = anchor
    for (let count = 1; anchors.has(name); count++) name = `${anchor}-${count}`
    anchors.add(name)
  }
  return anchors
}

function withoutCode(text: string): string {
  return text.replace(/^```[\s\S]*?^```$/gm, '')
}

function read(page: string): string {
  return readFileSync(join(root, page), 'utf8')
}

test('every file that a page names exists', () => {
  assert.deepEqual(
    pages.flatMap((page) => lost(page, named, '')),
    [],
  )
})

function lost(page: string, pattern: RegExp, from: string): string[] {
  return [...read(page).matchAll(pattern)]
    .filter(([, path = '']) => !existsSync(join(root, from, path)))
    .map(([, path]) => `${page}: ${path}`)
}

/*
 * A default is decided in src/config/schema.ts and nowhere else. Where a page repeats one it says `key` (value), so
 * that it can be held to the schema here.
 */
const defaults = readDefaults('', jsonSchema())

test('a default that a page repeats is that of the schema', () => {
  const wrong = pages.flatMap((page) =>
    [...read(page).matchAll(/`([a-z_.]+)`\s+\((\d[\d,. ]*\d|\d)(?:\s?(ms|s|m|h)\b)?/g)].flatMap(
      ([said, key = '', number = '', unit = '']) => {
        const known = [...defaults].filter(
          ([path, fallback]) => (path === key || path.endsWith(`.${key}`)) && /^\d/.test(fallback),
        )
        const value = number.replace(/[, ]/g, '') + unit
        return known.length === 0 || known.some(([, fallback]) => fallback === value) ? [] : [`${page}: ${said})`]
      },
    ),
  )
  assert.deepEqual(wrong, [])
})

test('the pages name these defaults by their keys', () => {
  const told: Readonly<Record<string, readonly string[]>> = {
    'README.md': ['requests_per_minute', 'failed_auth_per_minute', 'body_bytes_max'],
    'docs/interface.md': ['requests_per_minute', 'failed_auth_per_minute', 'body_bytes_max'],
    'docs/rulings.md': [
      'failed_auth_per_minute',
      'body_bytes_max',
      'first_byte_stream',
      'first_byte_json',
      'settle_window',
    ],
    'docs/operating.md': ['drain_delay', 'drain_deadline', 'settle_deadline', 'hold_output_tokens', 'connections_max'],
    'docs/faults.md': ['headers', 'body', 'write_stall', 'idle', 'progress', 'requests_per_minute', 'connections_max'],
  }
  const silent = Object.entries(told).flatMap(([page, keys]) => {
    const text = read(page)
    return keys
      .filter((key) => !new RegExp(`\`(?:\\w+\\.)?${key}\`\\s+\\(\\d`).test(text))
      .map((key) => `${page}: ${key}`)
  })
  assert.deepEqual(silent, [])
})

test('the pages name the addresses that the server listens on, and the unit waits as long as a drain', () => {
  const readme = read('README.md')
  const listeners = [defaults.get('listen'), defaults.get('admin_listen')]
  for (const [address] of readme.matchAll(/127\.0\.0\.1:\d+/g)) assert.ok(listeners.includes(address), address)
  const [, seconds] = /^TimeoutStopSec=(\d+)$/m.exec(read('docs/operating.md'))!
  const drain = ['drain_delay', 'drain_deadline'].map((key) => Number.parseInt(defaults.get(`timeouts.${key}`)!, 10))
  assert.ok(Number(seconds) >= drain[0]! + drain[1]! + 5)
})

type SchemaNode = { default?: unknown; properties?: Record<string, SchemaNode>; anyOf?: SchemaNode[] }

/** Every key with a default of its own, by its path, as it is written. */
function readDefaults(path: string, node: SchemaNode): Map<string, string> {
  const nodes = [node, ...(node.anyOf ?? [])]
  return new Map(
    nodes.flatMap(({ properties = {} }) =>
      Object.entries(properties).flatMap(([key, child]): [string, string][] => {
        const at = path ? `${path}.${key}` : key
        const own = child.default === undefined || typeof child.default === 'object' ? [] : [String(child.default)]
        return [...own.map((value): [string, string] => [at, value]), ...readDefaults(at, child)]
      }),
    ),
  )
}

test('the index of decisions lists each of them once', () => {
  const index = read('docs/decisions/README.md')
  const listed = [...index.matchAll(/\]\((\d{4}-[\w-]+\.md)\)/g)].map(([, file]) => file!)
  const there = globSync('[0-9]*.md', { cwd: join(root, 'docs/decisions') })
  assert.deepEqual(listed.toSorted(), there.toSorted())
})
