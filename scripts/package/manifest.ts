import { oldestNode } from '../../bin/launch.mjs'

/** What package.json says, as far as a package of ours has it. */
export type Manifest = {
  name: string
  version: string
  engines: Record<string, string>
  exports: Record<string, unknown>
  files: readonly string[]
  [key: string]: unknown
}

/**
 * What only a checkout needs: its tools, the Node that comes with it (a dependency would put it in front of an app's own,
 * ruling X8), and the word that keeps `npm publish` from sending sources.
 */
const ofTheCheckout = ['private', 'scripts', 'devDependencies', 'optionalDependencies']

/** Of `bin`, what the program needs; scripts of the checkout have a launcher of their own. */
const launchers = ['bin/triwire.mjs', 'bin/launch.mjs', 'bin/signals.mjs']

/** The package's package.json, from the checkout's: compiled paths, the Node it truly needs, nothing of the checkout. */
export function packageManifest(checkout: Manifest): Manifest {
  const kept = Object.entries(checkout).filter(([key]) => !ofTheCheckout.includes(key))
  return {
    ...(Object.fromEntries(kept) as Manifest),
    engines: { node: engineRange(oldestNode.package) },
    exports: Object.fromEntries(Object.entries(checkout.exports).map(([name, path]) => [name, compiled(String(path))])),
    files: checkout.files.flatMap((name) => (name === 'bin' ? launchers : name === 'src' ? ['lib'] : [name])),
  }
}

/** `^22.1.0 || >=24.2.0` for `22.1.0` and `24.2.0`: of the newest line everything that comes after it too. */
export function engineRange(oldest: readonly string[]): string {
  return oldest.map((version, at) => `${at === oldest.length - 1 ? '>=' : '^'}${version}`).join(' || ')
}

function compiled(path: string): unknown {
  if (!path.endsWith('.ts')) return path
  const stem = path.replace(/^\.\/src\/(.*)\.ts$/, './lib/$1')
  return { types: `${stem}.d.ts`, default: `${stem}.js` }
}
