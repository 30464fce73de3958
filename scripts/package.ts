import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildConsole } from './console/build.ts'
import { bundle } from './package/bundle.ts'
import { compile } from './package/compile.ts'
import { type Manifest, packageManifest } from './package/manifest.ts'

// npm run package, which is npm pack --ignore-scripts=false
//
// npm runs this script before and after it packs. Before, it compiles the code and writes the manifest of the package.
// Afterwards it restores the checkout (decision 21). After an interrupted pack, the next one restores it, or node
// bin/node.mjs scripts/package.ts postpack

const root = join(import.meta.dirname, '..')
const manifest = join(root, 'package.json')
const kept = join(root, 'package.json.tmp')

const [part] = process.argv.slice(2)
restore()
if (part === 'prepack') await prepare()
else if (part !== 'postpack') throw new Error('say prepack or postpack, or run: npm run package')

async function prepare(): Promise<void> {
  const checkout: Manifest = JSON.parse(readFileSync(manifest, 'utf8'))
  const stems = Object.values(checkout.exports).flatMap((path) => /^\.\/src\/(.*)\.ts$/.exec(String(path))?.[1] ?? [])
  compile(root, stems)
  await bundle(join(root, 'lib'), join(root, 'lib/program'), { packages: 'external' })
  await buildConsole()
  // The manifest is replaced last, so that nothing has changed if an earlier step fails.
  copyFileSync(manifest, kept)
  writeFileSync(manifest, `${JSON.stringify(packageManifest(checkout), null, 2)}\n`)
}

function restore(): void {
  if (existsSync(kept)) copyFileSync(kept, manifest)
  rmSync(kept, { force: true })
  rmSync(join(root, 'lib'), { recursive: true, force: true })
}
