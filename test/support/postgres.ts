import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { atEnd } from './at-end.ts'
import { testFolder } from './folder.ts'
import { freePort } from './listen.ts'

/** A real PostgreSQL for a test: its own cluster in a folder of its own, on loopback, under a user without rights. */
export type Postgres = {
  port: number
  /** Of a database that exists. */
  url: string
  folder: string
  /** An empty database of its own. @returns its URL. */
  createDatabase(name: string): string
  /** Runs statements as the superuser; `postgres` is a database too. */
  run(sql: string, database?: string): string
  start(): void
  /** `immediate` is a crash: nothing is written that was not yet. */
  stop(mode?: 'fast' | 'immediate'): void
  /** Process id of the postmaster, to freeze it and its children with. */
  pids(): number[]
  /** Called by itself when the test is over, or the file where `before` started it. */
  remove(): void
}

/** The folder of the programs; undefined where none is installed. */
export function findPostgres(): string | undefined {
  const versions = existsSync('/usr/lib/postgresql') ? readdirSync('/usr/lib/postgresql') : []
  const newest = versions.sort((a, b) => Number(b) - Number(a))[0]
  return newest === undefined ? undefined : `/usr/lib/postgresql/${newest}/bin`
}

/**
 * For `skip` of a test. Where PostgreSQL is wanted (TRIWIRE_TEST_POSTGRES=1, as the check does it) nothing is skipped.
 * @returns why there is none.
 */
export function withoutPostgres(): string | false {
  if (findPostgres() !== undefined || process.env['TRIWIRE_TEST_POSTGRES'] === '1') return false
  return 'no PostgreSQL is installed (apt-get install postgresql): nothing is shown of a store in it'
}

const superuser = 'tri'

/** @param settings of postgresql.conf, line by line. */
export async function startPostgres({ settings = [] as readonly string[] } = {}): Promise<Postgres> {
  const bin = findPostgres()
  if (!bin) throw new Error('no PostgreSQL is installed: apt-get install postgresql')
  const isRoot = process.getuid?.() === 0
  const folder = testFolder('postgres')
  const data = join(folder, 'data')
  if (isRoot) {
    const { stdout } = spawnSync('id', ['-u', 'postgres'], { encoding: 'utf8' })
    chownSync(folder, Number(stdout), -1)
    letThrough(dirname(folder))
  }
  const port = await freePort()
  as(`${bin}/initdb`, ['-D', data, '-A', 'trust', '-U', superuser, '--locale=C', '-E', 'UTF8', '--no-sync'])
  writeFileSync(
    join(data, 'postgresql.auto.conf'),
    [
      `listen_addresses = '127.0.0.1'`,
      `port = ${port}`,
      `unix_socket_directories = '${folder}'`,
      `max_connections = 100`,
      `shared_buffers = '64MB'`,
      ...settings,
      '',
    ].join('\n'),
  )
  const postgres: Postgres = {
    port,
    folder,
    url: urlOf('postgres'),
    createDatabase(name) {
      run(`CREATE DATABASE "${name}"`)
      return urlOf(name)
    },
    run,
    start: () => pgCtl('start', '-w', '-l', join(folder, 'log')),
    stop: (mode = 'fast') => pgCtl('stop', '-w', '-m', mode),
    pids() {
      const { stdout } = spawnSync('pgrep', ['-f', data], { encoding: 'utf8' })
      const main = stdout.split('\n').filter(Boolean).map(Number)
      const children = main.flatMap((pid) =>
        spawnSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' })
          .stdout.split('\n')
          .filter(Boolean)
          .map(Number),
      )
      return [...main, ...children]
    },
    remove() {
      try {
        pgCtl('stop', '-w', '-m', 'immediate')
      } catch {
        // It is stopped.
      }
      rmSync(folder, { recursive: true, force: true })
    },
  }
  atEnd(() => postgres.remove())
  postgres.start()
  return postgres

  function urlOf(database: string): string {
    return `postgres://${superuser}@127.0.0.1:${port}/${database}`
  }

  function run(sql: string, database = 'postgres'): string {
    return as(`${bin}/psql`, ['-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-c', sql, urlOf(database)])
  }

  function pgCtl(...args: string[]): void {
    as(`${bin}/pg_ctl`, ['-D', data, ...args])
  }

  function as(program: string, args: readonly string[]): string {
    const [command, rest] = isRoot ? ['runuser', ['-u', 'postgres', '--', program, ...args]] : [program, args]
    // The server must not inherit our pipes: it would keep them open.
    const isServer = args.includes('start')
    const { status, stdout, stderr } = spawnSync(command, rest, {
      encoding: 'utf8',
      cwd: folder,
      stdio: isServer ? 'ignore' : 'pipe',
    })
    if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr ?? 'failed'}`)
    return (stdout ?? '').trim()
  }
}

/** The server's own user has to pass through the folder of the test run, which is its maker's alone. */
function letThrough(folder: string): void {
  const { mode } = statSync(folder)
  if ((mode & 0o001) === 0) chmodSync(folder, mode | 0o001)
}
