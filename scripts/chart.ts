import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './install/tools.ts'

// node bin/node.mjs scripts/chart.ts [--write]
//
// Lints the Helm chart, renders both profiles, and validates the results by the schemas of Kubernetes. `--write` writes
// the plain manifests in ops/manifests; without it they are compared. Needs helm (Go) and kubernetes-validate (PyPI).

const versions = ['1.31', '1.34', '1.37']
const profiles = ['sqlite', 'postgres']
const chart = join(root, 'ops/chart')
const isWriting = process.argv.includes('--write')
let failures = 0

for (const profile of profiles) {
  const values = join(chart, 'ci', `${profile}-values.yaml`)
  say(`${profile}: lint`, run('helm', ['lint', '--strict', '--quiet', chart, '-f', values]))
  const rendered = run('helm', ['template', 'triwire', chart, '-f', values])
  say(`${profile}: render`, rendered)
  const file = join(root, 'ops/manifests', `${profile}.yaml`)
  const text = `# Made from the chart by scripts/chart.ts --write, with ops/chart/ci/${profile}-values.yaml. Change the configuration to yours.\n${rendered.output}`
  mkdirSync(join(root, 'ops/manifests'), { recursive: true })
  if (isWriting) writeFileSync(file, text)
  else if (readFileSync(file, 'utf8') !== text)
    say(`${profile}: manifest`, { ok: false, output: `${file} is not the chart's: run with --write` })
  for (const version of versions) {
    const checked = run('kubernetes-validate', ['-k', version, '--strict', '--quiet', '--no-warn', file])
    say(`${profile}: Kubernetes ${version}`, checked)
  }
}

/** Values that the chart must refuse, with a pattern of the message, which names the value and the cure. */
const refused: [set: string, says: RegExp][] = [
  ['replicas=2', /replicas: more than 1 needs a shared store/],
  ['replicas=two', /replicas.*want integer/s],
  ['store=mysql://x', /store/],
  ['store=postgres://u@h/d', /secrets: a store in PostgreSQL needs TRIWIRE_SEAL_KEY/],
  ['ingress.enabled=true', /ingress\.host: name the host/],
  ['metrics.serviceMonitor=true', /metrics\.tokenSecret/],
  ['repliccas=1', /repliccas/],
]
for (const [set, says] of refused) {
  const { ok, output } = run('helm', ['template', 'triwire', chart, '--set', set])
  say(`refuses ${set}`, { ok: !ok && says.test(output), output })
}
process.exitCode = failures === 0 ? 0 : 1

function say(name: string, { ok, output }: { ok: boolean; output: string }): void {
  console.log(`${ok ? 'ok' : 'FAILED'}  ${name}`)
  if (ok) return
  failures++
  console.log(output)
}

function run(program: string, args: readonly string[]): { ok: boolean; output: string } {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8' })
  if (error) return { ok: false, output: `${program} cannot be run: ${error.message}` }
  return { ok: status === 0, output: status === 0 ? stdout : stdout + stderr }
}
