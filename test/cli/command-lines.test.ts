import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { testFolder } from '../support/folder.ts'
import { openStore } from '../support/operator.ts'
import { runWarm } from './run.ts'

/*
 * What people type, and what they read (N-F18): command lines, in the order of the help, with their exit code and the stream
 * that says something. `S` stands for the store of the test, `K` for a whole key of it, `C` for a catalog.
 */

const folder = testFolder('lines')
const storePath = join(folder, 's.db')
// Accounts of one millisecond are listed by their ids, which are random.
let atMs = Date.now() - 1_000
const store = openStore(storePath, { nowMs: () => atMs++ })
const { id } = store.createAccount('acme', 5_000_000_000n)
store.createAccount('other')
const { key, id: keyId, prefix } = store.createKey('acme', { label: 'ci' })
const spare = store.createKey('acme')
store.close()
mkdirSync(join(folder, 'sub'))
writeFileSync(join(folder, 'notes.txt'), 'not a store')
writeFileSync(join(folder, 'notes.db'), 'not a store', { mode: 0o600 })
writeFileSync(join(folder, 'wide.db'), '', { mode: 0o644 })
writeFileSync(join(folder, 'broken.yaml'), 'listen: 8080\nlog: {level: loud}\n')
writeFileSync(join(folder, 'any.yaml'), 'listen: 127.0.0.1:0\nadmin_listen: 127.0.0.1:0\n')
writeFileSync(join(folder, 'list.json'), '{"models":["m"]}')
writeFileSync(
  join(folder, 'c.yaml'),
  `upstreams: { up: { base_url: "https://h.example", accounts: [{ name: a, key: k }] } }
catalog:
  pinned: 2026-11-01
  models: [{ id: m, wire: chat, upstream: up, max_output_tokens: 9, hosted_tools: refuse, prices: { input: "1", output: "2" } }]
`,
)

type Row = [line: string, code: number, told: RegExp]

const noSuchKey = `sk-tri-${'Q'.repeat(46)}`

/** What goes to stdout: exit code 0, and 1 where something was found. */
const done: Row[] = [
  ['-v', 0, /^\d+\.\d+\.\d+(-\w+)?\n$/],
  ['--version', 0, /^\d+\.\d+\.\d+(-\w+)?\n$/],
  ['-V', 0, /^\d+\.\d+\.\d+(-\w+)?\n$/],
  ['--help', 0, /^Usage: triwire \[options\] \[command\]\n/],
  ['-h', 0, /^Usage: triwire/],
  ['help', 0, /^Usage: triwire/],
  ['help key', 0, /^Usage: triwire key/],
  ['key --help', 0, /\n {2}revoke <key> /],
  ['key rotate --help', 0, /\(default: 24h\)/],
  ['key rotate --help', 0, /Global Options:\n(.*\n)* {2}--json/],
  ['doctor --help', 0, /\(default: 60s\)/],
  ['ledger totals --help', 0, /default: one\s+row\s+for\s+everything/],
  ['account list S', 0, /^id +name +state +balance\nacct_\w+ +acme +active +5\n/],
  ['S account list', 0, /^id +name/],
  ['account list S --json', 0, /^\[\{"id":"acct_\w+","name":"acme","state":"active","balance":"5","held":"0",/],
  ['account show acme S', 0, /^id +acct_\w+\nname +acme\n/],
  [`account show ${id} S`, 0, /\nbalance +5\n/],
  ['account create third --credit 0.000000001 S', 0, /\nbalance +0\.000000001\n/],
  ['account rename third fourth S', 0, /\nname +fourth\n/],
  ['account rename fourth fourth S', 0, /\nname +fourth\n/],
  ['account credit other 2 --reference r1 S', 0, /\nbalance +2\n/],
  ['account credit other -0.5 --reference r2 S', 0, /\nbalance +1\.5\n/],
  ['account suspend other S', 0, /\nstate +suspended\n/],
  ['account activate other S', 0, /\nstate +active\n/],
  [
    'key list acme S',
    0,
    /^id +prefix +label +account +budget +spent +rpm +models +person +labels +may_choose +expires +revoked +last_used\nkey_/,
  ],
  ['key create other --label laptop S', 0, /^sk-tri-\w{46}\n$/],
  ['key create other S --json', 0, /^\{"key":"sk-tri-\w+","id":"key_\w+","prefix":"sk-tri-\w{8}"\}\n$/],
  [`key rotate ${keyId} --grace 90s S`, 0, /^sk-tri-\w{46}\n$/],
  [`key revoke ${spare.key} S`, 0, /^key_\w+ is revoked\n$/],
  [`key revoke ${spare.prefix} S`, 0, /^key_\w+ is revoked\n$/],
  ['ledger list S', 0, /credit/],
  ['ledger list --account acme --limit 1 S --json', 0, /^\[\{"account":"acct_/],
  ['ledger list --key ci S --json', 0, /^\[\]\n$/],
  ['ledger list --since 2026-11-01 S', 0, /credit/],
  ['ledger list --until 2020-01-01 S --json', 0, /^\[\]\n$/],
  ['ledger totals S --json', 0, /^\[\{"requests":0,"billed":"0","credited":"6\.500000001",/],
  ['ledger totals --by account S', 0, /acme/],
  [
    'ledger margin --by account S',
    0,
    /^account +account_name +requests +billed +cost +margin +without_cost\n[\s\S]*\bacme +0 /,
  ],
  ['ledger verify S', 0, /^the ledger is right\nhead 1\/\S+\n$/],
  ['ledger export --csv S', 0, /^account,account_name,seq,kind/],
  ['ledger export S --json', 0, /^(\{"account":"acct_.*\}\n)+$/],
  ['reporting rezone UTC S', 0, /^the days of reports and budgets are those of UTC from now on\n$/],
  ['check', 0, /^the configuration is right: models 14, upstreams 0, store /],
  ['check C', 0, /^the configuration is right: models 1, upstreams 1, store /],
  ['check C --json', 0, /^\{"ok":true,"models":1,"upstreams":1,"store":"[^"]+","warnings":\[\],"proxies":\[\]\}\n$/],
  [
    'check --config broken.yaml --json',
    1,
    /^\{"ok":false,"problems":\[\{"path":"listen","line":1,"message":"listen must be host:port/,
  ],
  ['models C', 0, /^id +wire +upstream +input \/ 1M +output \/ 1M\nm +chat +up +1 +2\n$/],
  ['models C --json', 0, /^\[\{"id":"m",/],
  ['setup codex --url https://g.example --model m --key sk-tri-k', 0, /base_url = "https:\/\/g\.example\/v1"/],
  ['setup openai', 0, /new OpenAI\(/],
  ['completion bash', 0, /^# triwire completion for bash/],
  ['completion zsh', 0, /^#compdef triwire/],
  ['completion fish --json', 0, /^\{"shell":"fish","script":"/],
]

/** What goes to stderr, with nothing on stdout. */
const refused: Row[] = [
  ['frobnicate', 2, /^error: unknown command 'frobnicate'\nRun with --help to see what there is\.\n$/],
  ['acount list', 2, /^error: unknown command 'acount'\n\(Did you mean account\?\)\n/],
  ['account', 2, /^Usage: triwire account/],
  ['account lst', 2, /^error: unknown command 'lst'\n\(Did you mean list\?\)\n/],
  ['key revok x', 2, /Did you mean revoke\?/],
  ['--frob', 2, /^error: unknown option '--frob'\n/],
  ['account list --jsn', 2, /^error: unknown option '--jsn'\n\(Did you mean --json\?\)\n/],
  ['account list extra', 2, /^error: too many arguments for 'list'/],
  ['account list --store', 2, /^error: option '--store <place>' argument missing\n/],
  ['frobnicate --json', 2, /^\{"ok":false,"error":\{"code":"usage","message":"unknown command 'frobnicate'"\}\}\n$/],
  ['account --json', 2, /^\{"ok":false,"error":\{"code":"usage","message":"name a command: --help lists them"\}\}\n$/],
  ['key K', 2, /^error: unknown command 'sk-tri-\w{8}…'\n/],
  ['account list K', 2, /^error: too many arguments/],
  ['serve --listen 8080', 2, /^triwire: --listen must be host:port, such as 127\.0\.0\.1:8080 or \[::1\]:8080\n$/],
  [
    'serve --listen 8080 --json',
    2,
    /^\{"ok":false,"error":\{"code":"usage","message":"--listen must be host:port[^"]+","problems":\[/,
  ],
  ['serve --admin-listen 127.0.0.1', 2, /^triwire: --admin-listen must be host:port/],
  ['serve --listen 127.0.0.1:99999', 2, /^triwire: --listen must be host:port/],
  ['serve --port 80', 2, /^error: unknown option '--port'/],
  ['serve --workers 0', 2, /It is a number from 1 to 64/],
  ['serve --workers many', 2, /It is a number from 1 to 64/],
  [
    'serve --config nowhere.yaml',
    1,
    /^triwire: cannot read the configuration file \S+nowhere\.yaml \(ENOENT\); check --config and TRIWIRE_CONFIG\n$/,
  ],
  [
    'serve --config broken.yaml',
    1,
    /^triwire: \S+broken\.yaml:1: listen must be host:port.*\n\S+broken\.yaml:2: log\.level must be one of: info, error\n$/,
  ],
  [
    'account list --store sub',
    1,
    /^triwire: \S+sub is a folder: name a file in it with --store, such as \S+sub\/triwire\.db\n$/,
  ],
  [
    'check --store sub',
    1,
    /^triwire: \S+sub is a folder: name a file in it with --store, such as \S+sub\/triwire\.db\n$/,
  ],
  ['check --store notes.db', 1, /^triwire: \S+notes\.db is not a triwire store, or is damaged/],
  ['check --store wide.db', 1, /can be read by other users \(mode 0644\): run chmod 600/],
  [
    'check --store notes.txt/x.db',
    1,
    /^triwire: \S+notes\.txt\/x\.db cannot be created: \S+notes\.txt is a file; choose another place with --store\n$/,
  ],
  ['account list --store postgres:/u:hunter2@127.0.0.1:1/d', 1, /^(?!.*hunter2)/],
  ['doctor --key k --base-url http://u:hunter2@h', 2, /^(?!.*hunter2)/],
  ['setup sk-ant-api03-abcdefghijklmnop1234567', 2, /there is no client 'sk-…'/],
  [
    'account list --store /dev/null',
    1,
    /^triwire: \/dev\/null is not a regular file: name another one with --store\n$/,
  ],
  [
    'account list --store gone.db',
    1,
    /^triwire: There is no store at \S+gone\.db: name the right one with --store, or create an account\n$/,
  ],
  ['account list --store notes.txt', 1, /can be read by other users \(mode 0644\): run chmod 600/],
  ['account list --store notes.db', 1, /is not a triwire store, or is damaged/],
  ['account list --store wide.db', 1, /can be read by other users \(mode 0644\): run chmod 600/],
  ['account list --store notes.txt/x.db', 1, /There is no store at/],
  ['account list --config broken.yaml', 1, /broken\.yaml:1: listen must be host:port/],
  ['account create', 2, /^error: missing required argument 'name'\n/],
  ['account create acme S', 1, /^triwire: There is already an account named "acme": choose another name\n$/],
  [
    'account create x --credit 1,5 S',
    2,
    /^error: option '--credit <credits>' argument '1,5' is invalid\. .*write it like 12 or 12\.5/,
  ],
  ['account create x --credit 1e3 S', 2, /write it like 12 or 12\.5/],
  ['account create x --credit 1,000 S', 2, /write it like 12 or 12\.5/],
  ['account create x --credit -5 S', 2, /An account cannot start below zero\./],
  ['account create x --credit 0.0000000001 S', 2, /is invalid\./],
  ['account create x --credit $5 S', 2, /is invalid\./],
  ['account list --search= S', 2, /argument '' is invalid\. must not be empty$/m],
  [`key list --search ${'x'.repeat(101)} S`, 2, /is invalid\. must have at most 100 characters$/m],
  ['account show nobody S', 1, /^triwire: There is no account "nobody": see triwire account list\n$/],
  [
    'account show nobody S --json',
    1,
    /^\{"ok":false,"error":\{"code":"failed","message":"There is no account \\"nobody\\": see triwire account list"\}\}\n$/,
  ],
  ['account rename acme other S', 1, /^triwire: There is already an account named "other": choose another name\n$/],
  ['account rename nobody x S', 1, /There is no account "nobody"/],
  ['account rename acme', 2, /^error: missing required argument 'name'/],
  ['account credit acme 5 S', 2, /^error: required option '--reference <text>' not specified\n/],
  ['account credit acme five --reference r S', 2, /write it like 12 or 12\.5/],
  [
    'account credit acme 5 --reference r1 S',
    1,
    /^triwire: Reference "r1" was used for another account or amount: choose another one\n$/,
  ],
  ['account credit acme 5 --reference return:x S', 1, /are the ledger's own: choose another one/],
  ['account credit acme 99999999999 --reference big S', 2, /is too large: the most is 9223372036\.854775807 credits/],
  ['account credit acme 9223372036 --reference big S', 1, /The account cannot hold so much: credit a smaller amount/],
  ['account suspend nobody S', 1, /There is no account "nobody"/],
  ['key create nobody S', 1, /There is no account "nobody"/],
  ['key create acme --label sk-tri-abcdefgh S', 1, /A label is not secret: it must not hold a key/],
  ['key list nobody S', 1, /There is no account "nobody"/],
  ['key revoke nothing S', 1, /^triwire: There is no key "nothing": see triwire key list\n$/],
  [`key revoke ${noSuchKey} S`, 1, /^triwire: There is no key "sk-tri-QQQQQQQQ…?": see triwire key list\n$/],
  [`key rotate ${noSuchKey}x S`, 1, /^triwire: There is no key "sk-tri-QQQQQQQQ…": see triwire key list\n$/],
  [`key rotate ${spare.id} S`, 1, /^triwire: Key key_\w+ is revoked: make a new one with triwire key create\n$/],
  ['key rotate x --grace soon S', 2, /Write it like 90s, 30m, 24h or 7d\./],
  ['key rotate x --grace 24 S', 2, /Write it like 90s/],
  ['ledger list --limit 010 S', 2, /It is a number from 1 to 9999999\./],
  ['key rotate x --grace 024h S', 2, /Write it like 90s, 30m, 24h or 7d\./],
  ['simulator --port 08080', 2, /It is a number from 0 to 65535\./],
  ['price m --tokens 010', 2, /It is a whole number\./],
  ['ledger list --limit 0 S', 2, /It is a number from 1 to 9999999\./],
  ['ledger list --since yesterday S', 2, /Write a day like 2026-11-21 or a time like/],
  ['ledger list --since 2026-02-30 S', 2, /There is no such day or time\./],
  ['ledger list --model nope S', 1, /The ledger has no entry of "nope"/],
  ['ledger list --account nobody S', 1, /There is no account "nobody"/],
  ['ledger totals --by week S', 2, /Write any of day, model, account, key, upstream, with commas between them\./],
  [
    'ledger show req_none S',
    1,
    /^triwire: There is no debit of request req_none: refused and failed requests have none\n$/,
  ],
  [
    'key set sk-tri-abc S',
    2,
    /^error: say what is to be changed: --label, --budget, --rpm, --models, --person, --labels, --may-choose, --external-id, --metadata, --expires\n/,
  ],
  ['ledger verify --against x S', 2, /is invalid\./],
  [
    'ledger verify --log gone.log S',
    1,
    /^triwire: cannot read gone\.log \(ENOENT\): name files of the log with --log\n$/,
  ],
  ['ledger export S', 2, /^error: say how: with --csv, or with --json \(one entry on each line\)\n/],
  ['ledger export --csv --json S', 2, /^\{"ok":false,"error":\{"code":"usage","message":"say how: with --csv/],
  ['check --config broken.yaml', 1, /^triwire: \S+broken\.yaml:1: listen must be/],
  ['check --every-model', 2, /^error: --every-model is for --online\n/],
  ['check --online --timeout 5', 2, /Write it like 500ms, 30s or 2m\./],
  ['setup telnet', 2, /^error: there is no client 'telnet': name one of openai-node, /],
  ['setup telnet --json', 2, /^\{"ok":false,"error":\{"code":"usage","message":"there is no client 'telnet'/],
  ['setup codex --wire chat', 2, /^error: codex speaks responses and not chat\n$/],
  ['setup codex --wire soap', 2, /Allowed choices are messages, chat, responses\./],
  [
    'setup codex --url nope --write --yes',
    2,
    /is invalid\. It must be the address of a gateway, such as https:\/\/gateway\.example/,
  ],
  ['setup codex --url localhost:8080', 2, /It must be the address of a gateway, such as https:/],
  ['setup codex --url gateway.example/v1', 2, /It must be the address of a gateway, such as https:/],
  ['setup codex --url ftp://gateway.example', 2, /It must be the address of a gateway, such as https:/],
  ['setup codex --url https://', 2, /It must be the address of a gateway, such as https:/],
  ['setup codex --key sk-tri-a\tb', 2, /^error: the value of --key is not a key: a key is one word without quotes\n$/],
  ['setup codex --model nope', 1, /There is no model "nope"/],
  ['doctor', 2, /^error: a key is needed: give --key or set TRIWIRE_KEY/],
  ['doctor --key x --base-url localhost', 2, /Write it like http:\/\/127\.0\.0\.1:8080\./],
  [
    'doctor --key x --base-url http://no-such-host.invalid',
    1,
    /cannot be reached: there is no such host \(\w+\)\. Start the gateway, or name its address with --base-url\n$/,
  ],
  [
    'doctor --key x --config any.yaml',
    1,
    /The configuration lets the gateway choose its port: name it with --base-url\n$/,
  ],
  ['upstreams --config any.yaml', 1, /lets the server choose its admin port: name it with --admin-listen\n$/],
  ['explain', 2, /^error: missing required argument 'request-id'/],
  [
    'explain a/b',
    2,
    /'a\/b' is invalid for argument 'request-id'. is no request id: it stands in x-request-id of the answer/,
  ],
  ['upstreams --admin-listen 127.0.0.1:1', 1, /^triwire: no server answers on http:\/\/127\.0\.0\.1:1/],
  ['upstreams --admin-listen 1', 2, /^triwire: --admin-listen must be host:port/],
  [
    'reload S',
    1,
    /^triwire: no server runs on the store \S+s\.db: name its store with --store, or its configuration with --config\n$/,
  ],
  ['reload --store gone.db', 1, /no server runs on the store/],
  ['simulator --port 70000', 2, /It is a number from 0 to 65535\./],
  [
    'simulator --scripts gone.yaml',
    1,
    /^triwire: cannot read gone\.yaml \(ENOENT\): name a file of scripts with --scripts\n$/,
  ],
  ['simulator --scripts /', 1, /^triwire: cannot read \/ \(EISDIR\): name a file of scripts with --scripts\n$/],
  [
    'simulator --host no-such-host.invalid',
    1,
    /^triwire: cannot listen on no-such-host\.invalid:0: there is no such host: choose another --host\n$/,
  ],
  ['completion', 2, /^error: missing required argument 'shell'/],
  ['completion tcsh', 2, /Allowed choices are bash, zsh, fish\./],
  ['catalog', 2, /^Usage: triwire catalog/],
  ['catalog lst', 2, /^error: unknown command 'lst'\n/],
  ['catalog add nobody', 2, /^error: there is no preset 'nobody': name one of anthropic, /],
  ['catalog add openai nope', 2, /^error: the preset openai has no model 'nope': it has gpt-/],
  ['catalog add openai --price input=3', 2, /^error: --price says what one model costs: name that model\n$/],
  [
    'catalog add openai gpt-6-luna --price 3',
    2,
    /^error: option '--price <kind=credits>' argument '3' is invalid\. Write a kind/,
  ],
  [
    'catalog import list.json',
    1,
    /^triwire: list\.json is neither LiteLLM's price file .* nor models\.dev's \(api\.json\)\n$/,
  ],
  ['import', 2, /^Usage: triwire import/],
  ['import litellm', 2, /^error: missing required argument 'config'\n/],
  ['import litellm gone.yaml', 1, /cannot read gone\.yaml \(ENOENT\): name LiteLLM's configuration\n$/],
  ['catalog import', 2, /^error: missing required argument 'file'\n/],
  [
    'catalog import gone.json',
    1,
    /^triwire: cannot read gone\.json \(ENOENT\): name LiteLLM's or models\.dev's price file\n$/,
  ],
  ['catalog import notes.txt', 1, /^triwire: notes\.txt is not JSON: name LiteLLM's or models\.dev's price file\n$/],
  ['catalog import x.json --wire soap', 2, /Allowed choices are messages, chat, responses\./],
]

/** What writes files of a person's, or asks before it does: with `--json` in the last test. */
const catalog: Row[] = [
  ['catalog add', 0, /^preset +id +window +input \/ 1M +output \/ 1M +as of\nanthropic /],
  ['catalog add openai --config new.yaml --dry-run', 0, /^A new file \S+new\.yaml:\n\n\+ catalog:\n/],
]

async function ask(line: string) {
  const args = line
    .split(' ')
    .flatMap((word) => ({ S: ['--store', storePath], C: ['--config', 'c.yaml'], K: [key] })[word] ?? [word])
  return runWarm(args, { cwd: folder, env: { TRIWIRE_KEY: '', TRIWIRE_STORE: '', TRIWIRE_CONFIG: '' } })
}

test('N-F18 a valid command prints its result to stdout, and its notes to stderr', async () => {
  for (const [line, code, told] of [...done, ...catalog]) {
    const { code: exit, stdout, stderr } = await ask(line)
    assert.equal(exit, code, `${line}: ${stderr}`)
    assert.match(stdout, told, line)
    assert.doesNotMatch(stderr, /\n\s+at /, line)
  }
})

test('N-F18 an invalid or impossible command is reported on stderr with its cure, without a stack trace or a key', async () => {
  for (const [line, code, told] of refused) {
    const { code: exit, stdout, stderr } = await ask(line)
    assert.deepEqual([exit, stdout], [code, ''], `${line}: ${stderr}`)
    assert.match(stderr, told, line)
    assert.doesNotMatch(stderr, /\n\s+at /, line)
    assert.equal(stderr.includes(key) || stderr.includes(noSuchKey), false, line)
  }
})

const isJson = (text: string) => text.split('\n').every((one) => one === '' || isJsonLine(one))
function isJsonLine(line: string): boolean {
  try {
    return typeof JSON.parse(line) === 'object'
  } catch {
    return false
  }
}

test('N-F18 with --json every command prints only JSON, also errors and notes, and has the same exit code', async () => {
  // What is shown for people only, and what would be done a second time.
  const isOther = (line: string) => /--json|--csv|^(?:-|help)|--help|create|revoke|rotate|rename/.test(line)
  for (const [line, code] of [...done, ...catalog, ...refused].filter(([line]) => !isOther(line))) {
    const { code: exit, stdout, stderr } = await ask(`--json ${line}`)
    // Without it export does not know how.
    if (line !== 'ledger export S') assert.equal(exit, code, `${line}: ${stderr}`)
    assert.ok(isJson(stdout), `${line}: ${stdout}`)
    assert.ok(isJson(stderr), `${line}: ${stderr}`)
  }
})

test('N-F18 the tables have at least 110 command lines', () => {
  assert.ok(done.length + refused.length >= 110, `${done.length} and ${refused.length}`)
  assert.ok(prefix)
})

test('NEW-8 a key for a model that the configuration lacks is made, with a note and a suggestion', async () => {
  const notes = async (line: string) => (await runWarm(line.split(' '), { cwd: folder })).stderr
  const base = 'key create acme --config c.yaml --store s.db --models'
  assert.equal(await notes(`${base} m`), '')
  assert.equal(await notes(`${base} m*`), '')
  assert.equal(await notes(`${base} n,m`), 'note: no model of this configuration is called n: did you mean m?\n')
  assert.equal(
    await notes(`${base} quite-another-*`),
    'note: no model of this configuration is called quite-another-*, and the key cannot ask for it\n',
  )
  assert.match(
    await notes(`key set ${keyId} --config c.yaml --store s.db --models nosuch-model`),
    /^note: no model of this configuration is called nosuch-model/,
  )
  assert.equal(await notes('key create acme --config broken.yaml --store s.db --models x'), '')
})
