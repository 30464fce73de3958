import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, globSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import test from 'node:test'
import { isNewEnough, oldestNode } from '../../bin/launch.mjs'
import { engineRange, type Manifest, packageManifest } from '../../scripts/package/manifest.ts'
import { testFolder } from '../support/folder.ts'

/* What is published, and the Node that runs a checkout. That a package installs and runs is scripts/install-trials.ts. */

const root = join(import.meta.dirname, '../..')
const checkout: Manifest & Record<string, Record<string, string>> = readJson('package.json')

function readJson(path: string) {
  return JSON.parse(readFileSync(join(root, path), 'utf8'))
}

test('B26 X1 the pinned Node matches the recorded checksums on every platform', () => {
  const { version, binaries } = readJson('scripts/pinned-node.json')
  const locked = readJson('package-lock.json').packages
  const pinned = Object.keys(checkout.optionalDependencies!)
  assert.deepEqual(Object.keys(binaries).sort(), pinned.sort())
  for (const name of pinned) {
    assert.equal(checkout.optionalDependencies![name], version, name)
    assert.equal(locked[`node_modules/${name}`].version, version, name)
    const file = join(root, 'node_modules', name, binaries[name].file)
    // A platform has one of them.
    if (!existsSync(file)) continue
    assert.equal(createHash('sha256').update(readFileSync(file)).digest('hex'), binaries[name].sha256, file)
  }
})

test('X1 X8 a checkout accepts any Node, because it brings its own, and cannot be published by mistake', () => {
  assert.equal(existsSync(join(root, 'package.json.tmp')), false, 'run: node bin/node.mjs scripts/package.ts postpack')
  assert.deepEqual([checkout.engines, checkout['private']], [{ node: '>=20' }, true])
})

test('X1 no package of the lockfile requires a newer Node for npm than the checkout does: it runs in the pinned one', () => {
  const { packages } = readJson('package-lock.json') as { packages: Record<string, { engines?: { node?: string } }> }
  const asking = Object.entries(packages).filter(
    ([, { engines }]) => Number(/>= ?(\d+)/.exec(engines?.node ?? '')?.[1]) > 20,
  )
  assert.deepEqual(
    Object.fromEntries(asking),
    {},
    'npm would warn, or refuse with engine-strict: take these engines out',
  )
})

test('N-F1 N-F2 X8 a package has compiled exports, names the Node that it requires and brings none', () => {
  const { dependencies, files, ...manifest } = packageManifest(checkout)
  const { version, description, keywords } = checkout
  assert.deepEqual(manifest, {
    name: 'triwire',
    version,
    description,
    keywords,
    license: 'MIT',
    type: 'module',
    engines: { node: '^22.22.1 || ^24.13.1 || >=26.0.0' },
    bin: { triwire: 'bin/triwire.mjs' },
    exports: {
      '.': { types: './lib/process/start.d.ts', default: './lib/process/start.js' },
      './simulator': { types: './lib/simulator/simulator.d.ts', default: './lib/simulator/simulator.js' },
      './package.json': './package.json',
    },
    imports: { '#probes': './lib/conformance/src/probes.js' },
  })
  assert.deepEqual(Object.keys(dependencies as object), [
    'commander',
    'jsonc-parser',
    'openid-client',
    'pg',
    'toml-eslint-parser',
    'yaml',
    'zod',
  ])
  assert.deepEqual(files, [
    'bin/triwire.mjs',
    'bin/launch.mjs',
    'bin/signals.mjs',
    'lib',
    'console/dist',
    'docs',
    'examples',
    'ops',
    'triwire.schema.json',
    ...[
      'ARCHITECTURE.md',
      'CHANGELOG.md',
      'CONTRIBUTING.md',
      'SECURITY.md',
      'bench/README.md',
      'bench/notes',
      'image/compose.yaml',
    ],
  ])
})

test('X8 no page of the package refers its reader to a file that is not in it', () => {
  const { files } = packageManifest(checkout)
  // Npm puts the last three into every package.
  const shipped = [...files, 'README.md', 'LICENSE', 'package.json']
  const pages = globSync(['README.md', 'docs/**/*.md', 'CHANGELOG.md', 'SECURITY.md'], { cwd: root })
  const dead = pages.flatMap((page) =>
    Array.from(readFileSync(join(root, page), 'utf8').matchAll(/\]\(([^)#\s:]+)(?:#[^)]*)?\)/g), ([, link = '']) =>
      join(dirname(page), link),
    )
      .filter((path) => !shipped.some((file) => path === file || path.startsWith(`${file}/`)))
      .map((path) => `${page}: ${path}`),
  )
  assert.deepEqual(dead, [])
})

test('X8 a package has all that it needs: the files of its launcher, and no reference to source outside', () => {
  const { files } = packageManifest(checkout)
  // By `prepack`.
  const made = ['lib', 'console/dist']
  for (const name of files.filter((name) => !made.includes(name))) assert.ok(existsSync(join(root, name)), name)
  for (const file of files.filter((name) => name.endsWith('.mjs'))) {
    for (const [, path = ''] of readFileSync(join(root, file), 'utf8').matchAll(/from '\.\/([^']+)'/g))
      assert.ok(files.includes(`bin/${path}`), path)
  }
  // Paths that the compiler does not see; scripts/package/compile.ts rewrites those of workers.
  for (const file of globSync('src/**/*.ts', { cwd: root })) {
    const text = readFileSync(join(root, file), 'utf8')
    assert.doesNotMatch(text, /import\.meta\.(dirname|filename)/, file)
    // `lib` of the package lies where `src` lay, so that a path leads to the same place from both.
    for (const [, path = ''] of text.matchAll(/new URL\(\s*'([^']*)', import\.meta\.url\)/g))
      assert.match(join(dirname(file), path), /^(package\.json|bin\/triwire\.mjs|console|src\/[\w/-]+\.ts)$/, file)
  }
})

test('X8 the range of Node versions follows from the list of oldest releases', () => {
  assert.equal(engineRange(oldestNode.checkout), '^24.13.1 || >=26.0.0')
})

test('the unit of the examples matches docs/operating.md, and compose waits as long for a drain', () => {
  const read = (path: string) => readFileSync(join(root, path), 'utf8')
  const unit = read('examples/triwire.service')
  assert.ok(read('docs/operating.md').includes(`\n\`\`\`ini\n${unit}\`\`\`\n`))
  const [, seconds] = /^TimeoutStopSec=(\d+)$/m.exec(unit)!
  assert.ok(read('image/compose.yaml').includes(`stop_grace_period: ${seconds}s`))
})

test('N-F1 X8 a package that was packed without scripts says how to pack', () => {
  const place = join(testFolder('packed'), 'node_modules/triwire')
  cpSync(join(root, 'bin'), join(place, 'bin'), { recursive: true })
  mkdirSync(join(place, 'src'))
  const { status, stderr } = launch(place, process.versions.node)
  assert.equal(status, 1)
  assert.match(stderr, /^This package of triwire was packed without its scripts.*'npm run package'/)
})

test('X8 a package on an older Node names the one that it requires', () => {
  const place = join(testFolder('packed'), 'triwire')
  cpSync(join(root, 'bin'), join(place, 'bin'), { recursive: true })
  assert.deepEqual(launch(place, '20.20.2'), {
    status: 1,
    stderr:
      'triwire needs Node 22.22.1, 24.13.1, 26.0.0 or newer; this is Node 20.20.2. Install one of them, and triwire again with its npm.\n',
  })
})

test('X8 every line of Node has an oldest release that runs triwire; lines in between do not', () => {
  const runs = ['22.22.1', '22.23.3', '24.13.1', '24.21.0', '26.0.0', '26.10.0', '27.1.0', '28.0.0-nightly']
  const doesNot = ['18.20.8', '20.20.2', '22.22.0', '23.11.1', '24.9.9', '24.13.0', '25.9.0']
  for (const version of runs) assert.equal(isNewEnough(version, oldestNode.package), true, version)
  for (const version of doesNot) assert.equal(isNewEnough(version, oldestNode.package), false, version)
  assert.equal(isNewEnough('22.23.3', oldestNode.checkout), false)
})

/** Runs a copy of the launcher, which is told that it is on another Node. */
function launch(place: string, version: string) {
  const versions = `Object.defineProperty(process,'versions',{value:{...process.versions,node:'${version}'}})`
  const args = ['--import', `data:text/javascript,${encodeURIComponent(versions)}`, join(place, 'bin/triwire.mjs')]
  const options = { encoding: 'utf8', env: { ...process.env, NODE_NO_WARNINGS: '1' } } as const
  const { status, stderr } = spawnSync(process.execPath, args, options)
  return { status, stderr }
}
