import { readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { build, type Plugin } from 'esbuild'

/** The program and its threads, by their modules below `lib`. */
export type Programs = Readonly<Record<string, string>>

/** Where a module starts a thread, and where it looks for a file from where it stands. */
const places = /new URL\('(\.[^']*\.js)', import\.meta\.url\)|import\.meta\.url/g

/**
 * Puts what the program reads at its start into a few files, in `lib/program`, beside the modules of which they are made: it
 * reads one file for a hundred. What is loaded when it is wanted stays apart, and so do packages.
 * @param root whose `lib` is compiled
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

/** Modules stand elsewhere in a bundle: what they look for from where they stood is found from there. */
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
          if (name === undefined) throw new Error(`${module} starts ${thread}, which is no program`)
          return `new URL('./${name}.js', import.meta.url)`
        })
        return { contents, resolveDir: dirname(path), loader: 'js' }
      })
    },
  }
}
