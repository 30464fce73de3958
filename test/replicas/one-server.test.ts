import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import test, { before } from 'node:test'
import pg from 'pg'
import { createKey } from '../../src/accounts/keys.ts'
import { startSimulator } from '../../src/simulator/simulator.ts'
import { runWarm } from '../cli/run.ts'
import { verifyOptions } from '../store/fixtures.ts'
import { freeze, openOperator } from '../store/postgres/opened.ts'
import { atEnd } from '../support/at-end.ts'
import { listen } from '../support/listen.ts'
import { childrenOf, killFound } from '../support/pgrep.ts'
import { type Postgres, startPostgres, withoutPostgres } from '../support/postgres.ts'
import { newFolder, type Served, serve } from '../support/serve.ts'
import { until, within } from '../support/waiting.ts'

/*
 * One server, as an operator runs it, and what becomes of its database: gone, frozen, back. Nothing that a client was told
 * is lost or booked twice, nobody is told that it is his fault (ruling C5), and probes know.
 */

const skip = withoutPostgres()
let postgres: Postgres
let databases = 0

before(async () => {
  if (!skip) postgres = await startPostgres()
})

/** What a busy machine adds to a time that is demanded, in ms. */
const slackMs = 2_000

const prices = '{ input: "1", cache_read: "1", cache_write: "1", output: "1" }'

/** An account with much credit, its key, and the file of a server on their database. */
async function prepare(timeouts = 'drain_delay: 0s') {
  const url = postgres.createDatabase(`one_${++databases}`)
  const books = await openOperator(url)
  await books.createAccount('one', 10n ** 15n)
  const { key } = await books.createKey('one', { budget: { nanos: 10n ** 15n, per: 'day' } })
  const simulator = await startSimulator()
  atEnd(simulator.close)
  const folder = newFolder()
  const text = `listen: 127.0.0.1:0
admin_listen: 127.0.0.1:0
store: ${url}
state_dir: ./state
seal_key: ${Buffer.from('a seal key of thirty-two bytes..').toString('base64')}
catalog:
  pinned: 2026-11-01
  models:
    - { id: m, wire: chat, upstream: sim, upstream_model: up-chat, max_output_tokens: 64, prices: ${prices} }
upstreams:
  sim: { base_url: "${simulator.url}", accounts: [{ name: a, key: k }] }
limits: { requests_per_minute: 1000000 }
timeouts: { ${timeouts}, drain_deadline: 2s }
`
  writeFileSync(join(folder, 'triwire.yaml'), text, { mode: 0o600 })
  return { url, books, key, folder }
}

type Prepared = Awaited<ReturnType<typeof prepare>>

/** A connection that was idle may end while it is used again. */
const anew = { headers: { connection: 'close' } }

async function start(prepared: Prepared) {
  const server = serve(['--config', 'triwire.yaml'], prepared.folder)
  const [base, admin] = [await server.url(), await server.adminUrl()]
  const isReady = async () => (await fetch(`${admin}/readyz`, anew)).ok
  return { server, base, isReady, ask: () => ask(base, prepared.key) }
}

type Answer = { status: number; code: string | undefined; id: string }

/** One request, as its client sees it: who is cut off has seen nothing. */
async function ask(base: string, key: string, path = '/v1/chat/completions'): Promise<Answer> {
  const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hello!' }] })
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const response = await fetch(base + path, { method: 'POST', headers, body })
  const answer = (await response.json()) as { error?: { code?: string } }
  const id = response.headers.get('x-request-id') ?? ''
  return { status: response.status, code: answer.error?.code, id }
}

/** Some who ask again and again, until they are stopped. */
function startLoad(one: () => Promise<Answer>, clients = 12) {
  const answers: Answer[] = []
  let isOver = false
  const client = async () => {
    while (!isOver) {
      const answer = await one().catch(() => undefined)
      if (answer) answers.push(answer)
      else return
    }
  }
  const running = Promise.all(Array.from({ length: clients }, client))
  return {
    answers,
    async stop() {
      isOver = true
      await running
      return answers
    },
  }
}

/** Every answer that was seen is booked once; what was refused is not booked, or is given back. */
async function checkBooks({ books }: Prepared, answers: readonly Answer[]): Promise<void> {
  const rows = await books.database.query(
    'SELECT request_id, count(*)::int AS n FROM triwire.entries WHERE kind = $1 GROUP BY 1',
    ['debit'],
  )
  const booked = new Map(rows.map(({ request_id, n }) => [request_id, n]))
  const seen = answers.filter(({ status }) => status === 200)
  assert.deepEqual(
    seen.filter(({ id }) => booked.get(id) !== 1),
    [],
    'seen and not booked, or twice',
  )
  assert.ok(seen.length > 0)
  assert.deepEqual(
    [...booked.values()].filter((n) => n !== 1),
    [],
  )
  assert.deepEqual(await books.verify(verifyOptions), [])
}

/** What was answered from the spool, while a call took long, comes into the ledger a little later. */
async function untilBooked(prepared: Prepared, answers: readonly Answer[]): Promise<void> {
  let wrong: unknown
  const isRight = async () => {
    wrong = await checkBooks(prepared, answers).catch((error: unknown) => error)
    return wrong === undefined
  }
  await until(isRight).catch((late: unknown) => {
    throw wrong ?? late
  })
}

/**
 * Nobody hears of his key, his credit or his rate, and nobody waits long for a refusal: by the server's log, since those who
 * ask are held up here while a database is started.
 */
async function checkRefusals(answers: readonly Answer[], server: Served): Promise<void> {
  const refused = answers.filter(({ status }) => status !== 200)
  assert.deepEqual(
    refused.filter(({ status, code }) => status !== 500 || code !== 'internal_error'),
    [],
  )
  assert.ok(refused.length > 0)
  for (const { id } of refused) await server.saw(id)
  await until(() => server.stderr().endsWith('\n'), 'the last line is whole')
  const lines = server
    .stderr()
    .split('\n')
    .filter((line) => line.includes('"status":500'))
  assert.deepEqual([...new Set(lines.map((line) => JSON.parse(line).outcome))], ['internal_error'])
  const longest = Math.max(...lines.map((line) => JSON.parse(line).end_ms))
  assert.ok(longest < 2_200 + slackMs, `a refusal took ${Math.round(longest)} ms`)
}

async function timeUntil(isSo: () => Promise<boolean>, what: string): Promise<number> {
  const beganMs = performance.now()
  await until(isSo, what)
  return performance.now() - beganMs
}

const crashAndStart = () => {
  postgres.stop('immediate')
  return () => postgres.start()
}

for (const [what, fail] of [
  ['killed and started again', crashAndStart],
  ['frozen and let go on', () => freeze(postgres)],
] as const)
  test(`C3, C5, X7, F-S9, F-S11: PostgreSQL ${what} under load: only timely 500s, nothing lost, nothing twice, ready again`, {
    skip,
  }, async () => {
    const prepared = await prepare()
    const { isReady, ask, base, server } = await start(prepared)
    await until(isReady)
    const load = startLoad(ask)
    await until(() => load.answers.length > 50, 'answers come')
    const mend = fail()
    assert.ok((await timeUntil(async () => !(await isReady()), 'a probe says so')) < 5_000 + slackMs)
    assert.equal((await fetch(`${base}/v1/models`, anew)).status, 200)
    await until(() => load.answers.some(({ status }) => status === 500), 'somebody is refused')
    mend()
    assert.ok((await timeUntil(isReady, 'it is ready again')) < 4_000 + slackMs)
    const before = load.answers.length
    await until(
      () => load.answers.slice(before).filter(({ status }) => status === 200).length > 50,
      'answers come again',
    )
    const answers = await load.stop()
    await checkRefusals(answers, server)
    await untilBooked(prepared, answers)
  })

test('BRK-14: the probe is not ready as soon as a frozen database refuses a request, and ready when the database continues', {
  skip,
}, async () => {
  const prepared = await prepare()
  const { isReady, ask: askKnown, base } = await start(prepared)
  await until(isReady)
  assert.equal((await askKnown()).status, 200)
  const isNew = async () => ask(base, createKey().key)
  const counts = async () => ask(base, createKey().key, '/v1/messages/count_tokens')
  // A known key is refused by its account, and a key that memory does not have already by the search for it.
  for (const one of [askKnown, askKnown, askKnown, isNew, counts]) {
    const thaw = freeze(postgres)
    const refused = await one()
    assert.equal(await isReady(), false)
    assert.equal(refused.status, 500)
    thaw()
    await until(isReady, 'it is ready again')
    await until(async () => (await askKnown()).status === 200, 'it answers again')
  }
  assert.equal(await isReady(), true)
})

/* Which statement waits differs: that of admission, or that of posting, by which the first debit becomes overdue. */
for (const [what, lock, isAll] of [
  ['a table of balances', 'LOCK TABLE triwire.balances IN ACCESS EXCLUSIVE MODE', true],
  ['a table of replicas', 'LOCK TABLE triwire.epoch IN ACCESS EXCLUSIVE MODE', true],
  ['the ledger', 'LOCK TABLE triwire.entries IN ACCESS EXCLUSIVE MODE', true],
  ['a table of keys', 'LOCK TABLE triwire.keys IN ACCESS EXCLUSIVE MODE', true],
  [
    "an account's balance",
    `SELECT FROM triwire.balances b JOIN triwire.accounts a ON a.id = b.account_id WHERE a.name = 'one' FOR UPDATE`,
    false,
  ],
] as const)
  test(`BRK-14 Y16: the probe is ${isAll ? 'not ready' : 'ready'} while another program locks ${what}, and requests are refused`, {
    skip,
  }, async () => {
    const prepared = await prepare('settle_deadline: 1s')
    const { books } = prepared
    await books.createAccount('two', 10n ** 15n)
    const { key } = await books.createKey('two', {})
    const { isReady, ask: askOne, base } = await start(prepared)
    const askTwo = () => ask(base, key)
    await until(isReady)
    for (const one of [askOne, askTwo]) assert.equal((await one()).status, 200)
    const other = new pg.Client({ connectionString: prepared.url })
    await other.connect()
    await other.query('BEGIN')
    await other.query(lock)
    // The first answers may wait in the spool. Both accounts ask until both are refused, or only the locked one.
    const isRefused = async () => (await Promise.all([askOne(), askTwo()])).map(({ status }) => status === 500)
    await until(async () => (await isRefused()).filter(Boolean).length === (isAll ? 2 : 1))
    const ready: boolean[] = []
    for (let look = 0; look < 20; look++) {
      ready.push(await isReady())
      const [one, two] = look % 10 === 0 ? await isRefused() : []
      if (one !== undefined) assert.deepEqual([one, two], [true, isAll])
    }
    assert.deepEqual(new Set(ready), new Set([!isAll]))
    await other.query('ROLLBACK')
    await other.end()
    // A balancer sends no requests to a server that is not ready.
    await until(isReady)
    await until(async () => (await isRefused()).every((refused) => !refused))
  })

test('C5: a database that dies while no request runs: the probe reports it within 5 s, and also its return', {
  skip,
}, async () => {
  const prepared = await prepare()
  const { isReady, ask, server } = await start(prepared)
  await until(isReady)
  const thaw = freeze(postgres)
  assert.ok((await timeUntil(async () => !(await isReady()), 'a probe says so')) < 5_000 + slackMs)
  await checkRefusals([await ask()], server)
  thaw()
  assert.ok((await timeUntil(isReady, 'it is ready again')) < 4_000 + slackMs)
  assert.equal((await ask()).status, 200)
})

test('C5 F-S8: a server started without its database listens, is not ready, returns 500, and serves when the database is there', {
  skip,
}, async () => {
  const prepared = await prepare()
  postgres.stop()
  const { isReady, ask, base, server } = await start(prepared)
  assert.equal(await isReady(), false)
  assert.deepEqual(await (await fetch(`${await server.adminUrl()}/readyz`, anew)).json(), {
    status: 'not_ready',
    why: 'the database cannot be reached: see store_unreachable in the log',
  })
  await server.saw('nothing listens there: start PostgreSQL')
  assert.match(server.stdout(), /, accounts not known while the store cannot be reached\n/)
  assert.doesNotMatch(server.stdout(), /No account yet/)
  const metrics = await (await fetch(`${await server.adminUrl()}/metrics`, anew)).text()
  assert.match(metrics, /^triwire_ledger_writable\{replica="[^"]+"\} 0$/m, 'an alert can see it')
  assert.equal((await fetch(`${base}/v1/models`, anew)).status, 200)
  await checkRefusals(await Promise.all(Array.from({ length: 20 }, ask)), server)
  postgres.start()
  assert.ok((await timeUntil(isReady, 'it is ready')) < 4_000 + slackMs)
  assert.equal((await ask()).status, 200)
  server.child.kill('SIGTERM')
  assert.equal(await server.exited, 0)
})

test('B14: SIGTERM ends the server while a question of an operator waits for a table that another program has locked', {
  skip,
}, async () => {
  const prepared = await prepare('settle_deadline: 1s')
  const { server, isReady } = await start(prepared)
  await until(isReady)
  const other = new pg.Client({ connectionString: prepared.url })
  await other.connect()
  await other.query('BEGIN; LOCK TABLE triwire.sums_d IN ACCESS EXCLUSIVE MODE')
  const { host } = new URL(await server.adminUrl())
  const asked = await runWarm(['needs', '--config', join(prepared.folder, 'triwire.yaml'), '--admin-listen', host])
  // On a busy machine the command gives up first. The server still looks.
  assert.ok(asked.code === 0 || asked.stderr.includes('did not answer in 5 s'), asked.stderr)
  server.child.kill('SIGTERM')
  const tookMs = await timeUntil(async () => server.child.exitCode !== null, 'it ends')
  // To drain, to cut answers, for debits, for the database and for operators' questions (docs/operating.md).
  assert.ok(tookMs < 2_000 + 4_000 + 1_000 + 4_000 + 2_000 + slackMs, `it took ${Math.round(tookMs)} ms`)
  assert.equal(await server.exited, 0)
  await other.end()
})

test('C3, F-P1, X13: a server is killed while its debits are in the spool: the next start posts them before it is ready', {
  skip,
}, async () => {
  const prepared = await prepare()
  const first = await start(prepared)
  await until(first.isReady)
  const load = startLoad(first.ask)
  await until(() => load.answers.length > 50, 'answers come')
  const thaw = freeze(postgres)
  await first.server.saw('"ledger_unsettled"')
  const spool = join(prepared.folder, 'state', 'replica.spool')
  assert.match(readFileSync(spool, 'utf8'), /"requestId"/)
  // Those whose end waited for the spool have it now.
  const isSpooled = ({ id }: Answer) => readFileSync(spool, 'utf8').includes(id)
  await until(() => load.answers.some(isSpooled), 'an answer ends behind the spool')
  await kill(first.server)
  const answers = await load.stop()
  thaw()
  const second = await start(prepared)
  await until(second.isReady)
  await second.server.saw('"crash_recovery"')
  await untilBooked(prepared, answers)
  assert.equal((await second.ask()).status, 200)
})

async function kill({ child, exited }: Served): Promise<void> {
  child.kill('SIGKILL')
  await exited
}

test('X7 X11: the parent process ends when it is stopped, even if no worker lives at that moment', {
  skip,
}, async () => {
  const { folder } = await prepare()
  const server = serve(['--config', 'triwire.yaml', '--workers', '1'], folder)
  await server.url()
  process.kill(childrenOf(server.child.pid!)[0]!, 'SIGKILL')
  await server.saw('"worker_exited"')
  server.child.kill('SIGTERM')
  assert.equal(await within(server.exited, 'it ends'), 0)
})

/** While no worker lives, nobody listens. */
const isAnswered = (url: URL) =>
  fetch(url, anew).then(
    ({ ok }) => ok,
    () => false,
  )

test('X7 F-P1: a worker that is killed before it listens, while no other lives, is started once more', {
  skip,
}, async () => {
  const { folder } = await prepare()
  const server = serve(['--config', 'triwire.yaml', '--workers', '1'], folder)
  // The supervisor has chosen the ports, so they stay the same.
  const ready = new URL('/readyz', await server.adminUrl())
  const killed = new Set<number>()
  const findNext = () => childrenOf(server.child.pid!).find((pid) => !killed.has(pid))
  while (killed.size < 2) {
    await until(findNext, 'a worker lives')
    const pid = findNext()!
    killFound(pid)
    killed.add(pid)
  }
  await until(() => isAnswered(ready), 'a third one answers')
  server.child.kill('SIGTERM')
  assert.equal(await within(server.exited, 'it ends'), 0)
})

test('X7 X10: a replacing worker reads the file; while that is invalid or needs a restart, the other workers continue', {
  skip,
}, async () => {
  const { folder, key } = await prepare()
  const file = join(folder, 'triwire.yaml')
  const good = readFileSync(file, 'utf8')
  const server = serve(['--config', 'triwire.yaml', '--workers', '2'], folder)
  const base = await server.url()
  let listening = 2
  const pids = () => childrenOf(server.child.pid!)
  const killOne = () => process.kill(pids()[0]!, 'SIGKILL')
  const replaced = (count = 1) => {
    listening += count
    return server.saw('"worker_listening"', listening)
  }
  const waits: readonly [file: string, why: RegExp][] = [
    [`${good}\nno_such_key: 1\n`, /"worker_waits","error":".*no_such_key/],
    [good.replace(/^store: .*$/m, 'store: postgres://nobody@127.0.0.1:1/none'), /"worker_waits","keys":\["store"\]/],
  ]
  for (const [other, why] of waits) {
    writeFileSync(file, other)
    killOne()
    await until(() => why.test(server.stderr()), `${why}`)
    assert.equal(pids().length, 1)
    assert.equal((await ask(base, key)).status, 200)
    writeFileSync(file, good)
    await replaced()
  }
  writeFileSync(file, good.replace('id: m,', 'id: other,'))
  killOne()
  await replaced()
  const models = async () => {
    const { data } = (await (
      await fetch(`${base}/v1/models`, { headers: { authorization: `Bearer ${key}`, ...anew.headers } })
    ).json()) as {
      data: { id: string }[]
    }
    return data[0]!.id
  }
  const found = new Set<string>()
  await until(async () => found.add(await models()).size === 2, 'each of them serves its own file')
  // Without another worker there is nobody to differ from.
  writeFileSync(file, good.replace('drain_delay', 'headers: 9s, drain_delay'))
  for (const pid of pids()) killFound(pid)
  await replaced(2)
  assert.equal((await ask(base, key)).status, 200)
  server.child.kill('SIGTERM')
  assert.equal(await within(server.exited, 'it ends'), 0)
})

test('X7: workers end when their parent process is killed', { skip }, async () => {
  const { folder } = await prepare()
  const server = serve(['--config', 'triwire.yaml', '--workers', '2'], folder)
  await server.url()
  const pids = childrenOf(server.child.pid!)
  assert.equal(pids.length, 2)
  server.child.kill('SIGKILL')
  await until(() => !pids.some((pid) => existsSync(`/proc/${pid}/cmdline`)), 'they end')
})

test('X7: a port in use by another program is an error, and no worker is started', { skip }, async () => {
  const { folder } = await prepare()
  const file = join(folder, 'triwire.yaml')
  for (const name of ['listen', 'admin_listen']) {
    const good = readFileSync(file, 'utf8')
    const port = await listen(createServer())
    writeFileSync(
      file,
      good
        .replace(`\n${name}: 127.0.0.1:0`, `\n${name}: 127.0.0.1:${port}`)
        .replace(/^listen: 127.0.0.1:0/, name === 'listen' ? `listen: 127.0.0.1:${port}` : '$&'),
    )
    const server = serve(['--config', 'triwire.yaml', '--workers', '2'], folder)
    assert.equal(await within(server.exited, 'it ends'), 1)
    assert.match(server.stderr(), new RegExp(`${port}`))
    assert.doesNotMatch(server.stderr(), /worker/)
    writeFileSync(file, good)
  }
})

/** Node on a system that refuses `reusePort`. */
const withoutShared = `import { Server } from 'node:net'
const { listen } = Server.prototype
Server.prototype.listen = function (options, ...rest) {
  if (!options?.reusePort) return listen.call(this, options, ...rest)
  process.nextTick(() => this.emit('error', Object.assign(new Error('listen ENOTSUP'), { code: 'ENOTSUP' })))
  return this
}`

test('X7: if the system cannot share a port, one process serves and reports it', { skip }, async () => {
  const { folder, key } = await prepare()
  const env = { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(withoutShared)}` }
  const server = serve(['--config', 'triwire.yaml', '--workers', '2'], folder, { env })
  const base = await server.url()
  assert.match(server.stderr(), /"workers_unsupported","cause":"this system cannot share a port between processes/)
  assert.deepEqual(childrenOf(server.child.pid!), [])
  assert.equal((await ask(base, key)).status, 200)
  server.child.kill('SIGTERM')
  assert.equal(await within(server.exited, 'it ends'), 0)
})

test('X7: the admin listener works although a worker repeatedly ends before it listens', {
  skip,
}, async () => {
  const { folder } = await prepare()
  const server = serve(['--config', 'triwire.yaml', '--workers', '2'], folder)
  const findOthers = () => childrenOf(server.child.pid!).slice(1)
  await until(() => findOthers().length === 1, 'both are begun')
  process.kill(findOthers()[0]!, 'SIGSTOP')
  // It is passed on to those that listen.
  await until(() => {
    server.child.kill('SIGHUP')
    return server.stderr().includes('"config_reloaded"')
  }, 'the first listens')
  let admin = ''
  void server.adminUrl().then((url) => {
    admin = url
  })
  await until(() => {
    for (const pid of findOthers()) killFound(pid)
    return admin
  }, 'the admin listener listens')
  assert.equal((await fetch(new URL('/readyz', admin), anew)).status, 200)
  server.child.kill('SIGTERM')
  assert.equal(await within(server.exited, 'it ends'), 0)
})

test('B24 X7: a SIGHUP while the workers start does not end their parent process', { skip }, async () => {
  const { folder } = await prepare()
  const server = serve(['--config', 'triwire.yaml', '--workers', '1'], folder)
  await until(() => childrenOf(server.child.pid!).length > 0, 'a worker is begun')
  server.child.kill('SIGHUP')
  const ready = new URL('/readyz', await server.adminUrl())
  await until(async () => (await fetch(ready, anew)).ok, 'it answers')
  server.child.kill('SIGTERM')
  assert.equal(await within(server.exited, 'it ends'), 0)
})

test('F-P5 X7: a SIGTERM while the workers start ends all of them, and counts as no failure', { skip }, async () => {
  const { folder } = await prepare()
  const server = serve(['--config', 'triwire.yaml', '--workers', '2'], folder)
  await until(() => childrenOf(server.child.pid!).length === 2, 'the workers are begun')
  server.child.kill('SIGTERM')
  assert.equal(await within(server.exited, 'it ends'), 0)
  assert.doesNotMatch(server.stderr(), /"(bug|uncaught|worker_exited)"/)
})

test('X7 F-P11: if the system has no room for another worker, the others continue, and it is started when there is room', {
  skip: skip || !existsSync('/usr/bin/prlimit'),
}, async () => {
  const { folder } = await prepare()
  const server = serve(['--config', 'triwire.yaml', '--workers', '2'], folder)
  const ready = new URL('/readyz', await server.adminUrl())
  const allow = (descriptors: number) =>
    execFileSync('prlimit', ['--pid', `${server.child.pid}`, `--nofile=${descriptors}:`])
  allow(10)
  process.kill(childrenOf(server.child.pid!)[0]!, 'SIGKILL')
  // Reading the file, or starting a process: either takes descriptors.
  await server.saw('EMFILE')
  assert.equal(childrenOf(server.child.pid!).length, 1)
  allow(4_000)
  await until(() => childrenOf(server.child.pid!).length === 2, 'another is begun')
  await until(async () => (await fetch(ready, anew)).ok, 'it answers')
  server.child.kill('SIGTERM')
  assert.equal(await within(server.exited, 'it ends'), 0)
})
