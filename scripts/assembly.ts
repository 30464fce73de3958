import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { putGenerated } from './support/generated.ts'

// Compiles assembly/ to WebAssembly, into the files that the program reads. `--check` only reports whether they are up to date.

const modules = { scan: 'src/bytes/scan-code.ts', estimate: 'src/inference/estimate-code.ts' }

const root = join(import.meta.dirname, '..')
// SIMD is in every Node since 16.4. With `stub` nothing is ever freed, which suits modules that allocate nothing.
const flags = ['-O3', '--converge', '--enable', 'simd', '--runtime', 'stub', '--noAssert', '--initialMemory', '2']

const cache = join(root, 'node_modules/.cache/triwire/assembly')
const isCheck = process.argv.includes('--check')

for (const [name, target] of Object.entries(modules)) {
  const found = join(cache, name)
  // The compiler takes three seconds, and rarely has anything new to compile.
  if (isCheck && existsSync(found) && readFileSync(found, 'utf8') === digest(name, target)) continue
  putGenerated(target, () => write(name))
  if (process.exitCode) continue
  mkdirSync(cache, { recursive: true })
  writeFileSync(found, digest(name, target))
}

/** Of all that decides whether a compiled file is up to date: the source, the file, and what compiles. */
function digest(name: string, target: string): string {
  const hash = createHash('sha256')
  for (const file of [`assembly/${name}.ts`, target, 'scripts/assembly.ts', 'package-lock.json'])
    hash.update(readFileSync(join(root, file))).update('\0')
  return hash.digest('hex')
}

function write(name: string): string {
  const about = `/** assembly/${name}.ts as WebAssembly, in base 64: made by \`npm run generate\`. */`
  return `${about}\nexport const ${name}Code =\n  '${compile(name).toString('base64')}'\n`
}

function compile(name: string): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'triwire-'))
  const file = join(folder, `${name}.wasm`)
  try {
    const compiler = join(root, 'node_modules/assemblyscript/bin/asc.js')
    execFileSync(process.execPath, [compiler, `assembly/${name}.ts`, '--outFile', file, ...flags], {
      cwd: root,
      // The compiler's output after a success is of no use; after a failure the error contains it.
      stdio: 'pipe',
    })
    return readFileSync(file)
  } finally {
    rmSync(folder, { recursive: true })
  }
}
