import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import { createDemo, findGift } from '../../src/process/demo.ts'
import { explainStart, sayStart } from '../../src/process/say-start.ts'
import { holderPathOf } from '../../src/store/files/holder.ts'
import { openBooks } from '../../src/store/open-books.ts'
import { openDatabase } from '../../src/store/sqlite/open.ts'
import { runWarm } from '../cli/run.ts'
import { testFolder } from '../support/folder.ts'
import { listen } from '../support/listen.ts'
import { openStore } from '../support/operator.ts'
import { anyPorts, configFile, model, newFolder, serve } from '../support/serve.ts'
import { until } from '../support/waiting.ts'

/* The first day with the program: what a start says, the demo's credit before real models, reload, and what cannot work. */

test('N-F12 an account `demo` that an operator made with 10 credits is no demo account', async () => {
  const folder = newFolder()
  const path = join(folder, 'triwire.db')
  const store = { engine: 'sqlite', path, shown: path } as const
  assert.equal((await runWarm(['account', 'create', 'demo', '--credit', '10', '--store', path])).code, 0)
  const { books, close } = await openBooks(store)
  assert.equal(await findGift(books), undefined)
  await close()
  const first = { ...store, path: join(folder, 'first.db') }
  await createDemo(first)
  const made = await openBooks(first)
  assert.equal(await findGift(made.books), (await made.books.findAccount('demo')).id)
  await made.close()
})

test('N-F12 N-F8 if real models are served, the demo account is refused until it is given credit and triwire reload runs', async () => {
  const folder = newFolder()
  const store = openStore(join(folder, 'triwire.db'))
  // As a first start without a configuration makes it.
  store.createAccount('demo', 10_000_000_000n)
  const { key } = store.createKey('demo')
  const file = configFile(folder, model('only'))
  const running = serve(['--config', file, '--json'], folder)
  await running.saw('"listening"')
  await running.saw(
    '"demo_refused","account":"demo","cure":"The account \\"demo\\" is refused here: its 10 credits were for the simulator.',
  )
  await until(() => running.stdout().endsWith('\n'), 'it has said where it listens')
  const { url, ...said } = JSON.parse(running.stdout())
  assert.deepEqual(
    [said.config, said.store, said.store_is_new, said.models, said.accounts, said.demo_key],
    [file, join(folder, 'triwire.db'), false, 1, 1, null],
  )
  const ask = async () => {
    const body = JSON.stringify({ model: 'only', messages: [{ role: 'user', content: 'canary-demo' }] })
    const answer = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers: { 'x-api-key': key }, body })
    return [answer.status, ((await answer.json()) as { error: { code: string } }).error.code]
  }
  assert.deepEqual(await ask(), [401, 'account_suspended'])
  // The store that the file names now is one of the next start.
  const written = readFileSync(file, 'utf8')
  writeFileSync(file, written.replace('./triwire.db', './nowhere/none.db'))
  running.child.kill('SIGHUP')
  await running.saw('"restart_needed","keys":["store"')
  assert.deepEqual(await ask(), [401, 'account_suspended'])
  assert.equal(existsSync(join(folder, 'nowhere')), false)
  writeFileSync(file, written)
  store.credit('demo', 1n, 'on purpose')
  const reloaded = await runWarm(['reload', '--config', file])
  assert.deepEqual([reloaded.code, reloaded.stderr], [0, ''])
  assert.equal(reloaded.stdout, `process ${running.child.pid} reads its configuration again; its log has the result\n`)
  await running.saw('"config_reloaded"', 2)
  // It may ask now; nobody listens where the model should be.
  assert.deepEqual(await ask(), [502, 'upstream_error'])

  // What is not the server is not signalled: another process has its number, or none.
  const holder = holderPathOf(join(folder, 'triwire.db'))
  const held = readFileSync(holder, 'utf8')
  for (const text of [`{"pid":${process.pid},"begun":"1"}`, '{"pid":1,"begun":null}', '{', '']) {
    writeFileSync(holder, text)
    const { code, stderr } = await runWarm(['reload', '--config', file, '--json'])
    assert.equal(code, 1)
    assert.match(
      stderr,
      /^\{"ok":false,"error":\{"code":"failed","message":"the server on the store \S+ is not to be found from here/,
    )
  }
  writeFileSync(holder, held)
  running.child.kill('SIGTERM')
  assert.equal(await running.exited, 0)
  assert.throws(() => readFileSync(holder), { code: 'ENOENT' })
  assert.match((await runWarm(['reload', '--config', file])).stderr, /no server runs on the store/)
  store.close()
})

test('N-F8 a start reports in one line which configuration it uses, and what is missing', () => {
  const cwd = testFolder('said')
  const config = loadConfig({ config: configFile(cwd, model('only')) }, {}, cwd)
  const started = {
    base: 'http://h:1',
    admin: 'http://h:2',
    config,
    isStoreNew: true,
    demo: undefined,
    isDemoBarred: false,
  }
  assert.equal(
    sayStart(started, 0),
    `triwire listens on http://h:1 (health and readiness on http://h:2)
configuration ${cwd}/triwire.yaml, store ${cwd}/triwire.db (new), models 1, accounts 0
No account yet: triwire account create NAME --credit 10, then triwire key create NAME.`,
  )
  assert.match(sayStart(started, undefined), /, accounts not known while the store cannot be reached$/)
  assert.match(
    sayStart({ ...started, isStoreNew: false, isDemoBarred: true }, 1),
    /triwire\.db, models 1, accounts 1\nThe account "demo" is refused here: .* triwire account credit demo 5 --reference …, then triwire reload\.$/,
  )
})

test('N-F8 a command that creates a store says so', async () => {
  const cwd = testFolder('new-store')
  const made = await runWarm(['account', 'create', 'one'], { cwd })
  assert.equal(made.stderr, `note: a new store was made at ${join(cwd, 'data/triwire.db')}\n`)
  assert.equal((await runWarm(['account', 'create', 'two', '--json'], { cwd })).stderr, '')
  const other = await runWarm(['account', 'create', 'one', '--store', 'x.db', '--json'], { cwd })
  assert.equal(other.stderr, `{"note":"a new store was made at ${join(cwd, 'x.db')}"}\n`)
})

test('X8 if only an earlier release’s store beside the file exists, start, check and commands name both paths', async () => {
  const cwd = testFolder('upgrade')
  mkdirSync(join(cwd, 'etc/data'), { recursive: true })
  writeFileSync(join(cwd, 'etc/triwire.yaml'), 'log: {}\n')
  openStore(join(cwd, 'etc/data/triwire.db')).close()
  const both = new RegExp(
    `There is a store at ${cwd}/etc/data/triwire\\.db, .* now the default is ${cwd}/data/triwire\\.db`,
  )
  for (const line of ['account list', 'account create one', 'check', 'reload']) {
    const { code, stdout, stderr } = await runWarm([...line.split(' '), '--config', 'etc/triwire.yaml'], { cwd })
    assert.deepEqual([code, stdout], [1, ''], line)
    assert.match(stderr, both, line)
  }
  const start = serve(['--config', 'etc/triwire.yaml', '--json', ...anyPorts], cwd)
  assert.equal(await start.exited, 1)
  assert.match(start.stderr(), /^\{"ok":false,"error":\{"code":"failed","message":"There is a store at/)
  assert.doesNotMatch(start.stderr(), /\n\s+at /)
  const named = await runWarm(['account', 'list', '--config', 'etc/triwire.yaml', '--store', 'etc/data/triwire.db'], {
    cwd,
  })
  assert.equal(named.code, 0)
})

test('N-F18 the id of a key that cannot be printed is shown, so that the key can be revoked', async () => {
  const cwd = testFolder('full')
  await runWarm(['account', 'create', 'one', '--store', 's.db'], { cwd })
  const cli = resolve(import.meta.dirname, '../../src/cli/cli.ts')
  const { code, stderr } = await new Promise<{ code: number; stderr: string }>((done) => {
    const args = ['-c', 'exec "$@" >/dev/full', 'sh', process.execPath, cli, 'key', 'create', 'one', '--store', 's.db']
    execFile('/bin/sh', args, { cwd, env: { ...process.env, NODE_NO_WARNINGS: '1' } }, (error, _, stderr) =>
      done({ code: Number(error?.code ?? 0), stderr }),
    )
  })
  assert.equal(code, 1)
  const [, id = ''] =
    /^triwire: what was asked for cannot be written \(the disk is full\); .* revoke it with triwire key revoke (key_\w+)\n$/.exec(
      stderr,
    ) ?? []
  assert.equal((await runWarm(['key', 'revoke', id, '--store', 's.db'], { cwd })).code, 0)
})

test('N-F18 a server that cannot listen or create its store reports the cause without a stack trace', async () => {
  const errorOf = async (port: number, host: string) => {
    const server = createServer()
    return new Promise<Error>((done) => {
      server.once('error', done)
      server.listen(port, host)
    })
  }
  const taken = await listen(createServer())
  const folder = testFolder('start')
  writeFileSync(join(folder, 'a'), '')
  const thrown = (work: () => unknown) => {
    try {
      work()
    } catch (error) {
      return error
    }
    return undefined
  }
  const rows: [error: unknown, told: RegExp][] = [
    [
      await errorOf(taken, '127.0.0.1'),
      /^address already in use 127\.0\.0\.1:\d+: stop what listens there, or choose another/,
    ],
    [
      await errorOf(taken, '192.0.2.1'),
      /^192\.0\.2\.1:\d+ is not an address of this machine: choose 127\.0\.0\.1, 0\.0\.0\.0/,
    ],
    [
      await errorOf(taken, '2001:db8::1'),
      /^\[2001:db8::1\]:\d+ (is not an address of this machine|cannot be listened on)/,
    ],
    [
      await errorOf(taken, 'no-such-host.invalid'),
      /^no-such-host\.invalid does not resolve to an address: check --listen/,
    ],
    [
      Object.assign(new Error('x'), { code: 'EACCES', syscall: 'listen', address: '0.0.0.0', port: 80 }),
      /^0\.0\.0\.0:80 may not be listened on: ports below 1024 are the system's/,
    ],
    [
      thrown(() => mkdirSync(join(folder, 'a/b'))),
      /a\/b cannot be made \(ENOTDIR\): a part of it is a file; choose another place with --store$/,
    ],
    [thrown(fillDatabase), /^the store cannot grow: the disk is full \(choose its place with --store\)$/],
    [Object.assign(new Error('x'), { code: 'ENOSPC', syscall: 'write' }), /^the store cannot grow: the disk is full/],
    [thrown(() => openDatabase(folder)), /is a folder: name a file in it with --store, such as \S+triwire\.db$/],
  ]
  for (const [error, told] of rows) {
    const text = explainStart(error)
    assert.match(text, told)
    assert.doesNotMatch(text, /\n/)
  }
  assert.match(explainStart(new Error('a bug')), /a bug\n\s+at /)
})

/** Writes into a database that may not grow: SQLite fails as it does on a full disk (NEW-15). */
function fillDatabase(): void {
  const db = new DatabaseSync(':memory:')
  db.exec('CREATE TABLE t (text); PRAGMA max_page_count = 2')
  db.prepare('INSERT INTO t VALUES (?)').run('x'.repeat(100_000))
}
