/**
 * Sends requests to upstreams through real proxies (N-F4): Debian's tinyproxy and squid, with and without credentials.
 * Upstreams use http or https. The proxy is set by `upstreams.<name>.proxy` or by the environment. Also tries requests
 * while the proxy requires other credentials, is down, and is up again. The upstream is the simulator. Its address is
 * not loopback, because proxies of the environment do not apply to loopback.
 *
 *     node bin/node.mjs scripts/proxies.ts
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, type Server } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer as createSecureServer } from 'node:tls'
import { stringify } from 'yaml'
import { startSimulator } from '../src/simulator/simulator.ts'
import { createAuthority } from '../test/support/certificates.ts'
import { freePort } from '../test/support/listen.ts'
import { type Served, serve } from '../test/support/serve.ts'

const user = 'ann'
const password = 'secret'
const folder = mkdtempSync(join(tmpdir(), 'triwire-proxies-'))
process.env['TRIWIRE_TEST_DIR'] = folder
chmodSync(folder, 0o777)
const children = new Set<ChildProcess>()
let wrong = 0

type Proxy = {
  name: string
  port: number
  isClosed: boolean
  start(): Promise<void>
  stop(): Promise<void>
  log(): string
}

const host = Object.values(networkInterfaces())
  .flat()
  .find((one) => one?.family === 'IPv4' && !one.internal)?.address
if (!host) throw new Error('This takes an address that is not loopback.')

try {
  await tryAll(host)
} finally {
  for (const child of children) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
}
console.log(wrong === 0 ? 'all as it should be' : `${wrong} wrong`)
process.exit(wrong === 0 ? 0 : 1)

async function tryAll(address: string): Promise<void> {
  const simulator = await startSimulator({ host: address })
  const { caFile, issue } = createAuthority()
  const { cert, key } = issue('localhost')
  const secured = createSecureServer({ cert, key }, (socket) => {
    const onward = connect(simulator.port, address)
    for (const one of [socket, onward]) one.on('error', () => {})
    socket.pipe(onward).pipe(socket)
  })
  const securePort = await listenOn(secured, '127.0.0.1')
  // The certificate is for `localhost`, which is loopback. So only the key of the file applies, not the environment.
  const upstreams = { plain: simulator.url, secured: `https://localhost:${securePort}` }
  for (const make of [tinyproxy, squid]) {
    for (const isClosed of [false, true]) {
      const proxy = await make(isClosed)
      await proxy.start()
      const named = (credentials: string) => `http://${credentials}127.0.0.1:${proxy.port}`
      const right = isClosed ? `${user}:${encodeURIComponent(password)}@` : ''
      const about = `${proxy.name}${isClosed ? ' with credentials' : ''}`
      for (const [kind, base_url] of Object.entries(upstreams)) {
        const upstream = { base_url, ca_file: caFile, accounts: [{ name: 'a', key: 'k' }] }
        await tryOne(`${about}, ${kind}, by the file`, { ...upstream, proxy: named(right) }, {}, async (ask) => {
          check(about, await ask(), 200)
          check(`${about}, stream`, await ask(true), 200)
          // Squid logs a tunnel only when it is closed.
          const isLogged = proxy.log().includes(base_url.replace(/^https?:\/\//, ''))
          const isLate = proxy.name === 'squid' && kind === 'secured'
          check('its log has the upstream', isLogged || isLate ? 'yes' : 'no', 'yes')
          await proxy.stop()
          check(`${about}, gone`, await ask(), '502 upstream_proxy')
          await proxy.start()
          check(`${about}, back`, await ask(), 200)
        })
        if (!isClosed) continue
        await tryOne(`${about}, ${kind}, wrong ones`, { ...upstream, proxy: named('ann:no@') }, {}, async (ask) =>
          check(`${about}, wrong ones`, await ask(), '502 upstream_proxy'),
        )
      }
      for (const scheme of ['http', 'https']) {
        const lost = { base_url: `${scheme}://nobody.invalid`, accounts: [{ name: 'a', key: 'k' }] }
        await tryOne(
          `${about}, a ${scheme} host that is not there`,
          { ...lost, proxy: named(right) },
          {},
          async (ask) => check(`${about}, no such host`, await ask(), '502 upstream_proxy'),
        )
      }
      const open = { base_url: upstreams.plain, accounts: [{ name: 'a', key: 'k' }] }
      const seen = () => proxy.log().split(`${address}:${simulator.port}`).length
      await tryOne(`${about}, by the environment`, open, { HTTP_PROXY: named(right) }, async (ask) => {
        const before = seen()
        check(about, await ask(), 200)
        check('the proxy was asked', seen() > before ? 'yes' : 'no', 'yes')
      })
      await tryOne(`${about}, spared`, open, { http_proxy: named(right), no_proxy: address }, async (ask) => {
        const before = seen()
        check(about, await ask(), 200)
        check('the proxy was not asked', seen() > before ? 'no' : 'yes', 'yes')
      })
      await proxy.stop()
    }
  }
  secured.close()
  await simulator.close()
}

type Ask = (isStream?: boolean) => Promise<number | string>

/** Starts a gateway with this upstream, to which `work` sends requests. */
async function tryOne(title: string, upstream: object, env: Record<string, string>, work: (ask: Ask) => Promise<void>) {
  console.log(title)
  const home = mkdtempSync(join(folder, 'gateway-'))
  const model = {
    id: 'm',
    wire: 'chat',
    upstream: 'far',
    upstream_model: 'sim',
    max_output_tokens: 99,
    prices: { input: '1', output: '1' },
  }
  const file = {
    listen: '127.0.0.1:0',
    admin_listen: '127.0.0.1:0',
    store: './triwire.db',
    catalog: { pinned: '2026-11-01', models: [model] },
    upstreams: { far: upstream },
  }
  writeFileSync(join(home, 'triwire.yaml'), stringify(file), { mode: 0o600 })
  const program = join(import.meta.dirname, '../bin/triwire.mjs')
  const run = (...args: string[]) =>
    JSON.parse(execFileSync(process.execPath, [program, ...args, '--json'], { cwd: home, encoding: 'utf8' }))
  run('account', 'create', 'tester', '--credit', '10')
  const { key } = run('key', 'create', 'tester') as { key: string }
  const running: Served = serve([], home, { env })
  children.add(running.child)
  const url = await running.url()
  await work(async (isStream = false) => {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ model: 'm', stream: isStream, messages: [{ role: 'user', content: 'Hi' }] }),
    })
    const text = await response.text()
    if (response.status === 200) return !isStream || text.includes('data: [DONE]') ? 200 : 'a stream without its end'
    const id = response.headers.get('x-request-id')
    await running.saw(id!)
    const line = running
      .stderr()
      .split('\n')
      .find((one) => one.includes(id!))!
    return `${response.status} ${(JSON.parse(line) as { cause: string }).cause}`
  })
  running.child.kill('SIGTERM')
  running.child.kill('SIGTERM')
  await running.exited
}

function check(title: string, got: number | string, expected: number | string): void {
  const isRight = got === expected
  if (!isRight) wrong++
  console.log(`  ${isRight ? 'ok   ' : 'WRONG'} ${title}: ${got}${isRight ? '' : `, not ${expected}`}`)
}

async function tinyproxy(isClosed: boolean): Promise<Proxy> {
  const port = await freePort()
  const file = join(folder, `tinyproxy-${port}.conf`)
  const log = join(folder, `tinyproxy-${port}.log`)
  const lines = [`Port ${port}`, 'Listen 127.0.0.1', 'MaxClients 50', `LogFile "${log}"`, 'LogLevel Connect']
  if (isClosed) lines.push(`BasicAuth ${user} ${password}`)
  writeFileSync(file, `${lines.join('\n')}\n`)
  return daemon('tinyproxy', port, isClosed, ['tinyproxy', '-d', '-c', file], log)
}

async function squid(isClosed: boolean): Promise<Proxy> {
  const port = await freePort()
  const at = (name: string) => join(folder, `squid-${port}-${name}`)
  const log = at('access.log')
  const hash = execFileSync('openssl', ['passwd', '-apr1', password], { encoding: 'utf8' }).trim()
  writeFileSync(at('passwords'), `${user}:${hash}\n`)
  const access = isClosed
    ? [
        `auth_param basic program /usr/lib/squid/basic_ncsa_auth ${at('passwords')}`,
        'acl known proxy_auth REQUIRED',
        'http_access allow known',
        'http_access deny all',
      ]
    : ['http_access allow all']
  const lines = [`http_port 127.0.0.1:${port}`, ...access, 'cache deny all', 'pinger_enable off', 'shutdown_lifetime 0']
  lines.push(
    `pid_filename ${at('pid')}`,
    `cache_log ${at('cache.log')}`,
    `access_log stdio:${log}`,
    'visible_hostname squid',
  )
  lines.push(`coredump_dir ${folder}`)
  writeFileSync(at('conf'), `${lines.join('\n')}\n`)
  return daemon('squid', port, isClosed, ['squid', '-N', '-f', at('conf')], log)
}

function daemon(name: string, port: number, isClosed: boolean, [file = '', ...args]: string[], log: string): Proxy {
  let child: ChildProcess | undefined
  return {
    name,
    port,
    isClosed,
    async start() {
      child = spawn(file, args, { stdio: 'ignore' })
      child.on('error', (error) => console.error(error.message))
      children.add(child)
      await untilReached(port)
    },
    async stop() {
      const gone = new Promise((resolve) => child!.once('exit', resolve))
      child!.kill('SIGKILL')
      await gone
      // A killed squid leaves this file, with which it would not start again.
      rmSync(join(folder, `squid-${port}-pid`), { force: true })
    },
    log: () => readFileSync(log, 'utf8'),
  }
}

async function untilReached(port: number): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    const isThere = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true))
      socket.on('error', () => resolve(false))
      socket.on('connect', () => socket.destroy())
    })
    if (isThere) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error(`Nobody listens on port ${port}: are tinyproxy and squid installed?`)
}

async function listenOn(server: Server, address: string): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, address, resolve))
  return (server.address() as AddressInfo).port
}
