import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// Compiles assembly/scan.ts to WebAssembly and writes it where the program reads it: src/bytes/scan-code.ts.
// `--check` only says whether that is up to date.

const root = join(import.meta.dirname, '..')
const target = join(root, 'src/bytes/scan-code.ts')
// SIMD is in every Node since 16.4. `stub`: nothing is allocated, so there is no collector in it.
const flags = ['-O3', '--converge', '--enable', 'simd', '--runtime', 'stub', '--noAssert', '--initialMemory', '2']

const about = '/** assembly/scan.ts as WebAssembly, in base 64: made by `npm run generate`. */'
const made = `${about}\nexport const scanCode =\n  '${compile().toString('base64')}'\n`
if (readFileSync(target, 'utf8') !== made) {
  if (process.argv.includes('--check')) {
    console.error('src/bytes/scan-code.ts is out of date: run npm run generate')
    process.exitCode = 1
  } else {
    writeFileSync(target, made)
    console.log('wrote src/bytes/scan-code.ts')
  }
}

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
