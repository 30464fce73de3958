import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, delimiter, dirname, join } from 'node:path'
import { lookAtMachine, nameMissingPrograms, systemFolders } from '../../scripts/support/missing-programs.ts'
import { atEnd } from './at-end.ts'
import { testFolder } from './folder.ts'
import { freePort } from './listen.ts'
import { childrenOf, pgrep } from './pgrep.ts'
import { until } from './waiting.ts'

/** A real PostgreSQL for a test: a new cluster in a new folder, on loopback, run by a user without privileges. */
export type Postgres = {
  port: number
  /** The URL of a database that exists. */
  url: string
  folder: string
  /** Creates an empty database. @returns its URL */
  createDatabase(name: string): string
  /** Returns the statement that copies a database without connections. */
  copying(template: string, name: string): string
  /** Runs statements as the superuser. `postgres` is also a database. */
  run(sql: string, database?: string): string
  start(): void
  /** Stops the server. `immediate` is a crash, which loses data that was not written yet. */
  stop(mode?: 'fast' | 'immediate'): void
  /** Returns the ids of all processes of the server, for example to freeze them. */
  pids(): number[]
  /** Starts a standby server that follows this one asynchronously. */
  startStandby(): Promise<Standby>
  /** Called automatically at the end of the test, or of the file if `before` started the server. */
  remove(): void
}

export type Standby = {
  /** Resolves when the standby has all data of the first server. */
  untilStreaming(): Promise<void>
  /** Stops replication to the standby. @returns a function that resumes it */
  stopReceiving(): () => void
  /** Lets the standby replace the first server, which has died, on the same port. */
  promote(): void
}

export type PostgresOptions = {
  /** Lines of postgresql.conf. */
  settings?: readonly string[]
  /** Puts the files on a separate disk of this size, which only root can make. */
  diskMb?: number | undefined
}

/** Returns the folder of PostgreSQL's programs, or undefined if it is not installed. */
export function findPostgres(): string | undefined {
  const versions = existsSync('/usr/lib/postgresql') ? readdirSync('/usr/lib/postgresql') : []
  const newest = versions.sort((a, b) => Number(b) - Number(a))[0]
  return newest === undefined ? undefined : `/usr/lib/postgresql/${newest}/bin`
}

/**
 * For `skip` of a test. With TRIWIRE_TEST_POSTGRES=1 nothing is skipped, and these tests fail without PostgreSQL. `npm
 * run check` skips them (0), because they take longer than all others.
 * @returns the reason to skip, or false
 */
export function withoutPostgres(): string | false {
  const wish = process.env['TRIWIRE_TEST_POSTGRES']
  if (wish === '0')
    return 'left to npm test, and to TRIWIRE_TEST_POSTGRES=1 npm run check: nothing is shown of PostgreSQL'
  if (wish === '1') return false
  const [missing] = nameMissingPrograms(lookAtMachine(), (file) => file === 'support/postgres.ts')
  return missing ?? false
}

const superuser = 'tri'

/** Clusters that `initdb` made, which later runs use again. */
const clusters = join(import.meta.dirname, '../../node_modules/.cache/triwire/postgres')

export async function startPostgres({ settings = [], diskMb }: PostgresOptions = {}): Promise<Postgres> {
  const bin = findPostgres()
  if (!bin) throw new Error('no PostgreSQL is installed: apt-get install postgresql')
  const isRoot = process.getuid?.() === 0
  const folder = testFolder('postgres')
  const [data, standby] = [join(folder, 'data'), join(folder, 'standby')]
  if (isRoot) {
    const { stdout } = spawnSync('id', ['-u', 'postgres'], { encoding: 'utf8' })
    chownSync(folder, Number(stdout), -1)
    letThrough(dirname(folder))
    if (diskMb !== undefined) mountDisk(data, diskMb, Number(stdout))
  }
  const port = await freePort()
  createCluster()
  writeFileSync(
    join(data, 'postgresql.auto.conf'),
    [
      `listen_addresses = '127.0.0.1'`,
      `port = ${port}`,
      `unix_socket_directories = '${folder}'`,
      `max_connections = 100`,
      `shared_buffers = '64MB'`,
      // No test needs durability after a power cut.
      'fsync = off',
      'full_page_writes = off',
      // Compiling a plan takes longer than running it over the rows of a test.
      'jit = off',
      ...settings,
      '',
    ].join('\n'),
  )
  const postgres: Postgres = {
    port,
    folder,
    url: urlOf('postgres'),
    createDatabase(name) {
      run(copying('template1', name))
      return urlOf(name)
    },
    copying,
    run,
    start: () => pgCtl(data, 'start', '-w', '-l', join(folder, 'log')),
    stop: (mode = 'fast') => pgCtl(data, 'stop', '-w', '-m', mode),
    pids,
    startStandby,
    remove() {
      for (const cluster of [data, standby]) {
        try {
          pgCtl(cluster, 'stop', '-w', '-m', 'immediate')
        } catch {
          // The server is stopped already, or was never started.
        }
      }
      if (diskMb !== undefined) spawnSync('umount', ['-l', data])
      rmSync(folder, { recursive: true, force: true })
    },
  }
  atEnd(() => postgres.remove())
  postgres.start()
  return postgres

  /** Copies a cluster that this checkout made before, because `initdb` takes ten times as long. */
  function createCluster(): void {
    const made = join(clusters, `${basename(dirname(bin!))}-${statSync(folder).uid}`)
    const copy = (from: string, to: string) => spawnSync('cp', ['-a', `${from}/.`, to]).status === 0
    if (existsSync(made) && copy(made, data)) return
    as(`${bin}/initdb`, ['-D', data, '-A', 'trust', '-U', superuser, '--locale=C', '-E', 'UTF8', '--no-sync'])
    if (diskMb !== undefined) return
    // Another process may do the same at this moment. The one that finishes first wins.
    mkdirSync(clusters, { recursive: true })
    const own = mkdtempSync(`${made}-`)
    if (copy(data, own) && !existsSync(made)) renameSync(own, made)
    else rmSync(own, { recursive: true, force: true })
  }

  /** Copies files. The default since release 15, through the log, takes twice the processor time. */
  function copying(template: string, name: string): string {
    const isOld = Number(basename(dirname(bin!))) < 15
    return `CREATE DATABASE "${name}" TEMPLATE "${template}"${isOld ? '' : ' STRATEGY FILE_COPY'}`
  }

  function urlOf(database: string): string {
    return `postgres://${superuser}@127.0.0.1:${port}/${database}`
  }

  function run(sql: string, database = 'postgres'): string {
    return call(`${bin}/psql`, ['-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-c', sql, urlOf(database)])
  }

  function pids(): number[] {
    const main = pgrep('-f', data)
    return [...main, ...main.flatMap(childrenOf)]
  }

  async function startStandby(): Promise<Standby> {
    as(`${bin}/pg_basebackup`, ['-D', standby, '-R', '-X', 'stream', '-c', 'fast', '-d', urlOf('postgres')])
    move(await freePort())
    pgCtl(standby, 'start', '-w', '-l', join(folder, 'standby-log'))
    return {
      async untilStreaming() {
        const lag = `SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND replay_lsn = pg_current_wal_lsn()`
        await until(() => run(lag) === '1', 'the standby has all')
      },
      stopReceiving() {
        const senders = pgrep('-f', 'postgres: walsender').filter((pid) => pids().includes(pid))
        for (const pid of senders) process.kill(pid, 'SIGSTOP')
        return () => {
          for (const pid of senders) process.kill(pid, 'SIGCONT')
        }
      },
      promote() {
        pgCtl(standby, 'promote', '-w')
        pgCtl(standby, 'stop', '-w', '-m', 'fast')
        move(port)
        // A killed server leaves these files, and its parent may not have noticed its end yet.
        for (const left of ['', '.lock']) rmSync(join(folder, `.s.PGSQL.${port}${left}`), { force: true })
        pgCtl(standby, 'start', '-w', '-l', join(folder, 'standby-log'))
      },
    }
  }

  /** Sets the port by appending it, because the last line of a setting counts. */
  function move(to: number): void {
    appendFileSync(join(standby, 'postgresql.auto.conf'), `port = ${to}\n`)
  }

  function pgCtl(cluster: string, ...args: string[]): void {
    as(`${bin}/pg_ctl`, ['-D', cluster, ...args])
  }

  /** Runs a program of the server, which root must not run. */
  function as(program: string, args: readonly string[]): string {
    return isRoot ? call('runuser', ['-u', 'postgres', '--', program, ...args]) : call(program, args)
  }

  function call(program: string, args: readonly string[]): string {
    // The server must not inherit our pipes, because it would keep them open.
    const isServer = args.includes('start')
    const { status, stdout, stderr, error } = spawnSync(program, args, {
      encoding: 'utf8',
      cwd: folder,
      env: { ...process.env, PATH: [process.env['PATH'], ...systemFolders].join(delimiter) },
      stdio: isServer ? 'ignore' : 'pipe',
    })
    if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr ?? error?.message ?? 'failed'}`)
    return (stdout ?? '').trim()
  }
}

function mountDisk(folder: string, megabytes: number, user: number): void {
  mkdirSync(folder, { mode: 0o700 })
  const { status, stderr } = spawnSync('mount', [
    ...['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=0700,uid=${user}`, 'tmpfs', folder],
  ])
  if (status !== 0) throw new Error(`mount: ${stderr}`)
}

/** Lets the server's user pass through the folder of the test run, which otherwise only its owner may enter. */
function letThrough(folder: string): void {
  const { mode } = statSync(folder)
  if ((mode & 0o001) === 0) chmodSync(folder, mode | 0o001)
}
