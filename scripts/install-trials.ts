import { Unobtainable } from './install/tools.ts'
import { trials } from './install/trials.ts'

// npm run test:install [-- name …]
//
// Installs and runs triwire as people do, each time in an empty folder: as a checkout, a package, a dependency or a
// container. Also by npx, as another user, in a path with blanks, and on musl. Needs npm's registry and a few minutes.
// Trials that cannot run on a machine (no root, no podman) are reported. TRIWIRE_INSTALL_DIR is the folder in which
// Node is kept (default: .install).

const named = process.argv.slice(2)
const unknown = named.filter((name) => !(name in trials))
if (unknown.length > 0) throw new Error(`there is no trial ${unknown.join(', ')}: ${Object.keys(trials).join(', ')}`)

for (const [name, make] of Object.entries(trials)) {
  if (named.length > 0 && !named.includes(name)) continue
  const started = performance.now()
  const seconds = () => `${((performance.now() - started) / 1_000).toFixed(0)} s`
  try {
    for (const line of await make()) console.log(`ok      ${name}: ${line}`)
    console.log(`        ${seconds()}`)
  } catch (error) {
    if (error instanceof Unobtainable) console.log(`NOT MADE ${name}: ${error.message}`)
    else {
      process.exitCode = 1
      console.log(`FAILED  ${name}, ${seconds()}: ${error instanceof Error ? error.message : error}`)
    }
  }
}
