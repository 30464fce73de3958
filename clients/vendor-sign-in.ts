import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startSimulator } from '../src/simulator/simulator.ts'
import { TestBrowser, type Visit } from '../test/support/browser.ts'
import { createAuthority, type Pair } from '../test/support/certificates.ts'
import { providerSecret, startIdentityProvider } from '../test/support/identity-provider.ts'
import { type Postgres, startPostgres } from '../test/support/postgres.ts'
import { npmAgents as agents } from './agents/npm.ts'
import { credentialsOf, expireLogin, loginKeys, prepareLogin, readLogin } from './claude-login.ts'
import { programOf } from './installs.ts'
import { endGroup, run } from './place.ts'
import { readScreen } from './screen.ts'

// npm run test:vendor-sign-in [-- vendor or own]
//
// Claude Code signs in from an empty home, in a terminal: once at its vendor's own gateway, which is in the same program, and once at
// triwire. The script is the same for both. It needs root, PostgreSQL, and the programs that `npm run test:clients` installs. It runs
// in a network namespace with private addresses and a private CA, in which nothing else can be reached. The person's browser is an HTTP
// client that follows the links and presses the buttons of the pages.

const [gatewayName, providerName] = ['gw.corp.test', 'idp.corp.test']
const addresses = { [gatewayName]: '10.9.9.1', [providerName]: '10.9.9.2' }
const url = `https://${gatewayName}`
/** The first words of each answer of the simulated model. */
const done = 'You said:'
const [limitMs, signInMsMax] = [300_000, 60_000]
/** The text of the button that a person presses to approve their own sign-in. */
const goesOn = /approve<|continue</i
const root = dirname(import.meta.dirname)
const insideVariable = 'TRIWIRE_VENDOR_INSIDE'
const inside = process.env[insideVariable]
/** The database of the vendor's gateway. */
let postgres: Postgres | undefined
const agent = agents.find(({ client }) => client === 'claude-code')!

/** A gateway at which the client signs in. @property model the model that the client uses */
type Candidate = {
  callback: string
  model: string
  start(folder: string, pair: Pair, caFile: string, upstream: string): Promise<ChildProcess>
}

const candidates: Readonly<Record<string, Candidate>> = {
  vendor: { callback: `${url}/oauth/callback`, model: 'claude-sonnet-4-5', start: startVendor },
  own: { callback: `${url}/console/callback`, model: 'large', start: startOwn },
}

/** Runs this file again in a network of its own. The CA exists before, because Node reads it at its start. */
function runInside(name: string): number {
  const folder = mkdtempSync(join(tmpdir(), 'triwire-vendor-'))
  const hosts = join(folder, 'hosts')
  const lines = Object.entries({ localhost: '127.0.0.1', ...addresses }).map(([name, ip]) => `${ip} ${name}`)
  writeFileSync(hosts, `${lines.join('\n')}\n`)
  process.env['TRIWIRE_TEST_DIR'] = folder
  const authority = createAuthority()
  const pairs = [gatewayName, providerName].map((name) => authority.issue(name))
  const links = ['ip link set lo up', ...Object.values(addresses).map((ip) => `ip addr add ${ip}/32 dev lo`)]
  const command = [...links, 'mount --bind "$HOSTS" /etc/hosts', 'exec "$0" "$@"'].join(' && ')
  const { status } = spawnSync(
    'unshare',
    ['--net', '--mount', 'sh', '-c', command, process.execPath, import.meta.filename, name],
    {
      stdio: 'inherit',
      env: {
        ...process.env,
        HOSTS: hosts,
        NODE_EXTRA_CA_CERTS: authority.caFile,
        [insideVariable]: JSON.stringify({ folder, pairs, caFile: authority.caFile }),
      },
    },
  )
  rmSync(folder, { recursive: true, force: true })
  return status ?? 1
}

/** @returns the number of failures, which are printed */
async function signIn(name: string): Promise<number> {
  const { callback, model, start } = candidates[name]!
  const { folder: base, pairs, caFile } = JSON.parse(inside!) as { folder: string; pairs: [Pair, Pair]; caFile: string }
  const folder = mkdtempSync(join(base, `${name}-`))
  const [home, work] = [join(folder, 'home'), join(folder, 'work')]
  for (const path of [home, work]) mkdirSync(path, { recursive: true })
  const simulator = await startSimulator({ strict: false, record: true })
  const dev = { sub: 'u-1', email: 'dev@corp.test', name: 'Dev One', groups: ['developers'] }
  const site = { name: providerName, address: addresses[providerName]!, pair: pairs[1] }
  await startIdentityProvider([callback], dev, site)
  const running = await start(folder, pairs[0], caFile, simulator.url)
  const failed: string[] = []
  try {
    const { opened, browser } = prepareLogin(home, url)
    const own = { ...agent.env, BROWSER: browser, ANTHROPIC_MODEL: model, NODE_EXTRA_CA_CERTS: caFile }
    const env = { PATH: '/usr/bin:/bin', HOME: home, TMPDIR: folder, LANG: 'C.UTF-8', ...own }
    const program = programOf(agent.source)
    const began = performance.now()
    const [connected, page] = await Promise.all([
      readScreen(program, { cwd: work, env, keys: loginKeys, text: /Connected to Cloud gateway/, limitMs }),
      approve(opened),
    ])
    const ask = () => run(program, ['-p', 'What is the answer?'], { cwd: work, env, limitMs })
    const first = connected === '' ? undefined : await ask()
    const seconds = Math.round((performance.now() - began) / 1000)
    const [path, kept] = [credentialsOf(home), readLogin(home)]
    if (kept) expireLogin(home)
    const next = kept && (await ask())
    const later = readLogin(home)
    await run(program, ['auth', 'logout'], { cwd: work, env, limitMs })
    const codes = existsSync(opened) ? readFileSync(opened, 'utf8').trim().split('\n') : []
    const verdicts: [boolean, string][] = [
      [connected !== '', 'the terminal does not say that it is signed in'],
      [codes.length === 1, `${codes.length} pages were opened`],
      [/signed in|close this|return to/i.test(page), `the browser ended at: ${page.slice(0, 300)}`],
      [first?.stdout.includes(done) === true, `it has no answer: ${first?.stdout} ${first?.stderr}`],
      [next?.stdout.includes(done) === true, `it has no answer after its token ended: ${next?.stdout} ${next?.stderr}`],
      [later !== undefined && later.jwt !== kept?.jwt, 'it has no new token'],
      [!existsSync(path) || !readFileSync(path, 'utf8').includes('jwt'), 'it is not signed out'],
      [seconds <= signInMsMax / 1000, `it took ${seconds} s`],
    ]
    for (const [isSo, otherwise] of verdicts) if (!isSo) failed.push(otherwise)
    console.log(
      `${failed.length === 0 ? 'ok' : 'FAILED'} ${name}: ${seconds} s from an empty home to an answer, ${codes.length} code`,
    )
  } catch (error) {
    failed.push(String(error))
    console.log(`FAILED ${name}`)
  } finally {
    endGroup(running)
    postgres?.remove()
    await simulator.close()
  }
  for (const line of failed) console.log(`  ${line}`)
  return failed.length
}

/** Acts as the person: opens the page that the program named, and presses its buttons. @returns the last page's text */
async function approve(opened: string): Promise<string> {
  const until = Date.now() + limitMs
  while (!existsSync(opened)) {
    if (Date.now() > until) return 'no page was opened'
    await sleep(100)
  }
  const browser = new TestBrowser()
  let visit = await browser.go(readFileSync(opened, 'utf8').trim().split('\n')[0]!)
  for (let steps = 0; steps < 5; steps++) {
    const next = await goOn(browser, visit)
    if (!next) break
    visit = next
  }
  return visit.text.replace(/<style>[\s\S]*?<\/style>|<[^>]+>/g, ' ').replace(/\s+/g, ' ')
}

/** Follows the link or presses the button with which a page goes on. @returns undefined if it has neither */
async function goOn(browser: TestBrowser, visit: Visit): Promise<Visit | undefined> {
  if (/<a [^>]*>Continue<\/a>/.test(visit.text)) return browser.follow(visit, 'Continue')
  const form = [...visit.text.matchAll(/<form([^>]*)>([\s\S]*?)<\/form>/gi)].find(([, , inner]) => goesOn.test(inner!))
  if (!form) return undefined
  const attribute = (tag: string, name: string) => new RegExp(`\\b${name}="([^"]*)"`, 'i').exec(tag)?.[1]
  const fields: Record<string, string> = {}
  for (const [tag] of form[2]!.matchAll(/<input[^>]*>/gi)) {
    const field = attribute(tag, 'name')
    if (field) fields[field] = attribute(tag, 'value') ?? ''
  }
  const button = [...form[2]!.matchAll(/<button([^>]*)>([\s\S]*?)<\/button>/gi)].find(([, , text]) =>
    goesOn.test(`${text}<`),
  )
  const field = button && attribute(button[1]!, 'name')
  if (field) fields[field] = attribute(button[1]!, 'value') ?? ''
  const target = new URL(attribute(form[1]!, 'action') ?? '', visit.url)
  return browser.go(target, { method: 'POST', form: fields, from: visit.url.href })
}

async function startVendor(folder: string, pair: Pair, caFile: string, upstream: string): Promise<ChildProcess> {
  postgres = await startPostgres()
  const config = {
    listen: {
      host: addresses[gatewayName],
      port: 443,
      public_url: url,
      tls: { cert: pair.certFile, key: pair.keyFile },
    },
    oidc: {
      ...{ issuer: `https://${providerName}`, client_id: 'triwire', client_secret: providerSecret },
      ...{ allowed_email_domains: ['corp.test'], ca_cert_pem: readFileSync(caFile, 'utf8'), userinfo_fallback: true },
    },
    session: { jwt_secret: Buffer.alloc(32, 'canary-secret-of-sessions').toString('base64'), ttl_hours: 1 },
    store: { postgres_url: postgres.url },
    upstreams: [{ provider: 'anthropic', base_url: upstream, auth: { api_key: 'canary-upstream-key' } }],
  }
  const path = join(folder, 'gateway.yaml')
  writeFileSync(path, JSON.stringify(config, undefined, 1))
  const env = {
    CLAUDE_GATEWAY_ALLOW_LOOPBACK: '1',
    CLAUDE_CONFIG_DIR: join(folder, 'gateway'),
    NODE_EXTRA_CA_CERTS: caFile,
  }
  return listening(programOf(agent.source), ['gateway', '--config', path], folder, env)
}

async function startOwn(folder: string, pair: Pair, caFile: string, upstream: string): Promise<ChildProcess> {
  const model = { id: 'large', wire: 'messages', upstream: 'sim', upstream_model: 'sim', max_output_tokens: 32_000 }
  const config = {
    ...{ listen: `${addresses[gatewayName]}:443`, tls: { cert: pair.certFile, key: pair.keyFile }, api_url: url },
    ...{ store: join(folder, 'triwire.db'), admin_listen: '127.0.0.1:8081' },
    sign_in: {
      ...{ issuer: `https://${providerName}`, client_id: 'triwire', client_secret: providerSecret, ca_file: caFile },
      rules: [{ groups: ['developers'], account: 'acme' }],
    },
    upstreams: { sim: { base_url: upstream, accounts: [{ name: 'a', key: 'canary-upstream-key' }] } },
    catalog: { pinned: '2026-11-01', models: [{ ...model, prices: { input: '1', output: '1' } }] },
  }
  const path = join(folder, 'triwire.yaml')
  writeFileSync(path, JSON.stringify(config, undefined, 1), { mode: 0o600 })
  const program = join(root, 'bin/triwire.mjs')
  const account = ['--config', path, 'account', 'create', 'acme', '--credit', '10']
  const made = spawnSync(process.execPath, [program, ...account], { encoding: 'utf8', cwd: folder })
  if (made.status !== 0) throw new Error(`${made.stdout}${made.stderr}`)
  return listening(process.execPath, [program, 'serve', '--config', path], folder, {})
}

/** Starts a gateway. @throws Error with what it printed if it does not listen within a minute */
async function listening(
  command: string,
  args: readonly string[],
  folder: string,
  more: Record<string, string>,
): Promise<ChildProcess> {
  const env = { PATH: process.env['PATH'], HOME: folder, TMPDIR: folder, ...more }
  const child = spawn(command, args, { cwd: folder, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  let printed = ''
  for (const stream of [child.stdout!, child.stderr!])
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed += text
    })
  for (const until = Date.now() + limitMs; Date.now() < until && child.exitCode === null; await sleep(200)) {
    const isUp = await fetch(`${url}/.well-known/oauth-authorization-server`).then(
      ({ ok }) => ok,
      () => false,
    )
    if (isUp) return child
  }
  endGroup(child)
  throw new Error(`it does not listen: ${printed.slice(-2_000)}`)
}

const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(candidates)
if (names.some((name) => !Object.hasOwn(candidates, name))) {
  console.error('npm run test:vendor-sign-in [-- vendor or own]')
  process.exit(2)
}
process.exit(inside === undefined ? Math.max(...names.map(runInside)) : Math.min(1, await signIn(names[0]!)))
