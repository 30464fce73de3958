import { readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { build, type Plugin } from 'esbuild'

/** The program and its threads, by their modules below `lib`. */
export type Programs = Readonly<Record<string, string>>

/** Matches the code by which a module starts a thread, or finds a file relative to itself. */
const places = /new URL\('(\.[^']*\.js)', import\.meta\.url\)|import\.meta\.url/g

/**
 * Bundles the modules that the program reads at its start into a few files in `lib/program`. It then reads one file
 * instead of a hundred. Modules that are loaded on demand stay apart, and so do packages.
 * @param root the folder whose `lib` is compiled
 */
export async function bundle(root: string, programs: Programs): Promise<void> {
  const lib = join(root, 'lib')
  await build({
    entryPoints: Object.fromEntries(Object.entries(programs).map(([name, module]) => [name, join(lib, module)])),
    outdir: join(lib, 'program'),
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    packages: 'external',
    sourcemap: true,
    logLevel: 'error',
    plugins: [keepPlaces(lib, programs)],
  })
}

/** Modules have another place in a bundle: their relative paths are resolved from where they were before. */
function keepPlaces(lib: string, programs: Programs): Plugin {
  return {
    name: 'places',
    setup({ onLoad }) {
      onLoad({ filter: /\.js$/, namespace: 'file' }, ({ path }) => {
        const module = relative(lib, path)
        if (module.startsWith('..')) return undefined
        const text = readFileSync(path, 'utf8')
        const contents = text.replace(places, (_, started?: string) => {
          if (started === undefined) return `new URL('../${module}', import.meta.url).href`
          const thread = normalize(join(dirname(module), started))
          const [name] = Object.entries(programs).find(([, of]) => of === thread) ?? []
          if (name === undefined) throw new Error(`${module} starts ${thread}, which is not in the table of programs`)
          return `new URL('./${name}.js', import.meta.url)`
        })
        return { contents, resolveDir: dirname(path), loader: 'js' }
      })
    },
  }
}
