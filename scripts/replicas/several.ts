import { spawn, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort, isTaken } from '../../test/support/listen.ts'
import { childrenOf } from '../../test/support/pgrep.ts'
import { until } from '../../test/support/waiting.ts'
import { ask, get, keepAsking, tally } from './clients.ts'
import { untilStatus } from './database.ts'
import { judgeBooks } from './deaths.ts'
import { type Finding, finding, formatCounts, type Size, type Trial } from './report.ts'
import { type Replica, type Setting, sealKey } from './setting.ts'

/* Replicas that differ from each other, and a database that has changed. */

export const several: readonly Trial[] = [
  {
    name: 'asynchronous standby promoted',
    demand: 'promoted with unsent transactions: 0 acknowledged debits lost',
    options: { settings: ['wal_level = replica', 'max_wal_senders = 4', 'hot_standby = on'] },
    run: promote,
  },
  {
    name: 'synchronous standby silent',
    demand:
      'no debit is reported that the database lacks; 500 only, /readyz stays 200 since the spool takes the debits (Y16); 0 lost when it is back',
    options: { settings: ['wal_level = replica', 'max_wal_senders = 4', 'hot_standby = on'] },
    run: silenceStandby,
  },
  {
    name: 'clocks an hour apart',
    demand: '0 failed; the window is one, by the database’s clock',
    options: { perMinute: 60 },
    run: skew,
  },
  {
    name: 'two at once on an empty database',
    demand: 'two migrators at once: both serve',
    run: migrateTwice,
  },
  {
    name: 'workers',
    demand:
      'four on one port: one limit, any explains for all; killed one by one under load, 0 lost; a reload reaches all',
    options: { perMinute: 300 },
    run: killWorkers,
  },
  {
    name: 'behind a pooler',
    demand: 'PgBouncer, also told to ignore what it does not know: refused at the start with why',
    run: startBehindPooler,
  },
  {
    name: 'rolling upgrade',
    demand: 'N−1 and N serve together over a migration, N−1 restarts on it, then goes: 0 failed',
    run: upgrade,
  },
]

/** Kills the primary database before its standby has received the last commits, and promotes the standby. */
async function promote(setting: Setting): Promise<Finding[]> {
  const { postgres } = setting
  const standby = await postgres.startStandby()
  const replicas = await Promise.all([1, 2].map(() => setting.startReplica()))
  const payer = await setting.makePayer()
  await standby.untilStreaming()
  const stop = keepAsking(
    () => replicas,
    () => ({ key: payer.key }),
    60,
  )
  await pause(1_000)
  standby.stopReceiving()
  await pause(400)
  for (const pid of postgres.pids()) process.kill(pid, 'SIGKILL')
  const seen = await stop()
  standby.promote()
  const readyMs = await untilOk(replicas[0]!, payer.key)
  await untilOk(replicas[1]!, payer.key)
  const again = replicas.flatMap((replica) => replica.readEvents('ledger_looked_again'))
  const posted = again.reduce((sum, { missing }) => sum + Number(missing), 0)
  return [
    ...(await judgeBooks(setting, seen)),
    finding(posted > 0, `${posted} debits that the standby had never been sent were posted again`),
    finding(readyMs !== undefined, `answers again after ${Math.round(readyMs ?? 0)} ms`),
  ]
}

/** Stops a synchronous standby for a while. Meanwhile, every commit waits. */
async function silenceStandby(setting: Setting): Promise<Finding[]> {
  const { postgres } = setting
  const standby = await postgres.startStandby()
  const replicas = await Promise.all([1, 2].map(() => setting.startReplica()))
  const payer = await setting.makePayer()
  await standby.untilStreaming()
  postgres.run(`ALTER SYSTEM SET synchronous_standby_names = '*'`)
  postgres.run('SELECT pg_reload_conf()')
  await until(() => postgres.run('SELECT sync_state FROM pg_stat_replication') === 'sync', 'it is synchronous')
  const stop = keepAsking(
    () => replicas,
    () => ({ key: payer.key }),
    20,
  )
  await pause(1_000)
  const resume = standby.stopReceiving()
  await pause(10_000)
  const ready = await Promise.all(replicas.map(({ adminUrl }) => get(`${adminUrl}/readyz`)))
  resume()
  await Promise.all(replicas.map((replica) => untilOk(replica, payer.key)))
  const seen = await stop()
  const counts = tally(seen)
  const others = Object.keys(counts).filter((status) => !['200', '500'].includes(status))
  return [
    finding(others.length === 0 && (counts[500] ?? 0) > 0, formatCounts(counts)),
    finding(
      ready.every(({ status }) => status === 200),
      `/readyz meanwhile: ${ready.map(({ status }) => status).join(', ')}`,
    ),
    ...(await judgeBooks(setting, seen)),
  ]
}

async function untilOk(replica: Replica, key: string): Promise<number | undefined> {
  const begunMs = performance.now()
  while (performance.now() - begunMs < 20_000) {
    if ((await ask(replica, { key })).status === 200) return performance.now() - begunMs
    await pause(50)
  }
  return undefined
}

const faketime = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1'

async function skew(setting: Setting): Promise<Finding[]> {
  if (!existsSync(faketime))
    return [finding(true, 'left out: libfaketime is not installed (apt-get install libfaketime)')]
  const env = (offset: string) => ({ LD_PRELOAD: faketime, FAKETIME: offset, FAKETIME_DONT_FAKE_MONOTONIC: '1' })
  const replicas = [
    await setting.startReplica(),
    await setting.startReplica({ env: env('+3600s') }),
    await setting.startReplica({ env: env('-3600s') }),
  ]
  const payer = await setting.makePayer()
  const seen = []
  for (let i = 0; i < 120; i++) seen.push(await ask(replicas[i % 3]!, { key: payer.key }))
  const counts = tally(seen)
  return [finding(counts[200] === 60 && counts[429] === 60, formatCounts(counts)), ...(await judgeBooks(setting, seen))]
}

async function migrateTwice(setting: Setting): Promise<Finding[]> {
  const database = new URL(setting.url).pathname.slice(1)
  setting.postgres.run('DROP SCHEMA triwire CASCADE', database)
  const replicas = await Promise.all([1, 2].map(() => setting.startReplica()))
  const payer = await setting.makePayer()
  const seen = await Promise.all(replicas.map((replica) => ask(replica, { key: payer.key })))
  return [finding(tally(seen)[200] === 2, formatCounts(tally(seen)))]
}

async function killWorkers(setting: Setting, size: Size): Promise<Finding[]> {
  const replica = await setting.startReplica({ workers: 4 })
  // On a busy machine, a worker can listen before it has reached the database. Until then it refuses with 500.
  await until(() => replica.readEvents('store_reached').length >= 4, 'all workers have reached the database')
  const limited = await setting.makePayer()
  const atOnce = await Promise.all(Array.from({ length: 1_000 }, () => ask(replica, { key: limited.key })))
  const counts = tally(atOnce)
  const served = setting.postgres.run('SELECT count(*) FROM triwire.replicas', new URL(setting.url).pathname.slice(1))
  const [one] = atOnce.filter(({ status }) => status === 200)
  const { token } = await setting.books.createOperator('trial', 'viewer', Date.now() + 600_000)
  const path = `/api/v1/requests/${one?.requestId}/explain`
  const explained = await get(replica.adminUrl + path, { authorization: `Bearer ${token}` })
  const before = replica.readEvents('config_reloaded').length
  replica.child.kill('SIGHUP')
  await until(() => replica.readEvents('config_reloaded').length - before === 4)
  const payers = await Promise.all(Array.from({ length: 8 }, () => setting.makePayer()))
  let turn = 0
  const stop = keepAsking(
    () => [replica],
    () => ({ key: payers[turn++ % payers.length]!.key }),
    20,
  )
  const kills = size === 'whole' ? 40 : 4
  for (let i = 0; i < kills; i++) {
    await pause(400)
    const pids = await untilRunning(replica.child.pid!)
    process.kill(pids[i % pids.length]!, 'SIGKILL')
    await until(() => replica.readEvents('worker_exited').length === i + 1)
    await pause(1_000)
  }
  const seen = await stop()
  const readyAgain = await untilStatus(replica, 200, emptyMs)
  const ended = new Promise<number | null>((resolve) => replica.child.once('exit', resolve))
  replica.child.kill('SIGTERM')
  return [
    finding(counts[200] === 300 && counts[429] === 700, `${formatCounts(counts)} over ${served} workers`),
    finding(explained.status === 200, `a request is explained by whichever is asked: ${explained.status}`),
    finding(readyAgain !== undefined, `ready behind ${kills} kills`),
    finding((await ended) === 0, 'SIGTERM ends them all with 0'),
    ...(await judgeBooks(setting, [...atOnce, ...seen])),
  ]
}

/**
 * The longest time without a worker, in ms. If a worker is killed repeatedly, the pause before its replacement grows
 * to half a minute.
 */
const emptyMs = 40_000

async function untilRunning(parent: number): Promise<number[]> {
  for (let waitedMs = 0; waitedMs < emptyMs; waitedMs += 500) {
    const pids = childrenOf(parent)
    if (pids.length > 0) return pids
    await pause(500)
  }
  throw new Error(`no worker was started anew within ${emptyMs} ms`)
}

/** Checks that servers and commands refuse the address of a pooler, and say why. */
async function startBehindPooler(setting: Setting): Promise<Finding[]> {
  if (spawnSync('which', ['pgbouncer']).status !== 0)
    return [finding(true, 'left out: PgBouncer is not installed (apt-get install pgbouncer)')]
  const findings: Finding[] = []
  for (const [mode, ignored] of [
    ['transaction', ''],
    ['transaction', 'ignore_startup_parameters = options'],
    ['session', 'ignore_startup_parameters = options'],
  ] as const) {
    const what = `${mode} ${ignored}`
    const pooler = await startPooler(setting, `pool_mode = ${mode}\n${ignored}`)
    const url = new URL(setting.url)
    url.port = String(pooler.port)
    const launcher = join(import.meta.dirname, '../../bin/triwire.mjs')
    for (const command of [
      ['serve', '--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'],
      ['account', 'list'],
    ]) {
      const { status, stderr } = spawnSync(process.execPath, [launcher, '--store', url.href, ...command], {
        encoding: 'utf8',
        cwd: setting.folder,
        timeout: 20_000,
        env: { ...process.env, TRIWIRE_SEAL_KEY: sealKey, TRIWIRE_STATE_DIR: join(setting.folder, 'pooled') },
      })
      const isTold = status === 1 && /is a pooler's address: name PostgreSQL itself/.test(stderr)
      findings.push(finding(isTold, `${what}, ${command[0]}: ${status}, ${stderr.trim().split('\n').at(-1)}`))
    }
    pooler.stop()
  }
  return findings
}

async function startPooler({ postgres, folder }: Setting, more: string): Promise<{ port: number; stop(): void }> {
  const port = await freePort()
  const path = join(postgres.folder, 'pgbouncer.ini')
  const lines = [
    '[databases]',
    `* = host=127.0.0.1 port=${postgres.port}`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = any',
    more,
    '',
  ]
  // The pooler connects every client as the user whom the server trusts.
  writeFileSync(path, lines.join('\n').replace('port=', 'user=tri port='), { mode: 0o644 })
  const isRoot = process.getuid?.() === 0
  const [program, args] = isRoot ? ['runuser', ['-u', 'postgres', '--', 'pgbouncer', path]] : ['pgbouncer', [path]]
  const child = spawn(program, args, { cwd: folder, stdio: 'ignore' })
  await until(() => isTaken(port), 'the pooler listens')
  return { port, stop: () => void child.kill('SIGTERM') }
}

/**
 * Upgrades replicas one by one from release N−1 to N. N−1 is this triwire. N is a copy with one more migration, which
 * only adds. Before a replica stops, it gets no new requests and ends those that run. A load balancer does the same.
 */
async function upgrade(setting: Setting, size: Size): Promise<Finding[]> {
  const next = copyWithMigration(join(setting.folder, 'next'))
  const payer = await setting.makePayer()
  let serving = await Promise.all([1, 2, 3].map(() => setting.startReplica()))
  const stop = keepAsking(
    () => serving,
    () => ({ key: payer.key, stream: Math.random() < 0.5 }),
    60,
  )
  await pause(500)
  // First a replica of N migrates the schema while the others run. Then a replica of N−1 restarts on the new schema.
  await replace(next)
  await replace()
  for (let i = 0; i < (size === 'whole' ? 9 : 3); i++) await replace(next)
  const seen = await stop()
  const whole = seen.filter(({ isWhole }) => isWhole).length
  const version = setting.postgres.run('SELECT version FROM triwire.schema', new URL(setting.url).pathname.slice(1))
  return [
    finding(whole === seen.length, `${formatCounts(tally(seen))}, schema version ${version}`),
    ...(await judgeBooks(setting, seen, () => verifyBy(next, setting.url))),
  ]

  async function replace(launcher?: string): Promise<void> {
    const leaving = serving[0]!
    serving = serving.slice(1)
    const ended = new Promise((resolve) => leaving.child.once('exit', resolve))
    leaving.child.kill('SIGTERM')
    await ended
    serving = [...serving, await setting.startReplica({ name: leaving.name, ...(launcher && { launcher }) })]
    await pause(300)
  }
}

async function verifyBy(launcher: string, url: string): Promise<string[]> {
  const { stdout } = spawnSync(process.execPath, [launcher, '--json', '--store', url, 'ledger', 'verify'], {
    encoding: 'utf8',
  })
  return (JSON.parse(stdout) as { findings: string[] }).findings
}

/** Copies this checkout and adds a migration. @returns the launcher of the copy */
function copyWithMigration(folder: string): string {
  const root = join(import.meta.dirname, '../..')
  mkdirSync(folder)
  for (const name of ['bin', 'src', 'package.json']) cpSync(join(root, name), join(folder, name), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const schema = join(folder, 'src/store/postgres/schema.ts')
  const text = readFileSync(schema, 'utf8')
  const more = `  { oldest: 1, sql: 'ALTER TABLE triwire.accounts ADD COLUMN note text' },\n]\n`
  const end = text.indexOf('\n]\n', text.indexOf('export const migrations'))
  if (end < 0) throw new Error(`${schema} has no list of migrations`)
  writeFileSync(schema, `${text.slice(0, end + 1)}${more}${text.slice(end + 3)}`)
  return join(folder, 'bin/triwire.mjs')
}
