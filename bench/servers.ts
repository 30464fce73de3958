import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { freePort } from '../test/support/listen.ts'
import { answerNames } from './answers.ts'

/** A server to be measured, a process of its own. */
export type TestedServer = {
  name: 'nginx' | 'bare' | 'gateway' | 'before' | 'postgres'
  port: number
  pid: number
  /** Of an account with more credit than any run spends; nginx and the bare pipe do not look at it. */
  key: string
}

/** What runs for a benchmark. */
export type Bench = {
  servers: TestedServer[]
  /** What was not possible here, in whole sentences. */
  notes: string[]
  close(): Promise<void>
}

/** Prices as on a real list, so that a bill is computed. */
const prices = { input: '3', cache_read: '0.3', cache_write: '3.75', output: '15' }

const here = import.meta.dirname

/**
 * Starts the upstream, and in front of it every server; each of those alone on the first core where that can be had.
 * @param against another checkout, whose gateway is measured too.
 * @param database a URL of PostgreSQL: this checkout's gateway is measured on it too.
 */
export async function startBench(
  against?: string,
  nodeArguments: readonly string[] = [],
  database?: string,
): Promise<Bench> {
  const folder = mkdtempSync(join(tmpdir(), 'triwire-bench-'))
  const children: ChildProcess[] = []
  const notes: string[] = []
  const pin = pinOthers(notes)

  const upstreamPort = await start([process.execPath, join(here, 'upstream.ts')], /^(\d+)$/m)
  const origin = `http://127.0.0.1:${upstreamPort.port}`
  const servers: TestedServer[] = []
  if (spawnSync('nginx', ['-v']).error) notes.push('nginx is not installed: its column is missing.')
  else servers.push({ name: 'nginx', key: 'any', ...(await startNginx(upstreamPort.port)) })
  const bare = [...pin, process.execPath, join(here, 'bare-pipe.ts'), origin]
  servers.push({ name: 'bare', key: 'any', ...(await start(bare, /^(\d+)$/m)) })
  servers.push(await startGateway('gateway', join(here, '..')))
  if (against) servers.push(await startGateway('before', resolve(against)))
  if (database) servers.push(await startGateway('postgres', join(here, '..'), database))
  return { servers, notes, close }

  /** Starts a process that prints its port. */
  async function start(command: readonly string[], port: RegExp): Promise<{ port: number; pid: number }> {
    const child = spawn(command[0]!, command.slice(1), { cwd: folder, stdio: ['ignore', 'pipe', logTo()] })
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
    store = join(folder, `${name}.db`),
  ): Promise<TestedServer> {
    const program = join(root, 'bin', 'triwire.mjs')
    const key = createAccount(program, store)
    const command = [
      ...pin,
      process.execPath,
      ...nodeArguments,
      program,
      'serve',
      '--config',
      writeConfig(join(folder, name), store, origin),
    ]
    return { name, key, ...(await start(command, /listens on http:\/\/127\.0\.0\.1:(\d+)/)) }
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
    if (process.env['BENCH_LOG']) return
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The log costs what it costs, but nobody reads it; a failed start is worth seeing. */
function logTo(): 'ignore' | 'inherit' {
  return process.env['BENCH_LOG'] ? 'inherit' : 'ignore'
}

/** CPU that a process has used so far with all its threads, and its main thread alone, in ns. */
export function readCpu(pid: number): { allNs: number; mainNs: number } {
  let allNs = 0
  for (const thread of readdirSync(`/proc/${pid}/task`)) allNs += readThread(pid, thread)
  return { allNs, mainNs: readThread(pid, String(pid)) }
}

function readThread(pid: number, thread: string): number {
  return Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ', 1)[0])
}

/** Keeps this process and all it starts off the first core. @returns the command that puts a server onto it. */
function pinOthers(notes: string[]): string[] {
  const last = availableParallelism() - 1
  const pinned = last > 0 && spawnSync('taskset', ['-acp', `1-${last}`, String(process.pid)]).status === 0
  if (pinned) return ['taskset', '-c', '0']
  notes.push('No core could be set apart (taskset, two cores): servers and load disturb each other.')
  return []
}

/** With the checkout's own command line: another one may not know the schema of our stores. @returns a key. */
function createAccount(program: string, store: string): string {
  const run = (...args: string[]) => {
    const command = [program, ...args, '--json', '--store', store]
    const { status, stdout, stderr } = spawnSync(process.execPath, command, { encoding: 'utf8' })
    if (status !== 0) throw new Error(`${command.join(' ')} ended with ${status}: ${stderr}`)
    return JSON.parse(stdout)
  }
  run('account', 'create', 'bench', '--credit', '1000000000')
  return run('key', 'create', 'bench').key
}

/** @returns the path of a configuration for a server on this store. */
function writeConfig(place: string, store: string, origin: string): string {
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
  const accounts = [{ name: 'main', key: 'upstream-key' }]
  const file = {
    listen: '127.0.0.1:0',
    admin_listen: '127.0.0.1:0',
    store,
    ...(store.includes('://') && { state_dir: `${place}-state`, seal_key: Buffer.alloc(32, 1).toString('base64') }),
    catalog: { pinned: '2026-11-01', models },
    upstreams: Object.fromEntries(answerNames.map((name) => [name, { base_url: `${origin}/${name}`, accounts }])),
    limits: { requests_per_minute: 1_000_000_000 },
    log: { format: 'json' },
  }
  const config = `${place}.yaml`
  // JSON is YAML.
  writeFileSync(config, JSON.stringify(file), { mode: 0o600 })
  return config
}

/** One worker, kept-alive connections on both sides, streams unbuffered, bodies in memory. */
function nginxConfig(folder: string, port: number, upstream: number): string {
  return `
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
    location /stream- { proxy_pass http://models; proxy_buffering off; }
  }
}
`
}
