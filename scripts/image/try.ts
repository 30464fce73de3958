import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { stringify } from 'yaml'
import { startSimulator } from '../../src/simulator/simulator.ts'
import { freePort } from '../../test/support/listen.ts'
import { askAll, expect, must, newFolder, root, run, tryBinaries } from '../install/tools.ts'
import { podmanSettings } from './podman-settings.ts'

const locks = [
  '--read-only',
  '--tmpfs',
  '/tmp',
  '--cap-drop',
  'all',
  '--security-opt',
  'no-new-privileges',
  '--memory',
  '512m',
]

/**
 * Runs the image as docs/install.md says, sends requests, checks its permissions from within, and stops it. Then runs
 * it with only variables for a configuration, and then by its compose file.
 */
export async function tryImage(name: string): Promise<string[]> {
  tryBinaries('podman', 'runc')
  const folder = newFolder('image')
  const settings = join(folder, 'containers.conf')
  writeFileSync(settings, podmanSettings)
  const env = { ...process.env, CONTAINERS_CONF: settings }
  const podman = (...args: string[]) => must(['podman', ...args], { env })
  return [await tryDemo(name, podman), await tryVariables(name, podman), await tryCompose(name, folder, env)]
}

type Podman = (...args: string[]) => string

async function tryDemo(name: string, podman: Podman): Promise<string> {
  const container = await start(name, podman, [])
  try {
    const key = /^\s+(sk-tri-\w+)$/m.exec(podman('logs', container.id))?.[1] ?? ''
    const answers = await askAll(container.url, key)
    const look = `
      const { readFileSync, writeFileSync } = require('node:fs')
      const of = (name) => new RegExp(name + ':\\\\s+(\\\\w+)').exec(readFileSync('/proc/1/status', 'utf8'))[1]
      let root = 'written'
      try { writeFileSync('/x', '') } catch (error) { root = error.code }
      console.log(['Uid', 'CapEff', 'NoNewPrivs', 'Threads'].map((name) => name + ' ' + of(name)).slice(0, 3).join(', ') + ', / ' + root)`
    const seen = podman('exec', container.id, 'node', '-e', look)
    expect(seen === 'Uid 65532, CapEff 0000000000000000, NoNewPrivs 1, / EROFS', 'it may do nothing', seen)
    const processes = podman('top', container.id, 'pid', 'args').split('\n').slice(1)
    expect(processes.length === 1, 'it is one process', processes.join('\n'))
    podman('healthcheck', 'run', container.id)
    podman('exec', container.id, 'node', '/app/health.mjs', 'readyz')
    const listed = podman('exec', container.id, 'triwire', 'account', 'list')
    expect(listed.includes('demo'), 'its commands run within', listed)
    return `${answers}; ${seen}; one process; healthy; ${await stop(podman, container.id)}`
  } finally {
    podman('rm', '--force', '--volumes', container.id)
  }
}

/** Runs the image with configuration, provider's key and seal key in variables. Its own command creates accounts. */
async function tryVariables(name: string, podman: Podman): Promise<string> {
  const provider = await startSimulator({ record: true })
  const models = (['messages', 'chat', 'responses'] as const).map((wire) => ({
    id: `sim-${wire}`,
    wire,
    upstream: 'own',
    upstream_model: 'sim',
    max_output_tokens: 900,
    prices: { input: '1', output: '2' },
  }))
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference of the configuration
  const upstreams = { own: { base_url: provider.url, accounts: [{ name: 'a', key: '${PROVIDER_KEY}' }] } }
  const text = stringify({ catalog: { pinned: '2026-11-01', models }, upstreams })
  const seal = Buffer.from('a seal key of thirty-two bytes..').toString('base64')
  const variables = { TRIWIRE_CONFIG_YAML: text, PROVIDER_KEY: 'sk-provider', TRIWIRE_SEAL_KEY: seal }
  const container = await start(
    name,
    podman,
    Object.entries(variables).flatMap(([key, value]) => ['--env', `${key}=${value}`]),
  )
  try {
    podman('exec', container.id, 'triwire', 'account', 'create', 'acme', '--credit', '5')
    const { key } = JSON.parse(podman('exec', container.id, 'triwire', '--json', 'key', 'create', 'acme'))
    const answers = await askAll(container.url, key)
    const sent = provider.requests.map(({ headers }) => headers['x-api-key'] ?? headers['authorization'])
    expect(
      sent.length === 3 && sent.every((sent) => String(sent).endsWith('sk-provider')),
      'the provider was asked',
      `${sent}`,
    )
    return `by variables alone: ${answers}; ${await stop(podman, container.id)}`
  } finally {
    podman('rm', '--force', '--volumes', container.id)
    await provider.close()
  }
}

async function start(name: string, podman: Podman, more: string[]): Promise<{ id: string; url: string }> {
  const [port, adminPort] = [await freePort(), await freePort()]
  // Publishing a port would leave a bridge and firewall rules on the machine, so the host's network is used.
  const addresses = { TRIWIRE_LISTEN: `127.0.0.1:${port}`, TRIWIRE_ADMIN_LISTEN: `127.0.0.1:${adminPort}` }
  const flags = Object.entries(addresses).flatMap(([key, value]) => ['--env', `${key}=${value}`])
  const id = podman('run', '--detach', ...locks, '--network', 'host', ...flags, ...more, name)
  await listens(`http://127.0.0.1:${port}`, () => podman('logs', id)).catch((error) => {
    podman('rm', '--force', '--volumes', id)
    throw error
  })
  return { id, url: `http://127.0.0.1:${port}` }
}

async function stop(podman: Podman, id: string): Promise<string> {
  const started = performance.now()
  podman('stop', '--time', '60', id)
  const code = podman('inspect', '--format', '{{.State.ExitCode}}', id)
  expect(code === '0', 'it ends with 0', podman('logs', id))
  return `stopped with 0 after ${((performance.now() - started) / 1_000).toFixed(0)} s`
}

/** Runs the compose file with a free port, and without limits that not every machine may set. */
async function tryCompose(name: string, folder: string, env: NodeJS.ProcessEnv): Promise<string> {
  tryBinaries('podman-compose')
  const port = await freePort()
  const file = readFileSync(join(root, 'image/compose.yaml'), 'utf8')
  writeFileSync(
    join(folder, 'compose.yaml'),
    file.replace(':8080:8080', `:${port}:8080`).replace(/^ +ulimits:.*\n/m, ''),
  )
  writeFileSync(join(folder, 'triwire.yaml'), 'log: { level: info }\n')
  writeFileSync(join(folder, '.env'), '')
  const options = { cwd: folder, env: { ...env, TRIWIRE_IMAGE: name } }
  const logs = () => run(['podman-compose', 'logs'], options).text
  try {
    const { text } = run(['podman-compose', 'up', '--detach'], options)
    await listens(`http://127.0.0.1:${port}`, () => text + logs())
    const key = /^\s+(sk-tri-\w+)$/m.exec(logs())?.[1] ?? ''
    return `compose up: ${await askAll(`http://127.0.0.1:${port}`, key)}`
  } finally {
    run(['podman-compose', 'down', '--volumes'], options)
    run(['podman', 'network', 'rm', 'image_default'], options)
  }
}

/** Waits until a gateway at this address lists its models. @param logs the text for the error if none does */
export async function listens(url: string, logs: () => string): Promise<void> {
  for (let tries = 0; tries < 150; tries++) {
    const isThere = await fetch(`${url}/v1/models`).then(
      ({ ok }) => ok,
      () => false,
    )
    if (isThere) return
    await pause(200)
  }
  throw new Error(`it does not listen:\n${logs()}`)
}
