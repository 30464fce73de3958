import { buildImage } from './image/build.ts'
import { writeLock } from './image/stage.ts'
import { tryImage } from './image/try.ts'
import { tryReplicas } from './image/try-replicas.ts'
import { pack } from './install/packed.ts'
import { must } from './install/tools.ts'

// npm run image [-- --tag NAME] [--archive FILE] [--try] [--try-replicas] [--lock]
//
// Builds a container image from npm's registry and Debian's archive, without a base image. It contains the package, its
// dependencies, the pinned Node and four Debian libraries, in the versions of image/lock.json. Needs skopeo. `--try`
// also needs podman and runc. `--try-replicas` runs examples/compose-replicas.yaml, and also needs mmdebstrap.
// `--archive` writes a file for `docker load`. `--lock` only writes image/lock.json with the newest versions; review
// the difference.

const args = process.argv.slice(2)
const optionOf = (flag: string) => (args.includes(flag) ? args[args.indexOf(flag) + 1] : undefined)
const name = optionOf('--tag') ?? 'localhost/triwire:latest'

if (args.includes('--lock')) writeLock()
else await build()

async function build(): Promise<void> {
  pack()
  for (const line of buildImage(name)) console.log(line)
  const archive = optionOf('--archive')
  if (archive) must(['skopeo', 'copy', '--quiet', `containers-storage:${name}`, `docker-archive:${archive}:${name}`])
  if (args.includes('--try')) for (const line of await tryImage(name)) console.log(line)
  if (args.includes('--try-replicas')) for (const line of await tryReplicas(name)) console.log(line)
}
