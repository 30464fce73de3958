import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { type BuildOptions, build, type OutputFile, type Plugin } from 'esbuild'

/** The modules of the program and its threads, by bundle. They are below `src` or `lib`, without an extension. */
export const programs: Readonly<Record<string, string>> = {
  cli: 'cli/cli',
  token: 'cli/token',
  ledger: 'store/sqlite/worker',
  books: 'store/books-worker',
  store: 'store/postgres/worker',
}

/** Matches the code by which a module starts a thread, or finds a file relative to itself. */
const places = /new URL\('(\.[^']*)\.[jt]s', import\.meta\.url\)|import\.meta\.url/g

type Options = Pick<BuildOptions, 'packages' | 'banner'> & { extension?: '.js' | '.mjs' }

/**
 * Bundles the modules that the program reads at its start into a few files, so that it reads one file instead of a
 * hundred. Modules that the command line loads on demand stay apart. A thread is one file, since it needs all its code.
 * @param from the folder of the modules: `src`, or `lib` after it was compiled
 * @param outdir the folder of the bundles, which have the names of `programs`. An unchanged file is not written,
 *   because a running process may be about to read it
 * @returns the paths of all files
 */
export async function bundle(from: string, outdir: string, options: Options): Promise<string[]> {
  mkdirSync(outdir, { recursive: true })
  const files = []
  for (const [name, module] of Object.entries(programs))
    files.push(...(await bundleOne(from, outdir, options, name, module)))
  for (const { path, contents } of files)
    if (!existsSync(path) || !readFileSync(path).equals(contents)) writeFileSync(path, contents)
  return files.map(({ path }) => path)
}

async function bundleOne(
  from: string,
  outdir: string,
  { extension = '.js', ...options }: Options,
  name: string,
  module: string,
): Promise<OutputFile[]> {
  const { outputFiles } = await build({
    ...options,
    write: false,
    entryPoints: { [name]: join(from, module) },
    outdir,
    bundle: true,
    splitting: ['cli', 'token'].includes(name),
    format: 'esm',
    platform: 'node',
    target: 'node22',
    outExtension: { '.js': extension },
    sourcemap: true,
    logLevel: 'error',
    plugins: [keepPlaces(from, outdir, extension)],
  })
  return outputFiles
}

/** Makes bundled modules resolve relative paths from their original places. */
function keepPlaces(from: string, outdir: string, extension: string): Plugin {
  return {
    name: 'places',
    setup({ onLoad, onResolve }) {
      // The launcher has loaded this module. A copy in the bundle would lack the signals that the launcher holds back.
      onResolve({ filter: /\/bin\/signals\.mjs$/ }, ({ path, resolveDir }) => ({
        path: relative(outdir, join(resolveDir, path)),
        external: true,
      }))
      onLoad({ filter: /\.[jt]s$/, namespace: 'file' }, ({ path }) => {
        const module = relative(from, path)
        if (module.startsWith('..')) return undefined
        const text = readFileSync(path, 'utf8')
        const contents = text.replace(places, (_, started?: string) => {
          if (started === undefined) return `new URL('${relative(outdir, path)}', import.meta.url).href`
          const thread = normalize(join(dirname(module), started))
          const [name] = Object.entries(programs).find(([, of]) => of === thread) ?? []
          if (name === undefined) throw new Error(`${module} starts ${thread}, which is not in the table of programs`)
          return `new URL('./${name}${extension}', import.meta.url)`
        })
        return { contents, resolveDir: dirname(path), loader: path.endsWith('.ts') ? 'ts' : 'js' }
      })
    },
  }
}
