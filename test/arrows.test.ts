import assert from 'node:assert'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import test from 'node:test'

/**
 * Who may import whom. A room is a folder of `src` or a file directly in it. `types`: only with `import type`.
 * `outside`: packages and `node:` modules; where it is left out the room has no door to the outside at all.
 */
type Arrow = { may?: readonly string[]; types?: readonly string[]; outside?: readonly string[] }

const dialect: Arrow = {
  may: ['inference', 'catalog', 'errors', 'step', 'sse', 'json', 'json-edit', 'digest', 'wires'],
}
const store: Arrow = {
  may: ['accounts', 'upstream', 'inference', 'errors', 'json', 'digest', 'request-id'],
  types: ['catalog', 'config'],
  outside: ['node:*'],
}

const arrows: Record<string, Arrow> = {
  errors: {},
  step: {},
  sse: { types: ['step'] },
  json: { types: ['inference'], outside: ['node:buffer', 'node:crypto'] },
  log: { may: ['accounts'], types: ['gateway', 'config'], outside: ['node:*'] },
  'load-watch': { outside: ['node:*'] },
  seal: { may: ['errors'], types: ['inference', 'config', 'catalog', 'gateway'], outside: ['node:*'] },
  'json-edit': { may: ['json'] },
  digest: { outside: ['node:crypto'] },
  'request-id': { outside: ['node:crypto'] },

  inference: { may: ['step', 'json', 'digest', 'errors'] },
  catalog: { may: ['inference', 'errors'] },
  wires: { ...dialect, may: [...dialect.may!, 'wires/messages', 'wires/chat', 'wires/responses'] },
  'wires/messages': dialect,
  'wires/chat': dialect,
  'wires/responses': dialect,
  accounts: { may: ['errors', 'digest'], types: ['inference', 'catalog'], outside: ['node:crypto'] },
  upstream: {
    may: ['errors', 'json', 'sse', 'digest'],
    types: ['catalog', 'config', 'inference'],
    outside: ['node:*', 'undici'],
  },
  gateway: {
    may: [
      'accounts',
      'upstream',
      'wires',
      'wires/messages',
      'wires/chat',
      'wires/responses',
      'inference',
      'catalog',
      'errors',
      'step',
      'sse',
      'json',
      'json-edit',
      'digest',
    ],
    types: ['config'],
  },
  http: {
    may: ['gateway', 'errors', 'wires', 'request-id', 'json'],
    types: ['catalog', 'config', 'accounts', 'inference'],
    outside: ['node:*'],
  },
  'store/sqlite': store,
  'store/memory': store,
  config: {
    may: ['catalog', 'errors', 'json', 'inference', 'accounts', 'simulator'],
    outside: ['yaml', 'zod', 'node:*'],
  },
  simulator: { may: ['json'], outside: ['node:*', 'yaml', 'zod'] },
  cli: {
    may: [
      'main',
      'accounts',
      'catalog',
      'config',
      'inference',
      'errors',
      'simulator',
      'store/sqlite',
      'store/memory',
      'digest',
      'request-id',
      'json',
      'sse',
    ],
    outside: ['node:*', 'commander', '../../package.json'],
  },
}

/** The composition root, in three files, may import everything. */
const roots = ['main', 'server', 'demo']
const entries = ['cli/cli.ts']

const src = new URL('../src/', import.meta.url).pathname
const files = globSync('**/*.ts', { cwd: src })
  .map((file) => file.replaceAll('\\', '/'))
  .sort()
const imports = new Map(files.map((file) => [file, readImports(file)]))

test('every import follows the arrows', () => {
  const offences: string[] = []
  for (const [file, found] of imports) {
    const from = roomOf(file)
    const arrow = arrows[from]
    if (roots.includes(from)) continue
    if (!arrow) offences.push(`src/${file}: the room ${from} is not in the table of arrows`)
    for (const { specifier, target, isType, line } of found) {
      if (arrow && !isAllowed(arrow, from, specifier, target, isType)) {
        const to = target ? roomOf(target) : specifier
        const asType = target && !isType && arrow.types?.includes(to) ? ', but for types' : ''
        offences.push(`src/${file}:${line}: ${from} may not import ${to}${asType}: '${specifier}'`)
      }
    }
  }
  assert.deepStrictEqual(offences, [])
})

test('every import finds its file', () => {
  const lost = [...imports].flatMap(([file, found]) =>
    found
      .filter(({ target }) => target && !imports.has(target))
      .map(({ line, specifier }) => `src/${file}:${line}: ${specifier}`),
  )
  assert.deepStrictEqual(lost, [])
})

test('no cycles, type imports included', () => {
  assert.deepStrictEqual(findCycles(), [])
})

test('every file is imported by another, or is an entry', () => {
  const used = new Set([...imports.values()].flat().map(({ target }) => target))
  assert.deepStrictEqual(
    files.filter((file) => !used.has(file) && !entries.includes(file)).map((file) => `src/${file}`),
    [],
  )
})

type Import = { specifier: string; target: string | undefined; isType: boolean; line: number }

function readImports(file: string): Import[] {
  // An import inside a template is text that we print.
  const text = readFileSync(join(src, file), 'utf8').replace(/`[^`]*`/g, (template) => template.replace(/[^\n]/g, ' '))
  const names = String.raw`\*(?:\s+as\s+\w+)?|\{[^}]*\}|[\w$]+(?:\s*,\s*\{[^}]*\})?`
  const from = new RegExp(String.raw`^(?:import|export)\s+(type\s+)?(${names})\s+from\s+'([^']+)'`, 'gm')
  // A module that is only loaded: for its effect, when it is needed, or as a worker.
  const loaded = /(?:^import\s+|\bimport\(\s*|new URL\(\s*)'([^']+\.ts|node:[^']+)'/gm
  const found = [...text.matchAll(from)].map(({ 1: type, 2: list = '', 3: specifier = '', index }) => {
    const parts = list.startsWith('{')
      ? list
          .slice(1, -1)
          .split(',')
          .map((part) => part.trim())
          .filter(Boolean)
      : []
    return {
      specifier,
      isType: Boolean(type) || (parts.length > 0 && parts.every((part) => part.startsWith('type '))),
      index,
    }
  })
  for (const { 1: specifier = '', index } of text.matchAll(loaded)) found.push({ specifier, isType: false, index })
  return found.map(({ specifier, isType, index }) => ({
    specifier,
    isType,
    target: /^\..*\.ts$/.test(specifier) ? posix.normalize(posix.join(posix.dirname(file), specifier)) : undefined,
    line: text.slice(0, index).split('\n').length,
  }))
}

/** `wires/chat/stream.ts` is in `wires/chat`, `catalog/model.ts` and all below in `catalog`, `errors.ts` in `errors`. */
function roomOf(file: string): string {
  const parts = dirname(file).split('/')
  if (parts[0] === '.') return posix.basename(file, '.ts')
  return parts[0] === 'wires' || parts[0] === 'store' ? parts.slice(0, 2).join('/') : parts[0]!
}

function isAllowed(
  arrow: Arrow,
  from: string,
  specifier: string,
  target: string | undefined,
  isType: boolean,
): boolean {
  if (target === undefined) {
    return (arrow.outside ?? []).some(
      (door) => door === specifier || (door === 'node:*' && specifier.startsWith('node:')),
    )
  }
  const to = roomOf(target)
  return to === from || Boolean(arrow.may?.includes(to)) || (isType && Boolean(arrow.types?.includes(to)))
}

function findCycles(): string[] {
  const cycles: string[] = []
  const done = new Set<string>()
  const path: string[] = []
  for (const file of files) visit(file)
  return cycles

  function visit(file: string): void {
    const at = path.indexOf(file)
    if (at >= 0) cycles.push([...path.slice(at), file].map((name) => `src/${name}`).join(' > '))
    if (at >= 0 || done.has(file)) return
    path.push(file)
    for (const { target } of imports.get(file) ?? []) if (target) visit(target)
    path.pop()
    done.add(file)
  }
}
