import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { dirname, join } from 'node:path'
import test, { before } from 'node:test'
import { startEgressProxy } from '../support/egress-proxy.ts'
import { testFolder } from '../support/folder.ts'
import { startTestGateway, type TestGateway, testModel } from '../support/gateway.ts'
import { listen } from '../support/listen.ts'
import { runWarm } from './run.ts'

let gateway: TestGateway
let there: string[]
before(async () => {
  gateway = await startTestGateway({
    models: [
      testModel('large', 'messages', { also: ['large-2'], context_window: 400_000, max_output_tokens: 32_000 }),
      testModel('small', 'chat', { context_window: 64_000 }),
      testModel('claude-sonnet-5-5', 'messages'),
    ],
  })
  there = ['--url', `${gateway.url}/v1`, '--key', gateway.key]
})

// A colleague's machine: no file, and nothing in the home folder.
const laptop = testFolder('laptop')
const home = testFolder('home')
const env = { HOME: home, SHELL: '/bin/bash', PATH: process.env['PATH']! }
const setup = (...args: string[]) => runWarm(['setup', ...args], { cwd: laptop, env })

test('N-F6: with --url the gateway is asked for its models, and no configuration file is needed', async () => {
  const first = await setup('codex', ...there, '--json')
  assert.deepEqual([first.json['model'], first.json['base_url']], ['large', gateway.url])
  assert.match(first.stderr, /the model is large, of 4; --model names another/)
  const alias = await setup('codex', ...there, '--model', 'large-2', '--json')
  assert.equal(alias.json['model'], 'large-2')
  const none = await setup('codex', ...there, '--model', 'Large_2')
  assert.equal(none.code, 1)
  assert.match(none.stderr, /There is no model "Large_2": did you mean large-2 or large\?/)
})

test('N-F6: figures come from the command, else from the presets; else it says that none are known', async () => {
  const told = await setup(
    'pi',
    ...there,
    '--model',
    'large',
    '--context-window',
    '400k',
    '--max-output',
    '32000',
    '--json',
  )
  assert.deepEqual(
    [told.json['context_window'], told.json['max_output_tokens'], told.json['window_from']],
    [400_000, 32_000, 'the command'],
  )
  assert.match(told.json['text']!, /"contextWindow": 400000,\s+"maxTokens": 32000/)
  assert.equal(told.stderr, '')
  const preset = await setup('pi', ...there, '--model', 'claude-sonnet-5-5', '--json')
  assert.deepEqual([preset.json['context_window'], preset.json['window_from']], [1_000_000, 'the preset anthropic'])
  assert.match(preset.stderr, /the preset anthropic says 1000000 tokens, 128000 of them output, of claude-sonnet-5-5/)
  const unknown = await setup('cline', ...there, '--model', 'large', '--json')
  assert.equal(unknown.json['context_window'], null)
  assert.match(
    unknown.stderr,
    /no context window is known for large: set it with --context-window; cline assumes 128,000 tokens/,
  )
  assert.doesNotMatch(unknown.json['text']!, /contextWindow/)
})

test('N-F5: with the operator’s file its figures are printed, and a complete command for a colleague without that file', async () => {
  const path = join(laptop, 'operators.yaml')
  const text = readFileSync(gateway.configPath, 'utf8')
  const beside = ['--config', path, 'setup', 'claude-code', '--model', 'large', '--small-model', 'small']
  writeFileSync(path, text, { mode: 0o600 })
  const unknown = await runWarm(beside, { cwd: laptop, env })
  assert.match(
    unknown.stderr,
    /The configuration lets the gateway choose its port: name its address with --url, or set api_url\n$/,
  )
  assert.deepEqual([unknown.code, unknown.stdout], [1, ''])
  writeFileSync(
    path,
    text.replace(/^listen: .*|"listen": ?"[^"]*"/m, (one) => one.replace(/:0(?="?$)/, ':8080')),
  )
  const { stdout, stderr } = await runWarm(beside, { cwd: laptop, env })
  for (const said of [
    '"CLAUDE_CODE_MAX_CONTEXT_TOKENS": "400000"',
    '"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "32000"',
    '"ANTHROPIC_DEFAULT_OPUS_MODEL": "large"',
    '"ANTHROPIC_DEFAULT_SONNET_MODEL": "claude-sonnet-5-5"',
    '"ANTHROPIC_DEFAULT_HAIKU_MODEL": "small"',
    '"CLAUDE_CODE_SUBAGENT_MODEL": "large"',
  ])
    assert.ok(stdout.includes(said), said)
  const line = /\nnpx triwire (setup .*)\n/.exec(stderr)![1]!
  assert.equal(
    line,
    "setup claude-code --url 'https://YOUR-GATEWAY' --key sk-tri-THEIR-KEY --model large --small-model small --wire messages --context-window 400000 --max-output 32000",
  )
  const typed = line.replace("'https://YOUR-GATEWAY'", gateway.url).replace('sk-tri-THEIR-KEY', gateway.key).split(' ')
  const colleague = await runWarm(typed, { cwd: laptop, env })
  const neutral = (text: string) => text.replaceAll(/http:\/\/[^"]+|sk-tri-[^']+/g, '…')
  assert.equal(neutral(colleague.stdout), neutral(stdout))
})

test('N-F6: if a gateway gives no list, the reason is printed, and a named model is used unchecked', async () => {
  const server = createServer((request, response) => {
    response.statusCode =
      request.headers.authorization === 'Bearer right' ? 200 : request.url!.startsWith('/no/') ? 404 : 401
    const id = request.url!.startsWith('/odd/') ? "it's" : 'theirs'
    response.end(JSON.stringify({ data: [{ id }] }))
  })
  const port = await listen(server)
  const origin = `http://127.0.0.1:${port}`
  const cases: [args: string[], code: number, said: RegExp][] = [
    [['--url', origin], 1, /wants a key: give it with --key; with --model the model is taken on trust/],
    [['--url', origin, '--key', 'wrong'], 1, /wants another key/],
    [
      ['--url', `${origin}/no/v1/`, '--key', 'x'],
      1,
      /\/no\/v1\/models answers 404: is this the address of the gateway\?/,
    ],
    [['--url', origin, '--key', 'right', '--wire', 'chat'], 0, /^note: no context window is known for theirs/],
    [['--url', `${origin}/odd`, '--key', 'right'], 1, /The id of the model has quotes .*: give it an alias/],
    [['--url', origin, '--model', 'named'], 0, /wants a key.*; the model is taken on trust/],
    [['--url', 'nope'], 2, /must be the address of a gateway, such as https:\/\/gateway\.example/],
    [['--url', 'https://user:pass@host'], 2, /must be the address of a gateway/],
    [['--url', origin, '--key', "it's"], 2, /the value of --key is not a key: a key is one word without quotes/],
    [['--url', origin, '--key', ''], 2, /the value of --key is not a key/],
    [['--url', origin, '--context-window', 'big'], 2, /must be a number of tokens, such as 400000 or 400k/],
    [['--context-window', '8k', '--max-output', '9k'], 2, /--max-output is a part of --context-window/],
  ]
  for (const [args, code, said] of cases) {
    const run = await setup('pi', ...args)
    assert.equal(run.code, code, `${args}: ${run.stderr}`)
    assert.match(run.stderr, said)
  }
})

test('N-F4 N-F6: a remote gateway is asked through the proxy with its credentials unless NO_PROXY exempts it; a local one never', async () => {
  const there = 'gateway.example:8443'
  const proxy = await startEgressProxy({ [there]: new URL(gateway.url).host })
  const through = (variables: Record<string, string>, ...args: string[]) =>
    runWarm(['setup', 'codex', '--key', gateway.key, '--json', ...args], { cwd: laptop, env: { ...env, ...variables } })
  const named = proxy.url.replace('//', '//ann:secret@')
  for (const variable of ['HTTP_PROXY', 'http_proxy']) {
    const { json, stderr } = await through({ [variable]: named }, '--url', `http://${there}`)
    assert.equal(json['model'], 'large', stderr)
  }
  assert.deepEqual(proxy.asked, Array(2).fill(`GET http://${there}/v1/models`))
  assert.deepEqual(proxy.credentials, Array(2).fill(`Basic ${Buffer.from('ann:secret').toString('base64')}`))
  const spared = await through({ HTTP_PROXY: named, NO_PROXY: '.example' }, '--url', `http://${there}`)
  assert.match(spared.stderr, /gateway\.example:8443\/v1\/models cannot be reached \(there is no such host/)
  assert.equal((await through({ HTTP_PROXY: named }, '--url', gateway.url)).code, 0)
  assert.equal(proxy.asked.length, 2)

  const told: [variables: Record<string, string>, url: string, status: number, said: RegExp][] = [
    [{ HTTP_PROXY: named }, 'http', 407, /\(the proxy of HTTP_PROXY wants other credentials\)/],
    [{ HTTP_PROXY: named }, 'http', 401, /\(the proxy of HTTP_PROXY wants other credentials\)/],
    [{ HTTP_PROXY: named }, 'http', 503, /\(the proxy of HTTP_PROXY refuses, or does not reach it \(status 503\)\)/],
    [{ HTTPS_PROXY: named }, 'https', 407, /\(the proxy of HTTPS_PROXY wants other credentials\)/],
    [{ https_proxy: named }, 'https', 502, /\(the proxy of https_proxy refuses, or does not reach it \(status 502\)\)/],
    [
      { HTTP_PROXY: 'http://127.0.0.1:9' },
      'http',
      0,
      /\(the proxy of HTTP_PROXY cannot be reached: nothing listens there/,
    ],
    [{ HTTPS_PROXY: 'ftp://ann:secret@h' }, 'https', 0, /\(the proxy of HTTPS_PROXY must be http:\/\/host:port/],
  ]
  for (const [variables, scheme, status, said] of told) {
    proxy.refuse(status, { 'content-type': 'text/html' })
    const { code, stderr } = await through(variables, '--url', `${scheme}://${there}`)
    assert.equal(code, 1)
    assert.match((JSON.parse(stderr) as { error: { message: string } }).error.message, said)
    assert.doesNotMatch(stderr, /secret/)
  }
})

test('N-F6: the key is sent to the named gateway, and not to the target of a redirect', async () => {
  const keys: unknown[] = []
  const other = await listen(
    createServer(({ headers }, response) => {
      keys.push(headers['x-api-key'], headers.authorization)
      response.end('{"data":[{"id":"theirs"}]}')
    }),
  )
  const location = `http://127.0.0.1:${other}/v1/models`
  const port = await listen(createServer((_, response) => response.writeHead(301, { location }).end()))
  const { code, stderr } = await setup('pi', '--url', `http://127.0.0.1:${port}`, '--key', 'right')
  assert.deepEqual([code, keys], [1, []])
  assert.match(
    stderr,
    /\/v1\/models redirects to http:\/\/127\.0\.0\.1:\d+, which is not followed: name that with --url;/,
  )
})

const mine = '# mine\napproval_policy = "never"\n\n[mcp_servers.a]\ncommand = "x" # keep\n'

test('N-F7: setup shows its changes, asks, and keeps a backup and everything else', async () => {
  const path = join(home, '.codex/config.toml')
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, mine, { mode: 0o640 })
  const args = ['codex', ...there, '--model', 'large', '--context-window', '400k']
  const dry = await setup(...args, '--dry-run')
  assert.match(dry.stderr, /Changes of .*config\.toml:\n\n\+ model = "large"\n\+ model_provider = "triwire"\n/)
  assert.match(dry.stderr, /Nothing was written: this was a dry run/)
  const refused = await setup(...args, '--write')
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /config\.toml was left as it is: run with --yes to change it/)
  assert.equal(readFileSync(path, 'utf8'), mine)
  const written = await setup(...args, '--write', '--yes')
  assert.equal(written.code, 0, written.stderr)
  const now = readFileSync(path, 'utf8')
  const left = mine.split('\n').filter((line) => line !== '')
  assert.deepEqual(
    now.split('\n').filter((line) => left.includes(line)),
    left,
  )
  assert.match(now, /\[model_providers\.triwire\]\nname = "triwire"\n/)
  assert.equal(statSync(path).mode & 0o777, 0o640)
  assert.equal(readFileSync(`${path}.before-triwire`, 'utf8'), mine)
  const again = await setup(...args, '--write', '--yes')
  assert.match(again.stderr, /has these settings already/)
  assert.ok(!existsSync(`${path}.before-triwire-1`))
})

test('N-F7: a file that cannot be edited is left and reported; keys are not shown; a moved folder is found', async () => {
  const folder = testFolder('claude')
  const moved = { ...env, CLAUDE_CONFIG_DIR: folder }
  const path = join(folder, 'settings.json')
  writeFileSync(path, '{ "env": { "ANTHROPIC_API_KEY": "sk-ant-of-another-one", } // mine\n')
  const write = ['setup', 'claude-code', ...there, '--model', 'large', '--write', '--yes']
  const broken = await runWarm(write, { cwd: laptop, env: moved })
  assert.equal(broken.code, 1)
  assert.match(broken.stderr, /settings\.json was left as it is: line 2 is not JSON .*; run without --write, and put/)
  writeFileSync(
    path,
    '{ "env": { "ANTHROPIC_API_KEY": "sk-ant-of-another-one", "CLAUDE_CODE_MAX_CONTEXT_TOKENS": "7" } } // mine\n',
  )
  const right = await runWarm(write, { cwd: laptop, env: moved })
  assert.equal(right.code, 0, right.stderr)
  assert.match(right.stderr, /ANTHROPIC_API_KEY": "sk-ant-…"/)
  assert.doesNotMatch(right.stderr, /of-another-one/)
  const now = readFileSync(path, 'utf8')
  assert.match(now, /"ANTHROPIC_API_KEY": "sk-ant-of-another-one"/)
  assert.match(now, / \/\/ mine\n$/)
  // The window of another model that was set up before.
  assert.doesNotMatch(now, /CLAUDE_CODE_MAX_CONTEXT_TOKENS/)
})

test('N-F5: Codex gets an entry for the model, with the instructions that the installed Codex gives unknown models', async () => {
  const folder = testFolder('bin')
  const codex = join(folder, 'codex')
  writeFileSync(
    codex,
    `#!${process.execPath}
const base = /base_url="([^"]+)"/.exec(process.argv.join(' '))[1]
const input = [{ role: 'developer', content: [{ type: 'input_text', text: 'Be exact.' }] }]
fetch(base + '/responses', { method: 'POST', body: JSON.stringify({ input }) }).then(({ status }) => process.exit(status === 400 ? 1 : 9))
`,
  )
  chmodSync(codex, 0o755)
  const codexHome = testFolder('codex')
  const asked = ['setup', 'codex', ...there, '--model', 'large', '--context-window', '400k', '--write']
  const { code, stderr } = await runWarm(asked, {
    cwd: laptop,
    env: { ...env, PATH: `${folder}:${env.PATH}`, CODEX_HOME: codexHome },
  })
  assert.equal(code, 0, stderr)
  assert.match(
    readFileSync(join(codexHome, 'config.toml'), 'utf8'),
    /model_catalog_json = "\.\/triwire-models\.json"\n/,
  )
  const { models } = JSON.parse(readFileSync(join(codexHome, 'triwire-models.json'), 'utf8'))
  const [{ slug, context_window, max_context_window, base_instructions }] = models
  assert.deepEqual(
    [slug, context_window, max_context_window, base_instructions],
    ['large', 400_000, 400_000, 'Be exact.'],
  )
})

test('Y19 CON-3 the settings and the command for a colleague use api_url of the file; --url takes precedence', async () => {
  const path = join(laptop, 'public.yaml')
  writeFileSync(path, `api_url: https://llm.example/v1\n${readFileSync(gateway.configPath, 'utf8')}`)
  const beside = ['--config', path, 'setup', 'claude-code', '--model', 'large']
  const { stdout, stderr } = await runWarm(beside, { cwd: laptop, env })
  assert.match(stdout, /"ANTHROPIC_BASE_URL": "https:\/\/llm\.example"/)
  assert.match(stderr, /\nnpx triwire setup claude-code --url 'https:\/\/llm\.example' --key/)
  const other = await runWarm([...beside, '--url', gateway.url, '--key', gateway.key], { cwd: laptop, env })
  assert.ok(other.stdout.includes(`"ANTHROPIC_BASE_URL": "${gateway.url}"`), other.stdout)
  const checked = await runWarm(['--config', path, 'check'], { cwd: laptop, env })
  assert.equal(checked.code, 0)
})
