import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { putGenerated } from './support/generated.ts'

// Compiles assembly/ to WebAssembly, into the files that the program reads. `--check` only reports whether they are up to date.

const modules = { scan: 'src/bytes/scan-code.ts', estimate: 'src/inference/estimate-code.ts' }

const root = join(import.meta.dirname, '..')
// SIMD is in every Node since 16.4. With `stub` nothing is ever freed, which suits modules that allocate nothing.
const flags = ['-O3', '--converge', '--enable', 'simd', '--runtime', 'stub', '--noAssert', '--initialMemory', '2']

for (const [name, target] of Object.entries(modules)) putGenerated(target, () => write(name))

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
