import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, extname, join } from 'node:path'
import { brotliCompressSync, constants } from 'node:zlib'
import { build } from 'esbuild'

const folder = join(import.meta.dirname, '../../console')

export type Built = { name: string; bytes: number; brotliBytes: number }

/**
 * Builds one script, one style and the icon, from `console` into `console/dist`.
 * @throws if a source cannot be parsed; types are checked by `npm run check`
 */
export async function buildConsole(): Promise<Built[]> {
  const { outputFiles } = await build({
    entryPoints: { console: join(folder, 'src/main.tsx'), style: join(folder, 'style/console.css') },
    outdir: 'dist',
    bundle: true,
    minify: true,
    format: 'esm',
    target: ['chrome123', 'firefox128', 'safari17.5'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
    logLevel: 'error',
    write: false,
  })
  const icon = readFileSync(join(folder, 'icon.svg'))
  const files = [
    ...outputFiles.map(({ path, contents }) => ({ name: basename(path), contents: Buffer.from(contents) })),
    { name: 'icon.svg', contents: icon },
  ]
  // Written to another folder first, so that a server that reads at this moment reads a whole build.
  const made = `${join(folder, 'dist')}.${process.pid}.tmp`
  rmSync(made, { recursive: true, force: true })
  mkdirSync(made)
  const built = files.map(({ name, contents }) => write(made, name, contents))
  const named = (start: string) => built.find(({ name }) => name.startsWith(start))!.name
  const manifest = {
    script: named('console.'),
    style: named('style.'),
    icon: named('icon.'),
    files: built.map(({ name }) => name),
  }
  writeFileSync(join(made, 'manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  rmSync(join(folder, 'dist'), { recursive: true, force: true })
  renameSync(made, join(folder, 'dist'))
  return built
}

/** Writes a file under a name that changes with its contents. */
function write(into: string, name: string, contents: Buffer): Built {
  const digest = createHash('sha256').update(contents).digest('base64url').replaceAll(/[-_]/g, '').slice(0, 10)
  const extension = extname(name)
  const hashed = `${basename(name, extension)}.${digest}${extension}`
  const brotli = brotliCompressSync(contents, {
    params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: contents.length },
  })
  writeFileSync(join(into, hashed), contents)
  writeFileSync(join(into, `${hashed}.br`), brotli)
  return { name: hashed, bytes: contents.length, brotliBytes: brotli.length }
}
