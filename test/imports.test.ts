import assert from 'node:assert'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import test from 'node:test'

/**
 * The imports that a module may have. A module is a folder of `src`, or a file directly in it.
 * `may` lists modules; from those in `types` only `import type` is allowed. `outside` lists packages and `node:` modules.
 * A module without `outside` may import neither.
 */
type ImportRule = { may?: readonly string[]; types?: readonly string[]; outside?: readonly string[] }

const dialect: ImportRule = {
  may: ['inference', 'bytes', 'catalog', 'wires/requests', 'wires/answers'],
  types: ['wires'],
}

const rules: Record<string, ImportRule> = {
  errors: { types: ['limit-reasons'] },
  'limit-reasons': {},
  registers: {},
  bytes: { outside: ['node:buffer', 'node:crypto', 'node:zlib'] },
  ids: { outside: ['node:crypto'] },
  clouds: { may: ['bytes'], outside: ['node:crypto', 'node:zlib'] },
  inference: { may: ['ids', 'bytes'] },
  catalog: { may: ['inference'], outside: ['zod', './presets.json'] },
  wires: {
    may: ['wires/messages', 'wires/chat', 'wires/responses'],
    types: ['wires/requests', 'wires/answers', 'inference', 'catalog', 'bytes'],
  },
  'wires/requests': { may: ['inference', 'errors', 'bytes', 'ids', 'catalog'], types: ['wires'] },
  'wires/answers': { may: ['inference', 'errors', 'bytes', 'ids'], types: ['catalog'] },
  'wires/messages': dialect,
  'wires/chat': dialect,
  'wires/responses': { ...dialect, may: [...dialect.may!, 'errors', 'ids'] },
  accounts: { may: ['ids', 'inference', 'registers'], types: ['catalog'], outside: ['node:crypto', 'node:zlib'] },
  upstream: {
    may: ['catalog', 'clouds', 'errors', 'config', 'http1'],
    types: ['accounts', 'inference'],
    outside: ['node:*'],
  },
  gateway: {
    may: [
      'accounts',
      'upstream',
      'wires',
      'wires/requests',
      'wires/answers',
      'inference',
      'catalog',
      'errors',
      'limit-reasons',
      'bytes',
      'registers',
      'gateway/fairness',
    ],
    types: ['config'],
  },
  'gateway/fairness': { may: ['errors'] },
  operations: { may: ['accounts', 'catalog', 'ids', 'limit-reasons'], outside: ['zod'] },
  http1: { may: ['bytes'] },
  http: {
    may: ['gateway', 'gateway/fairness', 'errors', 'wires', 'wires/answers', 'ids', 'bytes', 'http1'],
    types: ['catalog', 'config'],
    outside: ['node:*'],
  },
  admin: {
    may: ['http', 'operations', 'gateway', 'wires', 'errors', 'ids', 'bytes'],
    types: ['accounts', 'config', 'gateway/fairness'],
    outside: ['node:*'],
  },
  host: { may: ['store/files', 'config'], outside: ['node:*'] },
  log: { may: ['accounts'], types: ['config', 'gateway'], outside: ['node:fs'] },
  programs: { may: ['bytes', 'catalog', 'http'], outside: ['node:*'] },
  live: {
    may: [
      'accounts',
      'bytes',
      'catalog',
      'config',
      'errors',
      'gateway',
      'host',
      'ids',
      'log',
      'operations',
      'programs',
      'upstream',
      'wires',
      'wires/answers',
      'wires/requests',
    ],
    types: ['admin', 'inference', 'limit-reasons'],
    outside: ['node:crypto'],
  },
  'sign-in': {
    may: ['accounts', 'admin', 'errors', 'gateway', 'ids', 'operations', 'upstream', 'wires'],
    types: ['config', 'http'],
    outside: ['node:crypto', 'openid-client'],
  },
  webhooks: {
    may: ['accounts', 'ids', 'telemetry', 'upstream'],
    types: ['config', 'gateway', 'log', 'operations'],
    outside: ['node:crypto'],
  },
  telemetry: {
    may: ['catalog', 'upstream'],
    types: ['gateway', 'inference', 'config'],
    outside: ['node:crypto', 'node:fs', 'node:os', 'node:perf_hooks', 'node:timers/promises'],
  },
  'store/files': { may: ['accounts'], outside: ['node:*'] },
  'store/serving': { may: ['accounts', 'store/files'], outside: ['node:worker_threads'] },
  'store/sql': { may: ['accounts'], types: ['store/files'] },
  'store/sqlite': { may: ['accounts', 'store/files', 'store/serving', 'store/sql'], outside: ['node:*'] },
  'store/postgres': {
    may: ['accounts', 'store/files', 'store/serving', 'store/sql', 'ids'],
    outside: ['pg', 'node:*'],
  },
  store: {
    may: ['accounts', 'store/sqlite', 'store/postgres', 'store/serving', 'store/files'],
    types: ['config'],
    outside: ['node:worker_threads'],
  },
  'store/copy': {
    may: ['accounts', 'store/sql', 'store/sqlite', 'store/postgres', 'store/files'],
    types: ['config'],
    outside: ['node:*'],
  },
  'store/archive': {
    may: ['accounts', 'store/sql', 'store/sqlite', 'store/postgres', 'store/files'],
    types: ['config'],
    outside: ['node:*'],
  },
  config: {
    may: ['catalog', 'bytes', 'accounts'],
    types: ['clouds'],
    outside: ['yaml', 'zod', 'node:*'],
  },
  simulator: { may: ['bytes', 'catalog'], outside: ['node:*', 'yaml', 'zod'] },
  cli: {
    may: [
      'process',
      'http',
      'live',
      'programs',
      'host',
      'operations',
      'accounts',
      'catalog',
      'config',
      'sign-in',
      'simulator',
      'store',
      'store/archive',
      'store/copy',
      'store/files',
      'bytes',
      'upstream',
    ],
    // `#probes` is the part of conformance/ that asks and reads as a client does (issue 51).
    outside: [
      'node:*',
      'commander',
      '#probes',
      'zod',
      'yaml',
      'jsonc-parser',
      'toml-eslint-parser',
      '../../bin/signals.mjs',
    ],
  },
  process: {
    may: [
      'accounts',
      'admin',
      'config',
      'host',
      'http',
      'live',
      'log',
      'sign-in',
      'store',
      'store/files',
      'telemetry',
      'webhooks',
    ],
    types: ['gateway', 'upstream'],
    outside: ['node:*', '../../bin/signals.mjs'],
  },
}

/** The composition root: these files build every part, and may import everything. */
const roots = ['process/main.ts', 'process/server.ts', 'process/start.ts']
/** The program, and what the package exports that nobody here uses. */
const entries = ['cli/cli.ts', 'cli/token.ts', 'process/start.ts']

const src = new URL('../src/', import.meta.url).pathname
const files = globSync('**/*.ts', { cwd: src })
  .map((file) => file.replaceAll('\\', '/'))
  .sort()
const imports = new Map(files.map((file) => [file, readImports(file)]))

test('every import follows the rules', () => {
  const offences: string[] = []
  for (const [file, found] of imports) {
    const from = moduleOf(file)
    const rule = rules[from]
    if (roots.includes(file)) continue
    if (!rule) offences.push(`src/${file}: the module ${from} is not in the table of import rules`)
    for (const { specifier, target, isType, line } of found) {
      if (rule && !isAllowed(rule, from, specifier, target, isType)) {
        const to = target ? moduleOf(target) : specifier
        const asType = target && !isType && rule.types?.includes(to) ? ', but for types' : ''
        offences.push(`src/${file}:${line}: ${from} may not import ${to}${asType}: '${specifier}'`)
      }
    }
  }
  assert.deepStrictEqual(offences, [])
})

test('every permission is used', () => {
  const used = new Map<string, Set<string>>()
  for (const [file, found] of imports) {
    if (roots.includes(file)) continue
    const from = moduleOf(file)
    const imported = used.get(from) ?? new Set()
    used.set(from, imported)
    for (const { specifier, target, isType } of found) {
      if (target) {
        imported.add(moduleOf(target))
        if (!isType) imported.add(`${moduleOf(target)} as a value`)
      } else for (const name of [specifier, 'node:*']) imported.add(name)
    }
  }
  const idle = Object.entries(rules).flatMap(([module, { may = [], types = [], outside = [] }]) => [
    ...may.filter((to) => !used.get(module)?.has(`${to} as a value`)).map((to) => `${module} needs no value of ${to}`),
    ...[...types, ...outside].filter((to) => !used.get(module)?.has(to)).map((to) => `${module} needs no ${to}`),
  ])
  assert.deepStrictEqual(idle, [])
})

/** The module that uses Node's HTTP: the simulator shares no code with what it tests. */
const nodeHttp = ['simulator']

test('issue 44 only the simulator uses Node’s HTTP and its fetch', () => {
  const offences = files
    .filter((file) => !nodeHttp.some((module) => file.startsWith(`${module}/`)))
    .flatMap((file) => {
      const code = readFileSync(join(src, file), 'utf8').replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*|`[^`]*`/gm, '')
      const found = code.match(/(?<![\w.#])fetch\(|globalThis\.fetch|'node:https?'|'node:http2'/g)
      return found ? [`src/${file}: ${found.join(', ')}`] : []
    })
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

test('no imports form a cycle, including imports of types', () => {
  assert.deepStrictEqual(findCycles(), [])
})

test('every file is imported by another, or is an entry', () => {
  const used = new Set([...imports.values()].flat().map(({ target }) => target))
  assert.deepStrictEqual(
    files.filter((file) => !used.has(file) && !entries.includes(file)).map((file) => `src/${file}`),
    [],
  )
})

test('the console imports types of src/operations and the texts of limit-reasons.ts, and nothing else of src', () => {
  const folder = new URL('../console/src/', import.meta.url).pathname
  const offences = globSync('**/*.{ts,tsx}', { cwd: folder }).flatMap((file) => {
    const text = readFileSync(join(folder, file), 'utf8')
    const found = text.matchAll(/^(?:import|export)\s+(type\s+)?[^'"]*?from\s+'([^']*\/src\/[^']+)'/gm)
    return [...found].flatMap(([, type, specifier = '']) =>
      specifier.endsWith('/src/limit-reasons.ts') || (type && /\/src\/operations\/[\w-]+\.ts$/.test(specifier))
        ? []
        : [`console/src/${file}: '${specifier}'`],
    )
  })
  assert.deepStrictEqual(offences, [])
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

/** `wires/chat/usage.ts` is in `wires/chat`, `catalog/model.ts` and all below in `catalog`, `errors.ts` in `errors`. */
function moduleOf(file: string): string {
  const parts = dirname(file).split('/')
  if (parts[0] === '.') return posix.basename(file, '.ts')
  const folder = parts.slice(0, 2).join('/')
  return folder in rules ? folder : parts[0]!
}

function isAllowed(
  rule: ImportRule,
  from: string,
  specifier: string,
  target: string | undefined,
  isType: boolean,
): boolean {
  if (target === undefined) {
    return (rule.outside ?? []).some(
      (name) => name === specifier || (name === 'node:*' && specifier.startsWith('node:')),
    )
  }
  const to = moduleOf(target)
  return to === from || Boolean(rule.may?.includes(to)) || (isType && Boolean(rule.types?.includes(to)))
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
