import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import test from 'node:test'
import { testFolder } from '../support/folder.ts'
import { within } from '../support/waiting.ts'
import { completion, done, reason, text, usage } from '../translation/upstreams.ts'
import { type Run, run, runWarm } from './run.ts'

/* `translate`, as it is typed: what goes to which stream, and with which exit code. What it shows is tried in test/process. */

const folder = testFolder('translate')
const work = join(folder, 'work')
mkdirSync(work)

const file = (name: string, content: string | Buffer) => {
  writeFileSync(join(work, name), content)
  return name
}

const question = { model: 'talker', max_tokens: 50, messages: [{ role: 'user', content: 'Hi' }] }
file('request.json', JSON.stringify(question))
file('other.json', JSON.stringify({ ...question, model: 'nobody' }))
file('answer.json', completion({ content: 'Hello' }))
const stream =
  text('Hello') + reason('stop') + usage({ prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 }) + done
file('answer.sse', stream)
// Its keys, and what else is secret, are in variables that nobody has set; a file that it names is not there.
file(
  'c.yaml',
  `seal_key: \${NO_SEAL_KEY}
upstreams:
  one:
    base_url: "https://one.example"
    proxy: "http://user:\${NO_PASSWORD}@proxy.example:3128"
    headers: { x-org: "canary-\${NO_ORG}" }
    accounts: [{ name: a, key: "\${NO_KEY}" }]
  two:
    base_url: "https://two.example/deep/v1"
    query: { api-version: "7" }
    ca_file: gone.pem
    accounts: [{ name: b, key_file: gone.key, enabled: false }]
catalog:
  pinned: 2026-11-01
  models:
    - id: talker
      also: [chatter]
      wire: chat
      upstream: [{ name: one, upstream_model: first }, { name: two, upstream_model: second, profile: { max_field: max_tokens } }]
      max_output_tokens: 100
      hosted_tools: refuse
      prices: { input: "1", output: "2" }
    - { id: thinker, wire: messages, upstream: two, max_output_tokens: 100, hosted_tools: refuse, prices: { input: "1", output: "2" } }
`,
)

const base = ['--config', 'c.yaml', 'translate', '--from', 'messages']
const options = { cwd: work, env: { TRIWIRE_STORE: '', TRIWIRE_CONFIG: '' } }
const translate = (...args: string[]): Promise<Run> => runWarm([...base, ...args], options)

/** The program with something on its stdin. */
async function pipe(input: string | Buffer, args: readonly string[]): Promise<Omit<Run, 'json'>> {
  const cli = resolve(import.meta.dirname, '../../src/cli/cli.ts')
  const child = spawn(process.execPath, [cli, ...args], { cwd: work, env: { ...process.env, NODE_NO_WARNINGS: '1' } })
  const [stdout, stderr]: [Buffer[], Buffer[]] = [[], []]
  child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk))
  // It may have enough before it has all.
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  const code = await within(new Promise<number>((over) => child.on('close', over)), args.join(' '))
  return { code, stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString() }
}

const asked = '{"model":"first","stream":false,"max_completion_tokens":50,"messages":[{"role":"user","content":"Hi"}]}'

test('T9 translate prints the body to stdout and a report of the request to stderr', async () => {
  const { code, stdout, stderr } = await run([...base, 'request.json'], options)
  assert.deepEqual([code, stdout], [0, asked])
  assert.equal(
    stderr,
    `messages to chat: talker, served by one

POST /v1/chat/completions
content-type: application/json
accept-encoding: identity
user-agent: triwire
x-org: [configured]
content-length: ${asked.length}

field       what    why
model       mapped  \`model\`: what the upstream calls it
max_tokens  mapped  \`max_completion_tokens\` or \`max_tokens\`, lowered to the model’s maximum
messages    mapped  \`messages\`; results become \`tool\` messages directly behind their calls

no losses
`,
  )
})

test('T9 translate --json prints everything as one object, and nothing on stderr', async () => {
  const { code, json, stderr } = await translate('request.json', '--upstream', 'two', '--json')
  const body = asked.replace('first', 'second').replace('max_completion_tokens', 'max_tokens')
  assert.deepEqual([code, stderr], [0, ''])
  assert.deepEqual(json, {
    ok: true,
    model: 'talker',
    from: 'messages',
    to: 'chat',
    upstream: 'two',
    path: '/deep/v1/chat/completions?api-version=7',
    headers: [
      ['content-type', 'application/json'],
      ['accept-encoding', 'identity'],
      ['user-agent', 'triwire'],
      ['content-length', `${body.length}`],
    ],
    body,
    fields: [
      { field: 'model', what: 'mapped', why: '`model`: what the upstream calls it' },
      {
        field: 'max_tokens',
        what: 'mapped',
        why: '`max_completion_tokens` or `max_tokens`, lowered to the model’s maximum',
      },
      {
        field: 'messages',
        what: 'mapped',
        why: '`messages`; results become `tool` messages directly behind their calls',
      },
    ],
    losses: [],
  })
})

test('translate accepts a model or an alias instead of the request’s, also built-in ones', async () => {
  assert.equal((await translate('other.json', '--model', 'chatter')).stdout, asked)
  const native = await translate('other.json', '--model', 'thinker')
  assert.equal(native.stdout, JSON.stringify({ ...question, model: 'thinker' }))
  assert.match(native.stderr, /\nmodel +carried +as it is\n/)
  const cwd = testFolder('translate-empty')
  const args = ['translate', '--from', 'messages', '--model', 'sim-responses', join(work, 'request.json')]
  const builtIn = await runWarm(args, { ...options, cwd })
  assert.equal(builtIn.code, 0)
  assert.match(builtIn.stdout, /^\{"model":"sim",.*"max_output_tokens":50,/)
  assert.match(builtIn.stderr, /^messages to responses: sim-responses, served by simulator\n\nPOST \/v1\/responses\n/)
  assert.deepEqual(readdirSync(cwd), [])
})

test('translate reads stdin, and writes nothing after the body', async () => {
  const { code, stdout } = await pipe(JSON.stringify(question), [...base, '-'])
  assert.deepEqual([code, stdout], [0, asked])
  const answer = await pipe(stream, [...base, '--model', 'thinker', '--answer', '-', '--json'])
  assert.equal(answer.code, 1)
  const read = await pipe(stream, [...base, 'request.json', '--answer', '-', '--json'])
  assert.deepEqual([read.code, JSON.parse(read.stdout).body, JSON.parse(read.stdout).answer.status], [0, asked, 200])
})

test('translate --answer prints the client’s view of a stream or JSON, its usage, and whether another model answered (Y13)', async () => {
  const { code, stdout, stderr } = await translate('--model', 'talker', '--answer', 'answer.sse')
  assert.equal(code, 0)
  assert.match(
    stdout,
    /^event: message_start\n.*"text":"Hello".*event: message_stop\ndata: \{"type":"message_stop"\}\n\n$/s,
  )
  assert.equal(
    stderr,
    `messages to chat: talker, served by one

answer                 200 text/event-stream
outcome                ok
input_tokens           9
cache_read_tokens      0
cache_write_tokens     0
cache_write_1h_tokens  0
output_tokens          2
reasoning_tokens       0
usage from             final
cost                   0.000013
doubts                 model_differs
`,
  )
  const { json } = await translate('--model', 'talker', '--answer', 'answer.json', '--json')
  const { answer, ...rest } = json as unknown as Record<string, Record<string, unknown>>
  assert.deepEqual(rest, { ok: true, model: 'talker', from: 'messages', to: 'chat', upstream: 'one' })
  const { content } = JSON.parse(answer!['body'] as string)
  assert.deepEqual(
    [answer!['content_type'], content],
    ['application/json', [{ type: 'text', text: 'Hello', citations: [] }]],
  )
})

test('C6 translate --answer reports doubtful figures', async () => {
  file(
    'absurd.json',
    completion({ content: 'Hello' }, 'stop', { model: 'first', usage: { prompt_tokens: 9e6, completion_tokens: 2 } }),
  )
  const { stderr, code } = await translate('request.json', '--answer', 'absurd.json')
  assert.equal(code, 0)
  assert.match(stderr, /\nusage from +estimated\n.*\ndoubts +input_absurd, input_estimated\n$/s)
})

test('spec 7.4 translate --answer of a failed answer prints the client’s error, and exits with 1', async () => {
  file('refusal.json', '{"error":{"message":"max_completion_tokens is too large: 50","type":"invalid_request_error"}}')
  const refused = await translate('--model', 'talker', '--answer', 'refusal.json', '--status', '400')
  assert.equal(refused.code, 1)
  assert.match(JSON.parse(refused.stdout).error.message, /^max_tokens is too large: 50$/)
  assert.match(refused.stderr, /\nanswer +400 application\/json\noutcome +refused \(upstream_400\)\n/)
  file('cut.sse', text('Hel'))
  const cut = await translate('--model', 'talker', '--answer', 'cut.sse')
  assert.equal(cut.code, 1)
  assert.match(cut.stdout, /"text":"Hel".*\nevent: error\n/s)
  assert.match(cut.stderr, /\noutcome +upstream_cut \(upstream_cut\)\n/)
  for (const [name, content] of [
    ['page.html', '<html>'],
    ['empty', ''],
    ['half.json', '{"id":"x","choices":'],
  ]) {
    file(name!, content!)
    const { code, stdout } = await translate('--model', 'talker', '--answer', name!)
    assert.deepEqual([code, JSON.parse(stdout).error.type], [1, 'api_error'], name!)
  }
})

test('R1 translate exits with 1 and the client’s error text, for every check of a body', async () => {
  const user = '"messages":[{"role":"user","content":"Hi"}]'
  const refusals: [content: string | Buffer, told: string][] = [
    ['', '400 invalid_body: The request body is not a JSON object: send one JSON object in UTF-8.'],
    ['{"a":', '400 invalid_body: The request body is not valid JSON: send one JSON object in UTF-8.'],
    ['[]', '400 invalid_body: The request body is not a JSON object: send one JSON object in UTF-8.'],
    [`\ufeff{"model":"talker"}`, '400 invalid_body: The request body '],
    [Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), '400 invalid_body: The request body '],
    [Buffer.alloc(5_242_881, ' '), '413 request_too_large: The request body is larger than 5242880 bytes (5 MB)'],
    ['{}', '400 invalid_body, param model: The field model is required and must be a string'],
    [
      '{"model":"talkr"}',
      '404 model_not_found, param model: No such model: GET /v1/models lists the available models. Perhaps it is talker.',
    ],
    ['{"model":"talker"}', '400 invalid_body, param messages: The field messages is required'],
    [`{"model":"talker",${user}}`, '400 invalid_body, param max_tokens: The field max_tokens is required'],
    [
      `{"model":"talker","max_tokens":5,${user},"mcp_servers":[{}]}`,
      '400 invalid_body, param mcp_servers: mcp_servers: this model has no MCP connector',
    ],
  ]
  for (const [content, told] of refusals) {
    const { code, stdout, stderr } = await translate(file('wrong.json', content))
    assert.deepEqual([code, stdout], [1, ''], told)
    assert.ok(stderr.startsWith(`triwire: refused with ${told}`), `${told}: ${stderr}`)
    assert.equal(stderr.trimEnd().split('\n').length, 1)
  }
})

test('R1 translate --json prints a refusal as data on stdout and as an error on stderr', async () => {
  const { code, stdout, stderr } = await translate('other.json', '--json')
  const message = 'No such model: GET /v1/models lists the available models.'
  const { refusal, ok } = JSON.parse(stdout)
  assert.deepEqual([code, ok], [1, false])
  const { body, ...facts } = refusal
  assert.deepEqual(facts, { status: 404, code: 'model_not_found', param: 'model', message })
  assert.equal(JSON.parse(body).error.message, message)
  assert.deepEqual(JSON.parse(stderr), { ok: false, error: { code: 'failed', message } })
})

test('translate reads no more of a large input than necessary', async () => {
  const { code, stderr } = await pipe(Buffer.alloc(20_000_000, ' '), [...base, '-'])
  assert.equal(code, 1)
  assert.match(stderr, /refused with 413 request_too_large/)
  file('large.sse', Buffer.alloc(33_554_433, '\n'))
  const { stderr: told, code: failed } = await translate('--model', 'talker', '--answer', 'large.sse')
  assert.equal(failed, 1)
  assert.match(told, /^triwire: large\.sse is larger than 33554432 bytes, and no server takes it\n$/)
})

const wrong: [args: string[], code: number, told: RegExp][] = [
  [[], 2, /^error: name a file with the request \(- for stdin\), or an answer with --answer\n/],
  [['--answer', 'answer.sse'], 2, /^error: without a request name the model: --model <model>\n/],
  [['-', '--answer', '-'], 2, /^error: request and answer cannot both be read from stdin\n/],
  [['request.json', '--status', '400'], 2, /^error: --status is for --answer\n/],
  [['request.json', '--status', '99'], 2, /It is a number from 200 to 599\./],
  [['request.json', '--header', 'x'], 2, /Write it like "anthropic-beta: context-1m"\./],
  [['request.json', '--from', 'soap'], 2, /Allowed choices are messages, chat, responses\./],
  [['a', 'b'], 2, /too many arguments/],
  [['gone.json'], 1, /^triwire: cannot read gone\.json \(ENOENT\): name a file, or - for stdin\n$/],
  [['.'], 1, /^triwire: cannot read \. \(EISDIR\): name a file, or - for stdin\n$/],
  [['request.json', '--upstream', 'three'], 1, /^triwire: talker is not served by "three": name one of one, two\n$/],
  [['request.json', '--answer', 'gone.sse'], 1, /^triwire: cannot read gone\.sse \(ENOENT\)/],
]

test('N-F18 translate reports an invalid command line with its cure and without a stack trace', async () => {
  for (const [args, code, told] of wrong) {
    const { code: exit, stdout, stderr } = await translate(...args)
    assert.deepEqual([exit, stdout], [code, ''], `${args.join(' ')}: ${stderr}`)
    assert.match(stderr, told, args.join(' '))
    assert.doesNotMatch(stderr, /\n\s+at /)
  }
  const without = await runWarm(['translate', 'request.json'], options)
  assert.deepEqual([without.code, without.stdout], [2, ''])
  assert.match(without.stderr, /required option '--from <wire>' not specified/)
})

test('translate --help lists its options', async () => {
  const { code, stdout } = await runWarm(['translate', '--help'], options)
  assert.equal(code, 0)
  for (const option of ['--from <wire>', '--model', '--upstream', '--answer', '--status', '--header', '--account'])
    assert.ok(stdout.includes(option), option)
})

test('T5 translate shows a conversation key in its form scoped to an account', async () => {
  file('keyed.json', JSON.stringify({ model: 'talker', messages: question.messages, prompt_cache_key: 'one-talk' }))
  const sent = async (...args: string[]) =>
    (await runWarm([...base.slice(0, -1), 'chat', 'keyed.json', ...args], options)).stdout
  const [nobody, one, two] = [
    await sent(),
    await sent('--account', 'acct_1'),
    await sent('--account', 'acct_2'),
  ] as const
  assert.equal(new Set([nobody, one, two]).size, 3)
  assert.match(one, /"prompt_cache_key":"[0-9a-f]{63}"/)
  assert.equal(await sent('--account', 'acct_1'), one)
})

test('U5 translate makes no store, and prints neither a key nor other headers that the configuration sends', async () => {
  const env = {
    ...options.env,
    NO_KEY: 'canary-a-key-of-ours',
    NO_ORG: 'secret-org',
    NO_SEAL_KEY: btoa('0123456789abcdefghijklmnopqrstuv'),
  }
  const { stdout, stderr, code } = await runWarm([...base, 'request.json', '--json'], { ...options, env })
  assert.equal(code, 0)
  assert.doesNotMatch(stdout + stderr, /canary|secret-org/)
  assert.deepEqual(
    readdirSync(work).filter((name) => /data|\.db|seal/.test(name)),
    [],
  )
})
