import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { putGenerated } from './support/generated.ts'

// Compiles assembly/scan.ts to WebAssembly and writes it where the program reads it: src/bytes/scan-code.ts.
// `--check` only says whether that is up to date.

const root = join(import.meta.dirname, '..')
// SIMD is in every Node since 16.4. `stub`: nothing is allocated, so there is no collector in it.
const flags = ['-O3', '--converge', '--enable', 'simd', '--runtime', 'stub', '--noAssert', '--initialMemory', '2']

const about = '/** assembly/scan.ts as WebAssembly, in base 64: made by `npm run generate`. */'
putGenerated('src/bytes/scan-code.ts', () => `${about}\nexport const scanCode =\n  '${compile().toString('base64')}'\n`)

function compile(): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'triwire-'))
  const file = join(folder, 'scan.wasm')
  try {
    const compiler = join(root, 'node_modules/assemblyscript/bin/asc.js')
    execFileSync(process.execPath, [compiler, 'assembly/scan.ts', '--outFile', file, ...flags], { cwd: root })
    return readFileSync(file)
  } finally {
    rmSync(folder, { recursive: true })
  }
}
