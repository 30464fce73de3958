import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import test, { before } from 'node:test'
import { findPlanless } from '../../src/accounts/planless.ts'
import { readStorePlace } from '../../src/config/store-place.ts'
import { createDemo, findGift } from '../../src/process/demo.ts'
import { openBooks } from '../../src/store/open-books.ts'
import { testFolder } from '../support/folder.ts'
import { freePort } from '../support/listen.ts'
import { type Postgres, startPostgres, withoutPostgres } from '../support/postgres.ts'
import { anyPorts, serve } from '../support/serve.ts'
import { until } from '../support/waiting.ts'
import { run, runWarm } from './run.ts'

const skip = withoutPostgres()
const folder = testFolder('cli-postgres')
let postgres: Postgres
let url = ''

before(async () => {
  if (skip) return
  postgres = await startPostgres()
  url = postgres.createDatabase('books')
})

/** With a password that nothing may show; the cluster asks for none. */
const withPassword = (url: string) => url.replace('tri@', 'tri:secret-of-this-test@')

const on = (line: string, store = withPassword(url)) =>
  runWarm([...line.split(' '), '--store', store], { cwd: folder, env: { TRIWIRE_STORE: '' } })

async function json(line: string) {
  const { code, stdout, stderr } = await on(`${line} --json`)
  assert.equal(code, 0, stderr || stdout)
  return JSON.parse(stdout)
}

test('X7 X13 every command of the books works on PostgreSQL', { skip }, async () => {
  const first = await on('account list')
  assert.deepEqual([first.code, first.stdout], [1, ''])
  assert.match(first.stderr, /^triwire: There is no store in postgres:\/\/tri@127\.0\.0\.1:\d+\/books: name the right/)
  const { id } = await json('account create one --credit 12.5')
  assert.match(id, /^acct_/)
  assert.equal((await json('account credit one -0.5 --reference r1')).balance, '12')
  assert.equal((await json('account suspend one')).state, 'suspended')
  assert.equal((await json('account activate one')).state, 'active')
  assert.equal((await json('account rename one uno')).name, 'uno')
  const { key, id: keyId } = await json('key create uno --label laptop')
  assert.match(key, /^sk-tri-/)
  const rotated = await json(`key rotate ${keyId} --grace 1h`)
  assert.equal((await json('key list uno')).length, 2)
  assert.match((await json(`key revoke ${rotated.prefix}`)).revoked, /^\d{4}/)
  assert.deepEqual(
    (await json('ledger list --account uno')).map((row: { amount: string }) => row.amount),
    ['-0.5', '12.5'],
  )
  assert.equal((await json('ledger totals --by account'))[0].credited, '12')
  const { head, ...verdict } = await json('ledger verify')
  assert.deepEqual(verdict, { ok: true, findings: [] })
  assert.equal((await on(`ledger verify --against ${head}`)).code, 0)
  assert.equal((await on('ledger export --csv')).stdout.trim().split('\n').length, 3)
  const unknown = await on('account show nobody')
  assert.deepEqual(
    [unknown.code, unknown.stderr],
    [1, 'triwire: There is no account "nobody": see triwire account list\n'],
  )
  const request = `req_${'0'.repeat(32)}`
  const none = await on(`explain ${request} --admin-listen 127.0.0.1:${await freePort()}`)
  assert.match(none.stderr, /The ledger has no debit of request req_0+, and no server could be asked/)
  assert.match((await on(`ledger show ${request}`)).stderr, /^triwire: There is no debit of request/)
})

test('X13 the database’s own variables work, and its URL may be in the configuration', { skip }, async () => {
  demandPassword()
  runEach(`CREATE ROLE asks LOGIN PASSWORD 'secret-of-this-test'`, 'CREATE DATABASE asked OWNER asks')
  const place = `postgres://asks@127.0.0.1:${postgres.port}/asked`
  writeFileSync(join(folder, 'triwire.yaml'), `store: ${place}\n`)
  const create = ['account', 'create', 'one']
  const wrong = await runWarm(create, { cwd: folder, env: { PGPASSWORD: 'canary-other', TRIWIRE_STORE: '' } })
  assert.equal(
    wrong.stderr,
    `triwire: ${place} refuses the password: check user and password of the store’s URL, or PGPASSWORD and PGPASSFILE (password authentication failed for user "asks")\n`,
  )
  const right = await run(create, { cwd: folder, env: { PGPASSWORD: 'secret-of-this-test', TRIWIRE_STORE: '' } })
  assert.equal(right.code, 0, right.stderr)
  const file = join(folder, 'pgpass')
  writeFileSync(file, '127.0.0.1:*:asked:asks:secret-of-this-test\n', { mode: 0o600 })
  const listed = await run(['account', 'list'], { cwd: folder, env: { PGPASSFILE: file, TRIWIRE_STORE: '' } })
  assert.match(listed.stdout, / one +active /)
  assert.equal(listed.stderr, '')
  const check = await runWarm(['check'], { cwd: folder, env: { TRIWIRE_STORE: '' } })
  assert.match(check.stderr, /^triwire: \S+:1: state_dir is needed with a store in PostgreSQL/)
  const settings = {
    TRIWIRE_STATE_DIR: 'state',
    TRIWIRE_SEAL_KEY: Buffer.from('one seal key of 32 bytes, for us').toString('base64'),
  }
  const checked = await runWarm(['check', '--json'], {
    cwd: folder,
    env: { ...settings, TRIWIRE_STORE: place.replace('asks@', 'asks:secret-of-this-test@') },
  })
  assert.equal((checked.json as unknown as { store: string }).store, place)
  assert.doesNotMatch(checked.stdout, /canary/)
})

const runEach = (...statements: string[]) => {
  for (const sql of statements) postgres.run(sql)
}

/** From now on of the role `asks`. */
function demandPassword(): void {
  const file = join(postgres.folder, 'data', 'pg_hba.conf')
  const text = readFileSync(file, 'utf8')
  writeFileSync(file, `host all asks 127.0.0.1/32 scram-sha-256\n${text}`)
  postgres.run('SELECT pg_reload_conf()')
}

test('X13 a database error is reported with its cure and without its password', {
  skip,
}, async () => {
  runEach('CREATE ROLE poor LOGIN', 'CREATE DATABASE rich')
  runEach(`CREATE DATABASE latin ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0`)
  const at = (rest: string, user = 'tri') => `postgres://${user}:secret-of-this-test@127.0.0.1:${rest}`
  const port = postgres.port
  const closed = await freePort()
  const cases: readonly [url: string, message: RegExp][] = [
    [
      at(`${closed}/books`),
      /^postgres:\/\/tri@127\.0\.0\.1:\d+\/books cannot be reached: nothing listens there: start PostgreSQL, and check host and port of the URL and its listen_addresses \(ECONNREFUSED\)$/,
    ],
    [at(`${port}/nothing`), /has no such database: create it, owned by the user of the store’s URL/],
    [at(`${port}/books`, 'nobody'), /refuses the user|role "nobody" does not exist/],
    [at(`${port}/rich`, 'poor'), /gives the user too few rights: the user must own the database/],
    [
      at(`${port}/books?sslmode=verify-full`),
      /\?sslmode=verify-full does not support TLS: leave sslmode out of the store's URL/,
    ],
    [at(`${port}/latin`), /stores text in SQL_ASCII: use a database made with ENCODING 'UTF8'/],
    [
      'postgres://tri:secret-of-this-test@no-such-host.invalid/books',
      /cannot be reached: (there is no such host|the name of the host could not be looked up)/,
    ],
  ]
  for (const [url, message] of cases) {
    const { code, stderr } = await on('account create one', url)
    assert.equal(code, 1)
    assert.match(stderr.replace(/^triwire: /, '').trim(), message)
    assert.doesNotMatch(stderr, /canary|\n {4}at /)
  }
})

test('X13 a URL typed in a wrong place is reported without its password', async () => {
  for (const args of [
    ['postgres://u:secret-of-this-test@h/d'],
    ['account', 'list', 'postgres://u:secret-of-this-test@h/d'],
    ['account', 'create', 'a', '--stor', 'postgresql://u:canary@pass@h/d', '--json'],
    ['store', 'copy', '--to', 'postgres://u:canary/x@h/d'],
  ]) {
    const { code, stdout, stderr } = await runWarm(args)
    assert.equal(code, 2, stderr)
    assert.doesNotMatch(stdout + stderr, /canary/)
  }
})

test('X7 the servers that share a store are listed; a file is not shared', { skip }, async () => {
  const columns = 'name, version, config_digest, seal_fingerprint, started_ms, seen_ms, left_ms'
  postgres.run(
    `INSERT INTO triwire.replicas (${columns}) VALUES ('a:1', '0.2.0', 'c1', 's', 1000, 2000, NULL), ('b:2', '0.2.0', 'c2', 's', 1000, 2000, 3000);
     INSERT INTO triwire.present SELECT id, 5000 FROM triwire.replicas WHERE name = 'a:1'`,
    'books',
  )
  const rows = await json('replicas')
  assert.deepEqual(rows, [
    ...[
      {
        id: rows[0].id,
        name: 'a:1',
        version: '0.2.0',
        config: 'c1',
        started: '1970-01-01T00:00:01.000Z',
        seen: '1970-01-01T00:00:05.000Z',
        left: null,
      },
    ],
    ...[
      {
        id: rows[1].id,
        name: 'b:2',
        version: '0.2.0',
        config: 'c2',
        started: '1970-01-01T00:00:01.000Z',
        seen: '1970-01-01T00:00:02.000Z',
        left: '1970-01-01T00:00:03.000Z',
      },
    ],
  ])
  assert.match((await on('replicas')).stdout, /^id +name +version +config +started +seen +left\n\d+ +a:1 +0\.2\.0 +c1 /)
  const file = join(folder, 'a.db')
  await on('account create one', file)
  assert.deepEqual(
    (await on('replicas', file)).stderr,
    `triwire: ${file} is a SQLite file, which one server serves alone: replicas share a store in PostgreSQL (docs/scaling.md)\n`,
  )
  assert.equal(
    (await on('reload')).stderr,
    `triwire: the servers of ${url} may run anywhere: send each of them SIGHUP where it runs (triwire replicas lists them)\n`,
  )
})

test('X7 the command line moves a store, and prints the proof and the next steps', { skip }, async () => {
  const [file, back] = [join(folder, 'moved.db'), join(folder, 'back.db')]
  await on('account create one --credit 3', file)
  writeFileSync(`${file}.seal`, Buffer.alloc(32, 'canary-seal').toString('base64'), { mode: 0o600 })
  const to = postgres.createDatabase('moved')
  const there = await on(`store copy --to ${withPassword(to)}`, file)
  assert.equal(there.code, 0, there.stderr)
  assert.match(
    there.stdout,
    new RegExp(`^${file} and ${to} are equal: every entry, balance, key and price was read from both`),
  )
  assert.match(there.stdout, /\nentries +1\n/)
  assert.ok(
    there.stdout.includes(
      `\nnext: start each server with store: ${to} and its password, a state_dir of its own, and what is in ${file}.seal as seal_key`,
    ),
  )
  assert.doesNotMatch(there.stdout + there.stderr, /canary|Y2FuYXJ5/)
  assert.equal(
    (await on('account create two', file)).stderr,
    `triwire: ${file} was moved to ${to}: name that store instead, or move it back with triwire store copy\n`,
  )
  const stale = await on('account list', file)
  assert.match(stale.stdout, / one +active +3\n$/)
  assert.equal(
    stale.stderr,
    `note: ${file} was moved to ${to}: name that store instead, or move it back with triwire store copy\n`,
  )
  const stray = join(dirname(file), 'stray', 'other.db')
  assert.match((await on(`store copy --to ${stray}`, file)).stderr, /was moved to postgres:/)
  assert.equal(existsSync(dirname(stray)), false)
  const served = await run(['serve', '--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0', '--store', file])
  assert.match(served.stderr, /was moved to postgres:/)
  const data = await on(`store copy --to ${back} --json`, to)
  const proof = JSON.parse(data.stdout)
  assert.deepEqual(
    [proof.from, proof.to, proof.equal, proof.copied, proof.entries, proof.balances, proof.accounts],
    [to, back, true, 1, 1, '3', 1],
  )
  assert.match(proof.digest, /^[0-9a-f]{64}$/)
  assert.equal(
    (await on('account create two', to)).stderr,
    `triwire: ${to} was moved to ${back}: name that store instead, or move it back with triwire store copy\n`,
  )
  assert.equal(JSON.parse((await on('ledger verify --json', to)).stdout).ok, true)
  assert.equal(JSON.parse((await on('ledger verify --json', back)).stdout).ok, true)
  const same = await on(`store copy --to ${back}`, back)
  assert.equal(same.stderr, `triwire: ${back} is the store itself: name another place with --to\n`)
})

test('X7 X13 a store in PostgreSQL is moved when its server has stopped, and refuses that server afterwards', {
  skip,
}, async () => {
  const to = postgres.createDatabase('served')
  const env = {
    TRIWIRE_STORE: withPassword(to),
    TRIWIRE_STATE_DIR: join(folder, 'state'),
    TRIWIRE_SEAL_KEY: Buffer.from('one seal key of 32 bytes, for us').toString('base64'),
  }
  const server = serve(anyPorts, folder, { env })
  await server.saw('"listening"')
  const [replica] = JSON.parse((await on('replicas --json', to)).stdout)
  assert.equal(replica.left, null)
  assert.match(replica.config, /^[\w-]{16}$/)
  const file = join(folder, 'served.db')
  const copying = run(['store', 'copy', '--to', file, '--json'], { env: { TRIWIRE_STORE: to } })
  await until(
    () => postgres.run('SELECT count(*) FROM triwire.schema', 'served') === '1' && existsSync(file),
    'it has begun',
  )
  server.child.kill('SIGINT')
  assert.equal(await server.exited, 0, server.stderr())
  const { code, stdout, stderr } = await copying
  assert.equal(code, 0, stderr)
  assert.equal(JSON.parse(stdout).equal, true)
  assert.notEqual(JSON.parse((await on('replicas --json', to)).stdout)[0].left, null)
  const again = serve(anyPorts, folder, { env })
  assert.equal(await again.exited, 1)
  assert.match(again.stderr(), new RegExp(`^triwire: ${to} was moved to ${file}: name that store instead`, 'm'))
  for (const text of [server.stdout(), server.stderr(), again.stderr()]) assert.doesNotMatch(text, /canary/)
  assert.match(server.stdout(), new RegExp(`, store ${to},`))
})

test('a first start with the built-in catalog makes its account in PostgreSQL too', { skip }, async () => {
  const place = readStorePlace(postgres.createDatabase('demo'), '/')
  const demo = await createDemo(place)
  assert.match(demo.key ?? '', /^sk-tri-/)
  assert.deepEqual(await createDemo(place), { key: undefined, account: 'demo' })
  const [{ id }] = JSON.parse((await on('account list --json', place.shown)).stdout)
  const { books, close } = await openBooks(place)
  assert.equal(await findGift(books), id)
  // An account that an operator made is no demo, whatever its name and credit.
  assert.equal((await on('account rename demo first', place.shown)).code, 0)
  assert.equal((await on('account create demo --credit 10', place.shown)).code, 0)
  assert.equal(await findGift(books), undefined)
  for (const names of ['demo other', 'first demo'])
    assert.equal((await on(`account rename ${names}`, place.shown)).code, 0)
  assert.equal(await findGift(books), id)
  // Accounts whose plan the configuration lacks are found in a database too.
  await books.updateAccount('demo', { plan: 'glod' })
  const planless = async (...plans: string[]) => (await findPlanless(books, plans)).map(({ name }) => name)
  assert.deepEqual([await planless(), await planless('gold'), await planless('gold', 'glod')], [['demo'], ['demo'], []])
  await close()
  // So does `check`, which writes nothing and needs no database.
  const env = {
    TRIWIRE_STORE: '',
    TRIWIRE_STATE_DIR: folder,
    TRIWIRE_SEAL_KEY: Buffer.from('a seal key of thirty-two bytes..').toString('base64'),
  }
  const check = (shown: string) => runWarm(['check', '--store', shown], { cwd: folder, env })
  assert.match((await check(place.shown)).stderr, /plans lacks those of the accounts demo \(glod\)/)
  // The database also has the reporting zone of its first server, which no other zone may follow (ruling X12).
  postgres.run(`UPDATE triwire.usage_state SET time_zone = 'Europe/Berlin', kept_from = 1`, 'demo')
  const other = await check(place.shown)
  assert.equal(other.code, 1)
  assert.match(other.stderr, /the days of .* are those of Europe\/Berlin, and reporting\.time_zone says UTC: set it to/)
  const empty = readStorePlace(postgres.createDatabase('unmade'), '/').shown
  assert.doesNotMatch((await check(empty)).stderr, /plans/)
  const gone = await check(place.shown.replace(/\/[^/]*$/, '/nowhere'))
  assert.equal(gone.code, 0)
  assert.match(
    gone.stderr,
    /note: .*\/nowhere does not answer, so the configuration was not compared with its accounts/,
  )
})

test('issue 46 C15 ledger correct also succeeds if the figures for reports take long to delete', { skip }, async () => {
  const store = postgres.createDatabase('correct')
  assert.equal((await on('account create one --credit 5', store)).code, 0)
  // The credit was dated a day ahead. The sums of hours are deleted as slowly as those of many keys.
  postgres.run(
    `ALTER TABLE triwire.entries DISABLE TRIGGER USER; UPDATE triwire.entries SET posted_ms = posted_ms + 86400000;
     ALTER TABLE triwire.entries ENABLE TRIGGER USER; UPDATE triwire.balances SET posted_ms = posted_ms + 86400000;
     CREATE FUNCTION triwire.wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(6); RETURN NULL; END $$;
     CREATE TRIGGER wait BEFORE DELETE ON triwire.sums_h FOR EACH STATEMENT EXECUTE FUNCTION triwire.wait()`,
    'correct',
  )
  const { code, stdout, stderr } = await on(`ledger correct --yes --effective ${new Date().toISOString()}`, store)
  assert.deepEqual([code, stderr], [0, ''])
  assert.match(stdout, /^one, entry 1 /)
})
