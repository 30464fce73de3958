import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { freePort } from '../test/support/listen.ts'
import { answerNames, prepareAnswers, prices } from './answers.ts'
import { buildTools, type Tools, writeAnswers } from './tools.ts'
import type { Workload } from './workloads.ts'

/** A server that is measured. It runs in its own process. */
export type TestedServer = {
  /** `nginx`, `bare`, `gateway`, `before`, `postgres`, or the name of a variant or a peer. */
  name: string
  port: number
  pid: number
  /** A key of an account with more credit than any run spends. nginx and the bare pipe ignore it. */
  key: string
  /** A key of the same account with a budget of its own. */
  budgetKey?: string | undefined
  /** Keys that requests use in turn, instead of the two above. */
  keysInTurn?: readonly string[]
  /** For a peer: the model and the headers of its requests. A peer may be several processes. */
  peer?: {
    modelOf: (workload: Workload) => string
    headers: Readonly<Record<string, string>>
    /** The most concurrent streams that it can send at their pace. */
    streamsMax: number
  }
  /** Reads the debits of its ledger; absent without a ledger in SQLite. */
  readBills?: () => Bills
  /** The time from its start until it listens. */
  startedMs?: number
}

/** The number of debits in a ledger, and their sum. */
export type Bills = { count: number; nanos: bigint }

/** The processes of a benchmark. */
export type Bench = {
  tools: Tools
  /** The origin of the upstream. Paths begin with the name of an answer. */
  origin: string
  /** The beginning of a command that binds a server to its core. */
  pin: readonly string[]
  servers: TestedServer[]
  upstreamPid: number
  /** Sentences about what this machine lacks, and about how long servers took to start. */
  notes: string[]
  close(): Promise<void>
}

export type BenchOptions = {
  /** Another checkout, or a commit of this one, whose gateway is measured too. */
  compare?: string | undefined
  /** A URL of PostgreSQL, on which this checkout's gateway is measured too. */
  database?: string
  /** Further gateways of this checkout, with other settings. */
  variants?: readonly Variant[]
}

/** A gateway with other settings than the one named `gateway`. */
export type Variant = {
  name: string
  /** The folder of its store, such as one in memory. */
  folder?: string
  /** Flags of its Node process. */
  flags?: readonly string[]
  /** The script that starts it, instead of bin/triwire.mjs. */
  launcher?: string
  /** Further keys of its configuration. */
  config?: Record<string, unknown>
  /** Models in its catalog beside those of the benchmark. */
  models?: number
  /** Fills its store before it starts. @returns keys for its requests, in turn */
  fill?: (store: string) => Promise<readonly string[]>
}

const here = import.meta.dirname
/**
 * The number of cores, read before this process leaves the first one: a benchmark may call `startBench` several times.
 */
const cores = availableParallelism()

/** Starts the upstream, and the servers in front of it. If possible, only these servers use the first core. */
export async function startBench({ compare, database, variants = [] }: BenchOptions = {}): Promise<Bench> {
  const folder = mkdtempSync(join(tmpdir(), 'triwire-bench-'))
  const children: ChildProcess[] = []
  const notes: string[] = []
  const elsewhere: string[] = []
  // An interrupted run must leave no server and no store.
  process.once('exit', () => {
    for (const child of children) child.kill('SIGKILL')
    clear()
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  const pin = pinOthers(notes)
  const tools = buildTools(folder)

  const answers = writeAnswers(folder, prepareAnswers())
  const upstream = await start([tools.upstream, answers], /^(\d+)$/m)
  const origin = `http://127.0.0.1:${upstream.port}`
  const servers: TestedServer[] = []
  if (spawnSync('nginx', ['-v']).error) notes.push('nginx is not installed: its column is missing.')
  else servers.push({ name: 'nginx', key: 'any', ...(await startNginx(upstream.port)) })
  const bare = [...pin, process.execPath, join(here, 'bare-pipe.ts'), origin]
  servers.push({ name: 'bare', key: 'any', ...(await start(bare, /^(\d+)$/m)) })
  servers.push(await startGateway('gateway', join(here, '..')))
  if (compare !== undefined) servers.push(await startGateway('before', checkOut(compare, folder)))
  if (database) servers.push(await startGateway('postgres', join(here, '..'), { store: database }))
  for (const variant of variants) {
    const own = variant.folder && mkdtempSync(join(variant.folder, 'triwire-bench-'))
    if (own) elsewhere.push(own)
    const store = join(own ?? folder, `${variant.name}.db`)
    servers.push(await startGateway(variant.name, join(here, '..'), { ...variant, store }))
  }
  return { tools, origin, pin, servers, upstreamPid: upstream.pid, notes, close }

  /** Starts a process that prints its port. Its log goes to a file. */
  async function start(command: readonly string[], port: RegExp): Promise<{ port: number; pid: number }> {
    const log = openSync(join(folder, `${children.length}.log`), 'a')
    const child = spawn(command[0]!, command.slice(1), { cwd: folder, stdio: ['ignore', 'pipe', log] })
    children.push(child)
    let output = ''
    for await (const chunk of child.stdout!) {
      output += chunk
      const match = port.exec(output)
      if (match) return { port: Number(match[1]), pid: child.pid! }
    }
    throw new Error(`${command.join(' ')} ended with ${child.exitCode}`)
  }

  async function startGateway(
    name: TestedServer['name'],
    root: string,
    {
      store = join(folder, `${name}.db`),
      flags = [],
      launcher,
      config: more = {},
      models = 0,
      fill,
    }: Omit<Variant, 'name' | 'folder'> & { store?: string } = {},
  ): Promise<TestedServer> {
    const program = join(root, 'bin', 'triwire.mjs')
    const keys = createAccount(program, store)
    const keysInTurn = await fill?.(store)
    const path = writeConfig(join(folder, name), store, origin, { models, more })
    const startedMs = performance.now()
    const command = [...pin, process.execPath, ...flags, launcher ?? program, 'serve', '--config', path]
    const running = await start(command, /listens on http:\/\/127\.0\.0\.1:(\d+)/)
    const tookMs = performance.now() - startedMs
    notes.push(`${name}: it listened ${Math.round(tookMs)} ms after it was started.`)
    const bills = !store.includes('://') && { readBills: () => readBills(store) }
    return { name, ...keys, ...(keysInTurn && { keysInTurn }), startedMs: tookMs, ...running, ...bills }
  }

  async function startNginx(upstream: number): Promise<{ port: number; pid: number }> {
    const port = await freePort()
    const config = join(folder, 'nginx.conf')
    writeFileSync(config, nginxConfig(folder, port, upstream))
    const [program, ...rest] = [...pin, 'nginx', '-p', folder, '-e', join(folder, 'nginx.log'), '-c', config]
    const child = spawn(program!, rest, { stdio: 'ignore' })
    children.push(child)
    await new Promise((resolve) => setTimeout(resolve, 300))
    return { port, pid: child.pid! }
  }

  async function close(): Promise<void> {
    for (const child of children) {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      if (child.exitCode === null && child.kill('SIGINT')) await ended
    }
    clear()
  }

  function clear(): void {
    if (process.env['BENCH_KEEP']) return
    for (const place of [folder, ...elsewhere]) rmSync(place, { recursive: true, force: true })
  }
}

/** Installs the packages of a commit in its folder. */
export type InstallPackages = (place: string) => void

/**
 * Unpacks a commit. It uses this checkout's packages if both lockfiles are the same; otherwise those of its own
 * lockfile are installed.
 * @param ref a commit, or the folder of another checkout, which is used unchanged
 * @returns the folder
 * @throws Error if `ref` is neither, or its packages cannot be installed
 */
export function checkOut(
  ref: string,
  folder: string,
  root = join(here, '..'),
  install: InstallPackages = npmCi,
): string {
  if (existsSync(join(ref, 'bin', 'triwire.mjs'))) return resolve(ref)
  const place = join(folder, 'checkout')
  mkdirSync(place)
  const script = 'git -C "$0" archive "$1" | tar -x -C "$2"'
  const { status } = spawnSync('bash', ['-o', 'pipefail', '-c', script, root, ref, place], { stdio: 'inherit' })
  if (status !== 0) throw new Error(`${ref} is neither a checkout nor a commit`)
  const [own, its] = [root, place].map((one) => readFileSync(join(one, 'package-lock.json')))
  if (own!.equals(its!)) symlinkSync(join(root, 'node_modules'), join(place, 'node_modules'))
  else install(place)
  return place
}

/** Installs exactly what a lockfile names. No package runs a script. */
function npmCi(place: string): void {
  const options = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline']
  const { status } = spawnSync('npm', options, { cwd: place, stdio: ['ignore', 2, 2] })
  if (status !== 0) throw new Error(`npm ci in ${place} ended with ${status}`)
}

/** Reads a store from outside of its server. These columns have the same names in all releases. */
function readBills(store: string): Bills {
  const db = new DatabaseSync(store, { readOnly: true })
  const statement = db.prepare(`SELECT count(*) AS count, sum(amount) AS nanos FROM entries WHERE kind = 'debit'`)
  statement.setReadBigInts(true)
  const { count, nanos } = statement.get()!
  db.close()
  return { count: Number(count), nanos: (nanos as bigint | null) ?? 0n }
}

/**
 * Keeps this process and its children off the first core.
 * @returns the beginning of a command that binds a server to it
 */
function pinOthers(notes: string[]): string[] {
  const last = cores - 1
  const pinned = last > 0 && spawnSync('taskset', ['-acp', `1-${last}`, String(process.pid)]).status === 0
  if (pinned) return ['taskset', '-c', '0']
  notes.push('No core could be reserved (this needs taskset and two cores), so servers and load disturb each other.')
  return []
}

/**
 * Creates an account and keys with the checkout's own program, since an older one may not know our schema, or budgets.
 */
function createAccount(program: string, store: string): Pick<TestedServer, 'key' | 'budgetKey'> {
  const run = (...args: string[]) => {
    const command = [program, ...args, '--json', '--store', store]
    const { status, stdout, stderr } = spawnSync(process.execPath, command, { encoding: 'utf8' })
    if (status !== 0 && args.includes('--budget')) return {}
    if (status !== 0) throw new Error(`${command.join(' ')} ended with ${status}: ${stderr}`)
    return JSON.parse(stdout)
  }
  run('account', 'create', 'bench', '--credit', '1000000000')
  return {
    key: run('key', 'create', 'bench').key,
    budgetKey: run('key', 'create', 'bench', '--budget', '1000000/day').key,
  }
}

/** @returns the path of a configuration for a server on this store. */
function writeConfig(
  place: string,
  store: string,
  origin: string,
  own: { models: number; more: Record<string, unknown> },
): string {
  const models = answerNames.flatMap((answer) =>
    (['messages', 'chat', 'responses'] as const).map((wire) => ({
      id: `${answer}-${wire}`,
      wire,
      upstream: answer,
      upstream_model: 'upstream-model',
      max_output_tokens: 8192,
      prices,
    })),
  )
  for (let i = 0; i < own.models; i++) models.push({ ...models[0]!, id: `model-${i}` })
  const accounts = [{ name: 'main', key: 'upstream-key' }]
  const file = {
    listen: '127.0.0.1:0',
    admin_listen: '127.0.0.1:0',
    store,
    ...(store.includes('://') && {
      state_dir: `${place}-state`,
      seal_key: Buffer.from('a seal key of thirty-two bytes..').toString('base64'),
    }),
    catalog: { pinned: '2026-11-01', models },
    upstreams: Object.fromEntries(answerNames.map((name) => [name, { base_url: `${origin}/${name}`, accounts }])),
    limits: { requests_per_minute: 1_000_000_000 },
    log: { format: 'json' },
    ...own.more,
  }
  const config = `${place}.yaml`
  // JSON is valid YAML.
  writeFileSync(config, JSON.stringify(file), { mode: 0o600 })
  return config
}

/** nginx gets one worker, kept-alive connections on both sides, unbuffered streams, and bodies in memory. */
function nginxConfig(folder: string, port: number, upstream: number): string {
  // nginx gives its folders to this user. In a user namespace there is no other one.
  return `
user root;
daemon off;
master_process off;
worker_processes 1;
pid ${folder}/nginx.pid;
events { worker_connections 2048; }
http {
  access_log off;
  client_max_body_size 10m;
  client_body_buffer_size 2m;
  client_body_temp_path ${folder}/nginx-body;
  proxy_temp_path ${folder}/nginx-proxy;
  fastcgi_temp_path ${folder}/nginx-fastcgi;
  uwsgi_temp_path ${folder}/nginx-uwsgi;
  scgi_temp_path ${folder}/nginx-scgi;
  keepalive_requests 1000000000;
  upstream models { server 127.0.0.1:${upstream}; keepalive 256; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port};
    proxy_http_version 1.1;
    proxy_set_header connection "";
    location / { proxy_pass http://models; }
    location ~ ^/(stream-|mixed/) { proxy_pass http://models; proxy_buffering off; }
  }
}
`
}
