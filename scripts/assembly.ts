import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { putGenerated } from './support/generated.ts'

// Compiles assembly/ to WebAssembly, in files of src. `--check` only reports whether they are up to date.

const modules = { scan: 'src/bytes/scan-code.ts', estimate: 'src/inference/estimate-code.ts' }

const root = join(import.meta.dirname, '..')
// All versions of Node since 16.4 have SIMD. `stub` never frees memory, which suits modules that allocate none.
const flags = ['-O3', '--converge', '--enable', 'simd', '--runtime', 'stub', '--noAssert', '--initialMemory', '2']

const cache = join(root, 'node_modules/.cache/triwire/assembly')
const isCheck = process.argv.includes('--check')

for (const [name, target] of Object.entries(modules)) {
  const found = join(cache, name)
  // Skipped if nothing has changed, because the compiler takes three seconds.
  if (isCheck && existsSync(found) && readFileSync(found, 'utf8') === digest(name, target)) continue
  putGenerated(target, () => write(name))
  if (process.exitCode) continue
  mkdirSync(cache, { recursive: true })
  writeFileSync(found, digest(name, target))
}

/** Returns a digest of the source, the compiled file and the compiler. If it is the same, the file is up to date. */
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
      // The compiler's output is shown only after a failure, in the error.
      stdio: 'pipe',
    })
    return readFileSync(file)
  } finally {
    rmSync(folder, { recursive: true })
  }
}
