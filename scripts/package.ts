import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { compile } from './package/compile.ts'
import { type Manifest, packageManifest } from './package/manifest.ts'

// npm run package, which is npm pack --ignore-scripts=false
//
// npm calls this before and after it packs: what is packed is compiled and has a manifest of its own, and the checkout is
// as it was (decision 21). What a pack left that was interrupted is put back by the next one, or by
// node bin/node.mjs scripts/package.ts postpack

const root = join(import.meta.dirname, '..')
const manifest = join(root, 'package.json')
const kept = join(root, 'package.json.tmp')

const [part] = process.argv.slice(2)
restore()
if (part === 'prepack') prepare()
else if (part !== 'postpack') throw new Error('say prepack or postpack, or run: npm run package')

function prepare(): void {
  const checkout: Manifest = JSON.parse(readFileSync(manifest, 'utf8'))
  const stems = Object.values(checkout.exports).flatMap((path) => /^\.\/src\/(.*)\.ts$/.exec(String(path))?.[1] ?? [])
  compile(root, stems)
  // Last, so that nothing is changed where something fails.
  copyFileSync(manifest, kept)
  writeFileSync(manifest, `${JSON.stringify(packageManifest(checkout), null, 2)}\n`)
}

function restore(): void {
  if (existsSync(kept)) copyFileSync(kept, manifest)
  rmSync(kept, { force: true })
  rmSync(join(root, 'lib'), { recursive: true, force: true })
}
