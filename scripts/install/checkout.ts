import { join } from 'node:path'
import { expect, must, newFolder, root, run, shell, tryGateway } from './tools.ts'

/** Releases of Node that run npm. The first one cannot run triwire, so the pinned Node must. The last is the newest. */
const nodes = ['20.20.2', '24.21.0', '26.10.0']

/** Runs the two commands of the README, in a clone of the committed files. */
export async function fromCheckout(): Promise<string[]> {
  const lines: string[] = []
  for (const version of nodes) {
    const folder = join(newFolder('clones'), `a clone, with ü & blanks, ${version}`)
    must(['git', 'clone', '--quiet', '--depth', '1', `file://${root}`, folder])
    const env = shell(version)
    const installed = run(['npm', 'ci'], { cwd: folder, env })
    expect(installed.status === 0, 'npm ci works', installed.text)
    const warnings = installed.text
      .split('\n')
      .filter((line) => line.includes('EBADENGINE') && line.includes('package:'))
    const strict = run(['npm', 'ci', '--dry-run', '--engine-strict'], { cwd: folder, env })
    const word = strict.status === 0 ? 'works' : `refuses ${/Not compatible[^\n]*/.exec(strict.text)?.[0]}`
    const command = ['npm', 'start', '--', '--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0']
    const seen = await tryGateway(command, { cwd: folder, env })
    lines.push(`Node ${version}: ${warnings.length} engines warned of, engine-strict ${word}, ${seen}`)
  }
  return lines
}
