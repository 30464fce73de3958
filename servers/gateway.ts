import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { stringify } from 'yaml'
import type { ClientWire } from '../src/catalog/wire-names.ts'
import type { ModelServer } from './model-server.ts'

const program = join(import.meta.dirname, '../bin/triwire.mjs')

export const wires = ['messages', 'chat', 'responses'] as const satisfies readonly ClientWire[]

/** An entry of the ledger, as `ledger list --json` has it. */
export type Entry = {
  request_id: string | null
  input_tokens: number
  cache_read_tokens: number
  output_tokens: number
  usage_source: string
  outcome: string
}

/** The gateway as operators run it: in its own process, with its store on the disk. */
export type Gateway = {
  url: string
  key: string
  /** The debits of all requests, by their ids. */
  entries(): Map<string, Entry>
  /** Returns the findings of `ledger verify`. */
  findings(): unknown[]
  /** Reloads the configuration with these timeouts for a silent server. */
  setSilence(ms: number): Promise<void>
  stop(): Promise<void>
}

/** The catalog's ids of the model, by the wire of its entry. */
export const modelIds = {
  plain: (wire: ClientWire) => `tiny-${wire}`,
  /** With a profile that accepts no images. */
  textOnly: (wire: ClientWire) => `text-${wire}`,
  /** On the same server, with a key that the server refuses. */
  locked: (wire: ClientWire) => `locked-${wire}`,
}

/** Timeouts for a silent server, in ms: for a long prompt on a busy machine, and for tests that freeze the server. */
export const silences = { patient: 60_000, short: 10_000 }

export async function startGateway(folder: string, server: ModelServer): Promise<Gateway> {
  const configPath = join(folder, 'triwire.yaml')
  const configure = (ms: number) => writeFileSync(configPath, stringify(configuration(server, ms)), { mode: 0o600 })
  configure(silences.patient)
  const run = (...args: string[]) =>
    execFileSync(process.execPath, [program, '--config', configPath, '--json', ...args], {
      cwd: folder,
      encoding: 'utf8',
    })
  run('account', 'create', 'servers', '--credit', '1000')
  const { key } = JSON.parse(run('key', 'create', 'servers')) as { key: string }
  const logPath = join(folder, 'gateway.log')
  const log = openSync(logPath, 'w')
  const child = spawn(process.execPath, [program, 'serve', '--config', configPath], {
    cwd: folder,
    stdio: ['ignore', 'ignore', log],
  })
  closeSync(log)
  // The gateway must not outlive the suite.
  process.on('exit', () => child.kill('SIGKILL'))
  const [, address] = await untilSaid(logPath, child, /"listening".*?"address":"([^"]+)"/)
  const url = `http://${address}`
  return {
    url,
    key,
    entries() {
      const listed = JSON.parse(run('ledger', 'list', '--limit', '100000')) as Entry[]
      return new Map(listed.flatMap((entry) => (entry.request_id === null ? [] : [[entry.request_id, entry] as const])))
    },
    findings: () => (JSON.parse(run('ledger', 'verify')) as { findings: unknown[] }).findings,
    async setSilence(ms) {
      configure(ms)
      child.kill('SIGHUP')
      await untilSaid(logPath, child, /"config_reloaded"/)
    },
    async stop() {
      child.kill('SIGTERM')
      if (child.exitCode === null) await once(child, 'exit')
    },
  }
}

function configuration(server: ModelServer, silenceMs: number): object {
  const { profile } = server
  const prices = { input: '1', cache_read: '0.1', output: '2' }
  const model = (id: string, wire: ClientWire, more: object) => ({
    id,
    wire,
    upstream: 'server',
    upstream_model: 'tiny',
    max_output_tokens: 2048,
    prices,
    profile,
    ...more,
  })
  return {
    listen: '127.0.0.1:0',
    admin_listen: '127.0.0.1:0',
    store: './triwire.db',
    catalog: {
      pinned: '2026-11-01',
      models: wires.flatMap((wire) => [
        model(modelIds.plain(wire), wire, {}),
        model(modelIds.textOnly(wire), wire, { profile: { ...profile, images: false } }),
        model(modelIds.locked(wire), wire, { upstream: 'locked' }),
      ]),
    },
    upstreams: {
      server: { base_url: server.url, accounts: [{ name: 'a', key: server.key }] },
      locked: { base_url: server.url, accounts: [{ name: 'a', key: 'a-wrong-key' }] },
    },
    limits: { requests_per_minute: 1_000_000 },
    billing: { read_on: '2s' },
    timeouts: {
      first_byte_stream: silenceMs,
      first_byte_json: silenceMs,
      idle: silenceMs,
      drain_delay: 0,
      drain_deadline: '2s',
    },
  }
}

async function untilSaid(logPath: string, child: ChildProcess, words: RegExp): Promise<RegExpExecArray> {
  for (const startedMs = performance.now(); performance.now() - startedMs < 60_000; await pause(50)) {
    const said = words.exec(readFileSync(logPath, 'utf8'))
    if (said) return said
    if (child.exitCode !== null) break
  }
  throw new Error(`the gateway does not log ${words}: ${readFileSync(logPath, 'utf8').slice(-2000)}`)
}
