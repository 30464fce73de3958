import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Books } from '../../src/accounts/books.ts'
import { parseCredits } from '../../src/accounts/credit.ts'
import { readStorePlace } from '../../src/config/store-place.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { openBooks } from '../../src/store/open-books.ts'
import { type Postgres, type PostgresOptions, startPostgres } from '../../test/support/postgres.ts'
import { until } from '../../test/support/waiting.ts'
import { type Program, startProgram } from '../support/program.ts'
import { drawLine, type Line } from './line.ts'

/** One of several gateways, in its own process. */
export type Replica = Program & {
  name: string
  adminUrl: string
  /** Its connection to the database, through which no other replica's data pass. */
  line: Line
  logPath: string
  /** The log lines of an event, as JSON. */
  readEvents(event: string): Record<string, unknown>[]
  kill(): Promise<void>
}

/** A PostgreSQL server, a simulated model, and the gateways that a trial starts. */
export type Setting = {
  postgres: Postgres
  url: string
  books: Books
  simulator: Simulator
  folder: string
  startReplica(options?: ReplicaOptions): Promise<Replica>
  /** Makes an account with credit and a key. */
  makePayer(credits?: string): Promise<Payer>
  close(): Promise<void>
}

export type Payer = { accountId: string; account: string; key: string }

export type ReplicaOptions = {
  name?: string
  /** Lines of the configuration in addition to those of all replicas. */
  extra?: readonly string[]
  /** Further environment variables, such as those of faketime. */
  env?: Record<string, string>
  /** The launcher of another checkout. */
  launcher?: string
  /** The number of workers that share the port. */
  workers?: number
}

export type SettingOptions = PostgresOptions & { perMinute?: number }

/** The tokens of an answer for which credit is held (ruling C2). */
export const holdTokens = 100

/** For each model: the id, the wire, and the simulator's name for it, with directives. */
const models = [
  ['sim-messages', 'messages', 'sim'],
  ['sim-chat', 'chat', 'sim'],
  ['sim-responses', 'responses', 'sim'],
  ['slow-chat', 'chat', 'sim?delay_ms=20'],
  ['within-hold', 'chat', `sim?tokens=${holdTokens / 2}`],
  ['beyond-hold', 'chat', `sim?tokens=${holdTokens * 1.5}`],
] as const

export const sealKey = Buffer.from('a seal key of thirty-two bytes..').toString('base64')

let settings = 0

/** Creates a setting with its own PostgreSQL server, so that a trial can kill the server without effect on others. */
export async function createSetting({ perMinute = 1_000_000, ...options }: SettingOptions = {}): Promise<Setting> {
  const postgres = await startPostgres(options)
  const simulator = await startSimulator()
  const folder = mkdtempSync(join(tmpdir(), 'triwire-replicas-'))
  const url = postgres.createDatabase(`trial_${++settings}`)
  const opened = await openBooks(readStorePlace(url, folder))
  const { books } = opened
  const replicas = new Set<Replica>()
  let payers = 0
  let names = 0
  return {
    postgres,
    url,
    books,
    simulator,
    folder,
    startReplica,
    async makePayer(credits = '1000000') {
      const account = `payer-${++payers}`
      const { id } = await books.createAccount(account, parseCredits(credits))
      // The key has a budget, so that its spending is verified too (ruling R15).
      const { key } = await books.createKey(account, { budget: { nanos: 2n ** 60n, per: 'day' } })
      return { accountId: id, account, key }
    },
    async close() {
      await Promise.all([...replicas].map((replica) => replica.kill()))
      await opened.close().catch(() => {})
      await simulator.close()
      postgres.remove()
      rmSync(folder, { recursive: true, force: true })
    },
  }

  async function startReplica({
    name = `r${++names}`,
    extra = [],
    env,
    launcher,
    workers,
  }: ReplicaOptions = {}): Promise<Replica> {
    const own = join(folder, name)
    mkdirSync(own, { recursive: true, mode: 0o700 })
    const line = await drawLine(postgres.port)
    const through = new URL(url)
    through.port = String(line.port)
    const configPath = join(own, 'triwire.yaml')
    writeFileSync(configPath, configuration({ url: through.href, stateDir: join(own, 'state'), extra }), {
      mode: 0o600,
    })
    const logPath = join(own, 'log')
    const before = existsSync(logPath) ? readListening(logPath).length : 0
    const started = await startProgram(configPath, openSync(logPath, 'a'), {
      env,
      launcher,
      args: workers === undefined ? [] : ['--workers', String(workers)],
    })
    const replica: Replica = {
      ...started,
      name,
      line,
      logPath,
      adminUrl: await readAdminUrl(logPath, before),
      readEvents: (event) =>
        readFileSync(logPath, 'utf8')
          .split('\n')
          .filter((text) => text.includes(`"${event}"`))
          .map((text) => JSON.parse(text)),
      async kill() {
        replicas.delete(replica)
        const { child } = started
        if (child.exitCode === null && child.signalCode === null) {
          const ended = new Promise((resolve) => child.once('exit', resolve))
          child.kill('SIGKILL')
          await ended
        }
        line.close()
      },
    }
    replicas.add(replica)
    return replica
  }

  function configuration({
    url,
    stateDir,
    extra,
  }: {
    url: string
    stateDir: string
    extra: readonly string[]
  }): string {
    const model = ([id, wire, upstreamModel]: readonly string[]) =>
      `    - { id: ${id}, wire: ${wire}, upstream: sim, upstream_model: "${upstreamModel}", max_output_tokens: 8192, prices: { input: "3", output: "15" } }`
    return [
      'listen: 127.0.0.1:0',
      'admin_listen: 127.0.0.1:0',
      `store: "${url}"`,
      `state_dir: ${stateDir}`,
      `seal_key: ${sealKey}`,
      `limits: { requests_per_minute: ${perMinute} }`,
      `billing: { hold_output_tokens: ${holdTokens} }`,
      `upstreams: { sim: { base_url: "${simulator.url}", accounts: [{ name: a, key: any }] } }`,
      'catalog:',
      '  pinned: 2026-11-01',
      '  models:',
      ...models.map(model),
      ...extra,
      '',
    ].join('\n')
  }
}

/**
 * Reads the admin address from the log, which gets it a moment after stdout.
 * @param before the number of such lines that earlier runs wrote
 */
async function readAdminUrl(logPath: string, before: number): Promise<string> {
  await until(() => readListening(logPath).length > before, 'it says where it listens')
  return `http://${readListening(logPath).at(-1)}`
}

function readListening(logPath: string): string[] {
  return Array.from(readFileSync(logPath, 'utf8').matchAll(/"listening".*?"admin":"([^"]+)"/g), ([, admin]) => admin!)
}
