import { spawnSync } from 'node:child_process'
import { globSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

/** Match paths that tsc leaves unchanged: those of worker files in scripts, and those of imports in declarations. */
const worker = /new URL\('(\.[^']*)\.ts', import\.meta\.url\)/g
const declared = /(from |import\()(['"])(\.[^'"]*)\.ts\2/g

/**
 * Compiles `src` to `lib` below the root, with source maps that contain the sources, and with the declarations of the
 * package's exports. The files of `conformance` that it imports go to `lib/conformance`.
 * @param entries the declarations to keep, below `lib` and without an extension
 * @throws if tsc finds a mistake, or if a path to a source is left
 */
export function compile(root: string, entries: readonly string[]): void {
  const lib = join(root, 'lib')
  rmSync(lib, { recursive: true, force: true })
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  const { status } = spawnSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.package.json')], { stdio: 'inherit' })
  if (status !== 0) throw new Error('tsc found mistakes')
  // tsc has kept the folder of the sources, because it has compiled another one too.
  for (const name of readdirSync(join(lib, 'src'))) renameSync(join(lib, 'src', name), join(lib, name))
  rmSync(join(lib, 'src'), { recursive: true })
  rewrite('!(conformance)/**/*.js.map', (text) => text.replace('"sources":["../', '"sources":["'))
  rewrite('**/*.js', (text) => text.replace(worker, "new URL('$1.js', import.meta.url)"))
  rewrite('**/*.d.ts', (text) => text.replace(declared, '$1$2$3.js$2'))
  const left = globSync('**/*.js', { cwd: lib }).filter((file) => /'\.[^'\n]*\.ts'/.test(read(file)))
  if (left.length > 0) throw new Error(`a path to a source is left in ${left.join(', ')}`)
  const reached = new Set<string>()
  for (const entry of entries) reach(entry)
  for (const file of globSync('**/*.d.ts', { cwd: lib })) if (!reached.has(file)) rmSync(join(lib, file))

  function rewrite(pattern: string, change: (text: string) => string): void {
    for (const file of globSync(pattern, { cwd: lib })) writeFileSync(join(lib, file), change(read(file)))
  }

  /** Keeps a declaration and everything that it imports. */
  function reach(stem: string): void {
    const file = `${stem}.d.ts`
    if (reached.has(file)) return
    reached.add(file)
    for (const [, , , path = ''] of read(file).matchAll(/(from |import\()(['"])(\.[^'"]*)\.js\2/g))
      reach(normalize(join(dirname(stem), path)))
  }

  function read(file: string): string {
    return readFileSync(join(lib, file), 'utf8')
  }
}
