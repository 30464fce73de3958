import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pack } from './packed.ts'
import { expect, must, newFolder, shell } from './tools.ts'

const app = `
import { startGateway } from 'triwire'
import { parseScript, startSimulator } from 'triwire/simulator'
import manifest from 'triwire/package.json' with { type: 'json' }

const simulator = await startSimulator({ record: true })
simulator.script('busy', parseScript('status: 429\\nretry_after: 1'))
const gateway = await startGateway({ store: 'data/triwire.db' })
const answer = await fetch(gateway.url + '/v1/chat/completions', {
  method: 'POST',
  headers: { authorization: 'Bearer ' + gateway.demoKey },
  body: JSON.stringify({ model: 'sim-messages', messages: [{ role: 'user', content: 'Hello!' }] }),
})
const busy = await fetch(simulator.url + '/v1/chat/completions', {
  method: 'POST',
  headers: { authorization: 'Bearer any' },
  body: JSON.stringify({ model: 'busy', messages: [{ role: 'user', content: 'Hello!' }] }),
})
console.log(manifest.name, answer.status, busy.status, simulator.requests.length)
await gateway.close()
await simulator.close()
`

const typed = `
import { type GatewayOptions, type StartedGateway, startGateway } from 'triwire'
import { type Simulator, startSimulator } from 'triwire/simulator'

const options: GatewayOptions = { store: 'x.db', log: 'info' }
const gateway: StartedGateway = await startGateway(options)
const simulator: Simulator = await startSimulator({ strict: false })
export const status: number | undefined = simulator.requests[0]?.status
// @ts-expect-error a number is no file
await startGateway({ store: 1 })
await gateway.close(1_000)
`

/** An app has triwire as a dependency: its imports work and are typed, and the app keeps its own Node. */
export async function asDependency(): Promise<string[]> {
  const lines: string[] = []
  for (const version of ['22.22.1', '24.21.0', '26.10.0']) {
    const folder = newFolder(`app-${version}`)
    const env = shell(version, { npm_config_engine_strict: 'true' })
    const scripts = { version: 'node -v', app: 'node app.mjs' }
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module', scripts }))
    writeFileSync(join(folder, 'app.mjs'), app)
    writeFileSync(join(folder, 'typed.mts'), typed)
    must(['npm', 'install', '--save-dev', pack()], { cwd: folder, env })
    const node = must(['npm', 'run', '--silent', 'version'], { cwd: folder, env })
    expect(node === `v${version}`, `the app's node stays ${version}`, node)
    const seen = must(['npm', 'run', '--silent', 'app'], { cwd: folder, env })
    expect(seen === 'triwire 200 429 1', 'the app has its answers', seen)
    const required = must(['node', '-p', "typeof require('triwire').startGateway"], { cwd: folder, env })
    expect(required === 'function', 'require works too', required)
    lines.push(`Node ${version}: node -v in the app's scripts ${node}; the app printed "${seen}"`)
  }
  const folder = newFolder('typed')
  const env = shell('26.10.0')
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }))
  writeFileSync(join(folder, 'typed.mts'), typed)
  const { devDependencies } = (await import('../../package.json', { with: { type: 'json' } })).default
  const tools = ['typescript', '@types/node'].map(
    (name) => `${name}@${(devDependencies as Record<string, string>)[name]}`,
  )
  must(['npm', 'install', '--save-dev', pack(), ...tools], { cwd: folder, env })
  for (const kind of ['nodenext', 'bundler']) {
    const module = kind === 'bundler' ? 'esnext' : kind
    const flags = ['--ignoreConfig', '--strict', '--noEmit', '--types', 'node', '--target', 'es2024', '--lib', 'es2024']
    must(['npx', 'tsc', ...flags, '--module', module, '--moduleResolution', kind, 'typed.mts'], { cwd: folder, env })
  }
  lines.push('its types are right for an app, as nodenext and bundler, library checks included')
  return lines
}
