import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import test from 'node:test'
import { detailKinds } from '../../src/accounts/chain.ts'
import { digestKey } from '../../src/accounts/keys.ts'
import { createDebitRow, createPath, open, until } from '../store/fixtures.ts'
import { runTriwire } from '../support/child.ts'
import { testFolder } from '../support/folder.ts'
import { openStore } from '../support/operator.ts'
import { run, runWarm } from './run.ts'

test('an account from its creation to its suspension, as JSON', async (t) => {
  const store = ['--store', createPath(t), '--json']
  const made = await run(['account', 'create', 'one', '--credit', '12.5', ...store])
  const { id } = made.json
  const { budget, rpm, warn, grant, plan, external_id, metadata, ...own } = made.json as Record<string, unknown>
  assert.deepEqual(own, { id, name: 'one', state: 'active', balance: '12.5', held: '0' })
  assert.deepEqual([budget, rpm, warn, grant, plan, external_id, metadata], Array(7).fill(null))
  const corrected = await runWarm([...store, 'account', 'credit', 'one', '-0.000000001', '--reference', 'correction 1'])
  assert.equal(corrected.json.balance, '12.499999999')
  assert.equal((await runWarm(['account', 'suspend', id!, ...store])).json.state, 'suspended')
  assert.equal((await runWarm(['account', 'activate', 'one', ...store])).json.state, 'active')
  const { key, prefix, id: keyId } = (await run(['key', 'create', 'one', ...store])).json
  assert.equal(key?.slice(0, 15), prefix)
  const [listed] = (await runWarm(['key', 'list', 'one', ...store])).json
  assert.deepEqual([listed?.id, listed?.account, listed?.revoked], [keyId, id, null])
  for (const [typed, label] of [
    ['ci', 'ci'],
    ['none', null],
  ] as const)
    assert.equal((await runWarm(['key', 'set', keyId!, '--label', typed, ...store])).json['label'], label)
  const rotated = await runWarm(['key', 'rotate', keyId!, '--grace', '1h', ...store])
  assert.notEqual(rotated.json.key, key)
  assert.match((await runWarm(['key', 'revoke', prefix!, ...store])).json.revoked!, /^\d{4}-\d\d-\d\dT/)
  const { head, ...verdict } = (await run(['ledger', 'verify', ...store])).json as unknown as Record<string, unknown>
  assert.deepEqual(verdict, { ok: true, findings: [] })
  assert.match(String(head), /^1[/]/)
})

test('NEW-8 a change that an argument names needs no option, and a change without any is refused', async (t) => {
  const store = ['--store', createPath(t), '--json']
  await runWarm(['account', 'create', 'one', ...store])
  const given = (await runWarm(['account', 'grant', 'one', '50/month', ...store])).json as Record<string, unknown>
  const { last: _, ...grant } = given['grant'] as Record<string, unknown>
  assert.deepEqual([grant, given['balance']], [{ credits: '50', lapse: false }, '50'])
  assert.equal((await runWarm(['account', 'rename', 'one', 'two', ...store])).json['name'], 'two')
  assert.equal((await runWarm(['account', 'grant', 'two', 'none', ...store])).json['grant'], null)
  for (const command of ['account set two', 'key set key_1', 'person set ada']) {
    const refused = await runWarm([...command.split(' '), ...store])
    assert.deepEqual([refused.code, /say what is to be changed: --/.test(refused.stderr)], [2, true], command)
  }
})

test('C8 two concurrent processes with one reference post one credit', async (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  store.createAccount('one')
  const command = ['account', 'credit', 'one', '5', '--reference', 'invoice 1', '--store', path]
  const runs = await Promise.all([run(command), run(command)])
  assert.deepEqual(runs.map(({ code, stderr }) => [code, stderr]).sort(), [
    [0, ''],
    [0, 'note: it was booked before with this reference: nothing was added now\n'],
  ])
  assert.equal(store.findAccount('one').balanceNanos, 5_000_000_000n)
  assert.equal(store.listEntries({ limit: 9 }).length, 1)
  const other = await runWarm(['account', 'credit', 'one', '6', '--reference', 'invoice 1', '--store', path])
  assert.deepEqual([other.code, other.stdout], [1, ''])
  assert.match(
    other.stderr,
    /^triwire: Reference "invoice 1" was used for another account or amount: choose another one\n$/,
  )
})

test('F-C45 a change by the command line takes effect in a running server', async (t) => {
  const path = createPath(t)
  const { directory, balances } = await open(t, path, { pollMs: 200 })
  const { id } = (await runWarm(['account', 'create', 'one', '--credit', '1', '--store', path, '--json'])).json
  const { key, id: keyId } = (await runWarm(['key', 'create', 'one', '--store', path, '--json'])).json
  const digest = digestKey(key!)
  await until(() => directory.findKnownKey(digest) !== undefined)
  assert.equal(balances.get(id!)?.balanceNanos, 1_000_000_000n)
  await runWarm(['key', 'revoke', keyId!, '--store', path])
  await until(() => directory.findKnownKey(digest) === undefined)
})

test('the ledger is shown, exported and compared with the access log', async (t) => {
  const path = createPath(t)
  const store = openStore(path, { nowMs: () => 1_700_000_000_500 })
  t.after(() => store.close())
  const { id } = store.createAccount('one')
  store.credit('one', 1_000_000_000n, 'with, comma and "quotes"')
  store.postDebits([createDebitRow('req_1', id)])
  const shown = await runWarm(['ledger', 'show', 'req_1', '--store', path, '--json'])
  const details = Object.fromEntries(Object.keys(detailKinds).map((column) => [column, null]))
  assert.deepEqual(shown.json as unknown, {
    ...details,
    request_id: 'req_1',
    account: id,
    account_name: 'one',
    key_id: null,
    key_prefix: null,
    key_label: null,
    client_wire: 'chat',
    model: 'm-large',
    model_wire: 'messages',
    upstream: 'm-upstream',
    upstream_account: 'm-one',
    amount: '0.00063',
    usage: {
      input_tokens: 100,
      cache_read_tokens: 10,
      cache_write_tokens: 6,
      cache_write_1h_tokens: 2,
      output_tokens: 20,
      reasoning_tokens: 5,
    },
    priced_calls: 0,
    usage_source: 'final',
    outcome: 'ok',
    created: '2023-11-14T22:13:20.000Z',
    posted: '2023-11-14T22:13:20.500Z',
  })
  const csv = (await run(['ledger', 'export', '--csv', '--store', path])).stdout.split('\r\n')
  assert.equal(csv.length, 4)
  assert.match(csv[1]!, /,one,1,credit,1,1,"with, comma and ""quotes""",,/)
  assert.match(
    csv[2]!,
    /,2,debit,0.00063,0.99937,,req_1,,,,chat,m-large,messages,m-upstream,m-one,100,10,6,2,20,5,0,final,v1,ok,2023-11-14T22:13:20.000Z,/,
  )
  const log = join(dirname(path), 'access.log')
  writeFileSync(log, '{"id":"req_1","cost":"0.00063","outcome":"ok"}\n{"id":"req_0","outcome":"refused"}\ntorn {')
  assert.equal((await runWarm(['ledger', 'verify', '--log', log, '--store', path])).code, 0)
  writeFileSync(log, '{"id":"req_1","cost":"0.0006","outcome":"ok"}\n')
  const wrong = await runWarm(['ledger', 'verify', '--log', log, '--store', path])
  assert.deepEqual(wrong, {
    code: 1,
    stdout: 'request req_1: the log says 600000 ok, the ledger 630000 ok\n',
    stderr: '',
    json: [],
  })
})

test('exit codes: 1 for a failure, 2 for an invalid command line, and one line on stderr with the cure', async (t) => {
  const path = createPath(t)
  const wrong: [args: string[], code: number, stderr: RegExp][] = [
    [['account', 'list', '--store', path], 1, /^triwire: There is no store at .*--store, or create an account\n$/],
    [['account', 'create', 'one', '--credit', '1,5', '--store', path], 2, /write it like 12 or 12\.5/],
    [['account', 'create', 'one', '--credit', '-5', '--store', path], 2, /cannot start below zero/],
    [['account', 'credit', 'one', '5', '--store', path], 2, /required option '--reference <text>'/],
    [['key', 'rotate', 'x', '--grace', 'soon', '--store', path], 2, /Write it like 90s, 30m, 24h or 7d/],
    [
      ['account', 'list', '--store', 'mysql://h/d'],
      2,
      /^triwire: --store must be the path of a file, or a URL of PostgreSQL/,
    ],
    [['frobnicate'], 2, /unknown command 'frobnicate'/],
    [['setup', 'telnet'], 2, /name one of openai-node/],
  ]
  for (const [index, [args, exit, words]] of wrong.entries()) {
    const { code, stderr, stdout } = await (index < 1 ? run : runWarm)(args)
    assert.deepEqual([code, stdout], [exit, ''], stderr)
    assert.match(stderr, words)
  }
  const help = await run(['--help'])
  assert.deepEqual([help.code, help.stderr], [0, ''])
})

test('X4 the option takes precedence over the variable', async (t) => {
  const [flag, variable] = [createPath(t), createPath(t)]
  const env = { TRIWIRE_STORE: variable }
  await runWarm(['account', 'create', 'one', '--store', flag], { env })
  await runWarm(['account', 'create', 'two'], { env })
  assert.match(readFileSync(flag, 'latin1'), /one/)
  const listed = await runWarm(['account', 'list', '--json'], { env })
  assert.deepEqual(
    listed.json.map(({ name }) => name),
    ['two'],
  )
})

test('setup prints the settings that each client needs, and the features that must be switched off', async () => {
  const cwd = testFolder('cli')
  const setup = async (how: typeof run, ...args: string[]) =>
    (await how(['setup', ...args, '--key', 'sk-tri-k'], { cwd })).stdout
  const codex = await setup(run, 'codex', '--url', 'https://gateway.example/v1/', '--model', 'reasoner')
  const aiSdk = await setup(runWarm, 'vercel-ai-sdk', '--model', 'sim-responses')
  const claude = await setup(runWarm, 'claude-code', '--model', 'sim-chat')
  const node = await setup(runWarm, 'openai-node')
  assert.match(codex, /^base_url = "https:\/\/gateway\.example\/v1"$/m)
  assert.match(codex, /^web_search = "disabled"$/m)
  assert.match(aiSdk, /providerOptions: \{ openai: \{ store: false \} \}/)
  assert.match(claude, /^ {4}"ANTHROPIC_BASE_URL": "http:\/\/127\.0\.0\.1:8080",$/m)
  assert.match(claude, /^ {4}"ANTHROPIC_MODEL": "sim-chat",$/m)
  assert.match(claude, /^export ANTHROPIC_AUTH_TOKEN='sk-tri-k'$/m)
  assert.match(node, /baseURL: 'http:\/\/127\.0\.0\.1:8080\/v1', apiKey: 'sk-tri-k'/)
})

test('setup --write merges into a JSON file, keeps a backup, and changes no file unasked', async () => {
  const cwd = testFolder('cli')
  const setup = (...args: string[]) => runWarm(['setup', ...args, '--write'], { cwd, env: { HOME: cwd } })
  const file = join(cwd, '.claude', 'settings.json')
  const read = (path = file) => JSON.parse(readFileSync(path, 'utf8'))

  assert.equal((await setup('claude-code')).code, 0)
  assert.equal(read().env.ANTHROPIC_MODEL, 'sim-messages')
  assert.match((await setup('claude-code')).stderr, /has these settings already/)

  const theirs = { env: { MINE: '1', ANTHROPIC_MODEL: 'other' }, theme: 'dark' }
  writeFileSync(file, JSON.stringify(theirs))
  const unasked = await setup('claude-code')
  assert.equal(unasked.code, 1)
  assert.match(unasked.stderr, /run with --yes/)
  assert.deepEqual(read(), theirs)

  assert.equal((await setup('claude-code', '--yes')).code, 0)
  assert.equal(read().theme, 'dark')
  assert.equal(read().env.MINE, '1')
  assert.equal(read().env.ANTHROPIC_MODEL, 'sim-messages')
  assert.deepEqual(read(`${file}.before-triwire`), theirs)

  writeFileSync(file, '{ // mine\n}')
  assert.match((await setup('claude-code', '--yes')).stderr, /^note: Wrote /m)
  assert.match(readFileSync(file, 'utf8'), /\/\/ mine\n\}/)
  assert.equal((await setup('copilot', '--yes')).code, 2)
})

test('setup refuses a wire that the client does not speak, and uses that of the model if the client speaks it', async () => {
  const cwd = testFolder('cli')
  const setup = (...args: string[]) => runWarm(['setup', ...args, '--json'], { cwd })
  assert.match((await setup('codex', '--wire', 'chat')).stderr, /codex speaks responses and not chat/)
  assert.equal((await setup('pi', '--model', 'sim-messages')).json['wire'], 'messages')
  assert.equal((await setup('pi', '--model', 'sim-messages', '--wire', 'chat')).json['wire'], 'chat')
  assert.equal((await setup('codex', '--model', 'sim-chat')).json['wire'], 'responses')
})

test('A2 T5 U12 check reports cache marks without a price for writing, and private servers that would fetch media', async () => {
  const cwd = testFolder('cli')
  const model = (id: string, upstream: string, more: string, wire = 'messages') =>
    `    - {id: ${id}, wire: ${wire}, upstream: ${upstream}, max_output_tokens: 9, prices: {input: "3", output: "15"${more}`
  const upstream = (base: string) => `{base_url: "${base}", accounts: [{name: a, key: k}]}`
  const lines = [
    `upstreams: {far: ${upstream('https://models.example')}, near: ${upstream('http://10.0.0.7:8000')}, named: ${upstream('http://gpu:8000')}}`,
    'catalog:',
    '  pinned: 2026-11-01',
    '  models:',
    model('unpriced', 'far', '}}'),
    model('priced', 'far', ', cache_write: "3.75"}}'),
    model('unmarked', 'far', '}, profile: {auto_cache: off}}'),
    model('near', 'near', '}}', 'chat'),
    model('named', 'named', '}}', 'chat'),
    model('said', 'near', '}, remote_media: pass}', 'chat'),
    model('profiled', 'near', '}, profile: vllm}', 'chat'),
  ]
  writeFileSync(join(cwd, 'triwire.yaml'), lines.join('\n'))
  const [checked, said] = [await run(['check', '--json'], { cwd }), await runWarm(['check'], { cwd })]
  assert.deepEqual([checked.code, said.code, checked.stderr], [0, 0, ''])
  const warnings = checked.json['warnings'] as unknown as { path: string; line: number; message: string }[]
  assert.deepEqual(
    warnings.map(({ path, line }) => [path, line]),
    [
      ['catalog.models[0].prices', 5],
      ['catalog.models[3]', 8],
      ['catalog.models[4]', 9],
      ['catalog.models[0]', 5],
    ],
  )
  assert.match(said.stderr, /warning: line 5: catalog\.models\[0\]\.prices has no `cache_write`/)
  assert.match(said.stderr, /warning: line 8: catalog\.models\[3\] has an upstream in a private network/)
})

test('X4 check says that a database does not answer, with --json in JSON', async () => {
  const cwd = testFolder('cli')
  const store = 'postgres://127.0.0.1:1/nowhere'
  const seal_key = Buffer.from('a seal key of thirty-two bytes..').toString('base64')
  writeFileSync(join(cwd, 'triwire.yaml'), JSON.stringify({ store, state_dir: './state', seal_key }))
  const told = `${store} does not answer, so the configuration was not compared with its accounts`
  assert.ok((await runWarm(['check'], { cwd })).stderr.includes(`note: ${told}\n`))
  assert.equal((await runWarm(['check', '--json'], { cwd })).stderr, `${JSON.stringify({ note: told })}\n`)
})

test('a mistake in the configuration is reported line by line, and does not prevent commands on the store', async () => {
  const cwd = testFolder('cli')
  writeFileSync(join(cwd, 'triwire.yaml'), 'listen: 127.0.0.1:8080\nunknown_key: 1\n')
  const checked = await runWarm(['check'], { cwd })
  assert.equal(checked.code, 1)
  assert.match(checked.stderr, /:2: .*unknown_key/)
  assert.equal((await runWarm(['account', 'create', 'one', '--store', 'a.db'], { cwd })).code, 0)
})

test('X4 commands on the store do not need the upstream keys, which are set on the server', async () => {
  const cwd = testFolder('cli')
  const accounts = `[{name: main, key: "\${NO_SUCH_KEY}"}]`
  writeFileSync(
    join(cwd, 'triwire.yaml'),
    `store: ./a.db\nupstreams: {own: {base_url: "http://h", accounts: ${accounts}}}\n`,
  )
  assert.equal((await runWarm(['account', 'create', 'one'], { cwd })).code, 0)
  assert.equal((await runWarm(['models'], { cwd })).code, 0)
  assert.doesNotMatch((await runWarm(['status'], { cwd })).stderr, /NO_SUCH_KEY/)
  const checked = await runWarm(['check'], { cwd })
  assert.match(checked.stderr, /needs the environment variable NO_SUCH_KEY, which is not set/)
  writeFileSync(join(cwd, 'triwire.yaml'), `store: "\${NO_SUCH_STORE}"\n`)
  const nowhere = await runWarm(['account', 'create', 'one'], { cwd })
  assert.match(nowhere.stderr, /store needs the environment variable NO_SUCH_STORE/)
})

test('T7 X4 store copy names the seal_key of the configuration, although the upstream keys are not set', async () => {
  const cwd = testFolder('cli')
  const accounts = `[{name: main, key: "\${NO_SUCH_KEY}"}]`
  const seal = Buffer.from('a seal key of thirty-two bytes..').toString('base64')
  writeFileSync(
    join(cwd, 'triwire.yaml'),
    `store: ./a.db\nseal_key: ${seal}\nupstreams: {own: {base_url: "http://h", accounts: ${accounts}}}\n`,
  )
  assert.equal((await runWarm(['account', 'create', 'one'], { cwd })).code, 0)
  const copied = await run(['store', 'copy', '--to', 'b.db'], { cwd })
  assert.equal(copied.code, 0, copied.stderr)
  assert.match(
    copied.stdout,
    /^next: start the server with store: \S+b\.db, and the seal_key of your configuration, as it is$/m,
  )
})

test('issue 46 law 9 a statement keeps seller and currency, so it is refused while the configuration has a mistake', async () => {
  const cwd = testFolder('cli')
  const store = ['--store', 'a.db']
  const write = (text: string) => writeFileSync(join(cwd, 'triwire.yaml'), text)
  assert.equal((await runWarm(['account', 'create', 'one', ...store], { cwd })).code, 0)
  const show = () => runWarm(['statement', 'one', '2025-01', '--json', ...store], { cwd })
  write('credits: { name: EUR, seller: Example Ltd. }\nno_such_key: 1\n')
  const refused = await show()
  assert.notEqual(refused.code, 0)
  assert.match(refused.stderr, /no_such_key is not a known key/)
  write('credits: { name: EUR, seller: Example Ltd. }\n')
  const { currency, seller } = (await show()).json
  assert.deepEqual([currency, seller], ['EUR', 'Example Ltd.'])
})

test('X4 labels are removed while the configuration has a mistake, and added only without one', async () => {
  const cwd = testFolder('cli')
  const store = ['--store', 'a.db', '--json']
  assert.equal((await runWarm(['account', 'create', 'one', ...store], { cwd })).code, 0)
  const { id } = (await runWarm(['key', 'create', 'one', ...store], { cwd })).json
  writeFileSync(join(cwd, 'triwire.yaml'), 'labels: { team: [a] }\nno_such_key: 1\n')
  const set = (labels: string) =>
    runWarm(['key', 'set', id!, '--labels', labels, '--may-choose', 'none', ...store], { cwd })
  assert.match((await set('team=a')).stderr, /no_such_key is not a known key/)
  const removed = await set('none')
  assert.equal(removed.code, 0, removed.stderr)
})

test('X8 a line without a command starts the gateway, whatever its options; an unknown word is reported as a typing error', async (t) => {
  const flags = ['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0']
  const gateway = runTriwire(t, ['--store', createPath(t), ...flags], testFolder('no-command'))
  await gateway.said(/triwire listens on http.*\n(?:.*\n)+\s+sk-tri-/)
  assert.equal(await gateway.stop('SIGINT'), 0)
  const mistyped = await run(['acount'])
  assert.deepEqual([mistyped.code, mistyped.stdout], [2, ''])
  assert.match(mistyped.stderr, /unknown command 'acount'\n\(Did you mean account\?\)/)
})
