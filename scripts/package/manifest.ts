import { oldestNode } from '../../bin/launch.mjs'

/** The fields of package.json that a package of ours has. */
export type Manifest = {
  name: string
  version: string
  engines: Record<string, string>
  exports: Record<string, unknown>
  imports: Record<string, string>
  files: readonly string[]
  [key: string]: unknown
}

/**
 * Fields that only a checkout needs. One of them names the pinned Node, which would replace the Node of an app that
 * depends on triwire (ruling X8). `private` keeps `npm publish` from sending sources.
 */
const ofTheCheckout = ['private', 'scripts', 'devDependencies', 'optionalDependencies']

/** The files of `bin` that the program needs. The other file there starts scripts of the checkout. */
const launchers = ['bin/triwire.mjs', 'bin/launch.mjs', 'bin/signals.mjs']

/** Makes the package's package.json, with compiled paths and the required Node, and without the checkout's fields. */
export function packageManifest(checkout: Manifest): Manifest {
  const kept = Object.entries(checkout).filter(([key]) => !ofTheCheckout.includes(key))
  return {
    ...(Object.fromEntries(kept) as Manifest),
    engines: { node: engineRange(oldestNode.package) },
    exports: Object.fromEntries(Object.entries(checkout.exports).map(([name, path]) => [name, compiled(String(path))])),
    // Bundles contain their imports. The modules from which the bundles were made still need `imports`.
    imports: Object.fromEntries(Object.entries(checkout.imports).map(([name, path]) => [name, compiledCode(path)])),
    files: checkout.files.flatMap((name) => (name === 'bin' ? launchers : name === 'src' ? ['lib'] : [name])),
  }
}

/** Makes `^22.1.0 || >=24.2.0` from `22.1.0` and `24.2.0`. Lines after the last one are accepted too. */
export function engineRange(oldest: readonly string[]): string {
  return oldest.map((version, at) => `${at === oldest.length - 1 ? '>=' : '^'}${version}`).join(' || ')
}

function compiled(path: string): unknown {
  if (!path.endsWith('.ts')) return path
  const code = compiledCode(path)
  return { types: code.replace(/\.js$/, '.d.ts'), default: code }
}

/** Returns the path of a compiled source. Files of `src` are directly in `lib`, and files of other folders below it. */
function compiledCode(path: string): string {
  return path.replace(/^\.\/(?:src\/)?(.*)\.ts$/, './lib/$1.js')
}
