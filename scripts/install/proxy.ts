import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { stringify } from 'yaml'
import { startGateway } from '../../src/process/start.ts'
import { startSimulator } from '../../src/simulator/simulator.ts'
import { mustBeRoot } from './elsewhere.ts'
import { pack } from './packed.ts'
import { expect, must, newFolder, root, run, runBeside, shell, tryBinaries, Unobtainable } from './tools.ts'

/** The addresses of the network link between this machine and the one behind a proxy: ours, and its own. */
const [proxyHost, innerHost] = ['10.203.77.1', '10.203.77.2']
const proxyPort = 18_888

/** Functions that end what was started; the last one is called first. */
type Ends = (() => unknown)[]

/**
 * Imitates a machine in a company network. From its own network namespace only a proxy can be reached, which wants
 * credentials (Debian's tinyproxy). There triwire is installed, asks upstreams, and runs `setup` and `doctor`.
 * Afterwards everything in scripts/proxies.ts is tried with tinyproxy and squid.
 */
export async function behindProxy(): Promise<string[]> {
  mustBeRoot()
  tryBinaries('ip', 'tinyproxy', 'squid')
  const outside = Object.values(networkInterfaces())
    .flat()
    .find((one) => one?.family === 'IPv4' && !one.internal && one.address !== proxyHost)?.address
  if (!outside) throw new Unobtainable('it takes an address that is not loopback')
  const name = `triwire-${process.pid}`
  const cable = [`tw${process.pid}o`, `tw${process.pid}i`] as const
  const ends: Ends = []
  try {
    must(['ip', 'netns', 'add', name])
    ends.push(() => run(['ip', 'netns', 'delete', name]))
    const inside = ['ip', 'netns', 'exec', name]
    must(['ip', 'link', 'add', cable[0], 'type', 'veth', 'peer', 'name', cable[1], 'netns', name])
    must(['ip', 'address', 'add', `${proxyHost}/30`, 'dev', cable[0]])
    must(['ip', 'link', 'set', cable[0], 'up'])
    must([...inside, 'ip', 'address', 'add', `${innerHost}/30`, 'dev', cable[1]])
    for (const link of [cable[1], 'lo']) must([...inside, 'ip', 'link', 'set', link, 'up'])
    await startProxy(ends)
    return [...(await tryInside(inside, outside, ends)), tryProxies()]
  } finally {
    for (const end of ends.reverse()) await end()
  }
}

async function startProxy(ends: Ends): Promise<void> {
  const file = join(newFolder('proxy'), 'tinyproxy.conf')
  const settings = [`Port ${proxyPort}`, `Listen ${proxyHost}`, 'MaxClients 100', 'BasicAuth ann secret']
  writeFileSync(file, `${settings.join('\n')}\n`)
  const proxy = spawn('tinyproxy', ['-d', '-c', file], { stdio: 'ignore' })
  ends.push(() => proxy.kill('SIGKILL'))
  await untilHeard('tinyproxy', proxyHost, proxyPort)
}

async function untilHeard(name: string, host: string, port: number): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    const isHeard = await new Promise<boolean>((resolve) => {
      const socket = connect(port, host, () => resolve(true))
      socket.on('error', () => resolve(false))
      socket.on('connect', () => socket.destroy())
    })
    if (isHeard) return
    await pause(100)
  }
  throw new Error(`${name} does not start`)
}

async function tryInside(inside: readonly string[], outside: string, ends: Ends): Promise<string[]> {
  const through = (credentials: string) => {
    const url = `http://${credentials}@${proxyHost}:${proxyPort}`
    return shell('24.21.0', { HTTP_PROXY: url, HTTPS_PROXY: url, npm_config_fetch_retries: '0' })
  }
  const [right, wrong, none] = [
    through('ann:secret'),
    through('ann:no'),
    shell('24.21.0', { npm_config_fetch_retries: '0' }),
  ]
  const prefix = newFolder('behind-a-proxy')
  // A new cache, so that npm has nothing from an earlier trial.
  const cache = { npm_config_cache: newFolder('npm-cache-behind-a-proxy') }
  const install = [...inside, 'npm', 'install', '--global', '--prefix', prefix, pack()]
  const cut = run(install, { env: { ...none, ...cache } })
  expect(cut.status !== 0, 'without the proxy nothing is reached', cut.text)
  must(install, { env: { ...right, ...cache } })
  const lines = ['npm installs the package through it, and cannot without']

  const cwd = newFolder('behind')
  const triwire = [...inside, join(prefix, 'bin/triwire')]
  const simulator = await startSimulator({ host: outside })
  ends.push(simulator.close)
  writeFileSync(join(cwd, 'triwire.yaml'), stringify(configuration(simulator.url)))
  const asked: { trouble: string | null; note: string }[] = []
  for (const env of [right, wrong, none]) {
    const { stdout, text } = await runBeside([...triwire, 'check', '--online', '--json'], { env, cwd })
    expect(stdout.startsWith('{"ok":'), 'check --online reports in JSON', text)
    asked.push(...(JSON.parse(stdout) as { online: typeof asked }).online)
  }
  const troubles = asked.map(({ trouble }) => trouble)
  expect(`${troubles}` === ',proxy,connection', 'check --online reports the three cases', JSON.stringify(asked))
  lines.push(`check --online: ${asked.map(({ note }) => `"${note}"`).join(', ')}`)

  const far = await startGateway({ store: join(newFolder('far'), 'triwire.db'), listen: `${outside}:0` })
  ends.push(() => far.close())
  const setup = [...triwire, 'setup', 'codex', '--url', far.url, '--key', far.demoKey!]
  const told = await runBeside(setup, { env: right, cwd: newFolder('colleague') })
  expect(told.status === 0 && told.stdout.includes('model = "sim-messages"'), 'setup has asked the gateway', told.text)
  const refused = [wrong, none].map((env) => run(setup, { env, cwd: newFolder('colleague') }))
  expect(
    refused.every(({ status, text }) => status === 1 && !/secret|\n\s+at /.test(text)),
    'setup says why it cannot',
    refused.map(({ text }) => text).join('\n'),
  )
  lines.push(`setup --url asks through it; without: ${refused.map(({ text }) => `"${text}"`).join(', ')}`)
  const doctor = [...triwire, 'doctor', '--base-url', far.url, '--key', far.demoKey!, '--model', 'sim-chat']
  // The commands before blocked this process, so its gateway refuses to count tokens until it has caught up.
  await pause(1_500)
  const looked = await runBeside(doctor, { env: right, cwd })
  expect(looked.status === 0, 'doctor finds nothing wrong', looked.text)
  lines.push(`doctor: ${looked.text.split('\n').at(-1)}`)
  lines.push(await trySession(triwire, right, cwd))
  return lines
}

function configuration(url: string): object {
  const model = { id: 'm', wire: 'chat', upstream: 'far', upstream_model: 'sim', max_output_tokens: 99 }
  return {
    listen: `${innerHost}:8080`,
    store: './triwire.db',
    catalog: { pinned: '2026-11-01', models: [{ ...model, prices: { input: '1', output: '1' } }] },
    upstreams: { far: { base_url: url, accounts: [{ name: 'a', key: 'k' }] } },
  }
}

/** Starts a gateway on that machine and sends requests to it from the machine's own network. */
async function trySession(triwire: readonly string[], env: NodeJS.ProcessEnv, cwd: string): Promise<string> {
  must([...triwire, 'account', 'create', 'tester', '--credit', '10'], { env, cwd })
  const key = must([...triwire, 'key', 'create', 'tester'], { env, cwd })
  const [file = '', ...args] = [...triwire, 'serve']
  const running = spawn(file, args, { cwd, env, stdio: 'ignore' })
  try {
    await untilHeard('the gateway behind the proxy', innerHost, 8080)
    const response = await fetch(`http://${innerHost}:8080/v1/messages`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', max_tokens: 50, messages: [{ role: 'user', content: 'Hello!' }] }),
    })
    expect(response.status === 200, 'its model is asked through the proxy', await response.text())
    return `a gateway there, with HTTP_PROXY alone: messages ${response.status}`
  } finally {
    const gone = new Promise((resolve) => running.once('exit', resolve))
    for (const _ of ['drain', 'hurry']) {
      running.kill('SIGINT')
      await pause(100)
    }
    await Promise.race([gone, pause(10_000)])
    running.kill('SIGKILL')
  }
}

function tryProxies(): string {
  const { status, stdout, text } = run([process.execPath, 'bin/node.mjs', 'scripts/proxies.ts'], {
    cwd: root,
    seconds: 1_200,
  })
  expect(
    status === 0,
    'both proxies do as they should',
    `${text.match(/^ {2}WRONG.*$/gm)?.join('\n') ?? text.slice(-500)}`,
  )
  return `tinyproxy and squid, plain and secured, with credentials, wrong ones, gone and back: ${stdout.match(/^ {2}ok/gm)?.length} checks`
}
