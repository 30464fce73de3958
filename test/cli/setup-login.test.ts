import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { fileOf } from '../../src/cli/login/kept.ts'
import { makeOwnKey } from '../../src/cli/login/own-key.ts'
import { findNetwork, isPrivateAddress } from '../../src/cli/login/private-network.ts'
import { findTokenCommand } from '../../src/cli/login/token-command.ts'
import { programs } from '../../src/programs/known/index.ts'
import type { Access } from '../../src/programs/program.ts'
import { testFolder } from '../support/folder.ts'
import { accessToken, type SignInServer, startSignInServer } from '../support/sign-in-server.ts'
import { runWarm } from './run.ts'

/* setup --login: a person's machine, and a scripted gateway on loopback, which Claude Code takes for private. */

async function machine() {
  const server = await startSignInServer()
  server.script('/v1/models', { status: 200, body: { data: [{ id: 'large' }] } })
  server.script('/console/api/me/keys', { status: 201, body: { id: 'key_1', name: 'x', key: 'own-key-of-dev' } })
  const home = testFolder('home')
  const [bin, state] = [join(home, 'bin'), join(home, 'state')]
  mkdirSync(bin)
  writeFileSync(join(bin, 'triwire'), '')
  chmodSync(join(bin, 'triwire'), 0o700)
  const folder = join(state, 'triwire/sign-ins')
  mkdirSync(folder, { recursive: true })
  const tokens = { access_token: accessToken(1), obtained_ms: Date.now(), expires_ms: Date.now() + 3_600_000 }
  const keep = () =>
    writeFileSync(
      fileOf(server.url, folder),
      JSON.stringify({ url: server.url, token_endpoint: `${server.url}/t`, tokens }),
    )
  const env = {
    HOME: home,
    SHELL: '/bin/bash',
    XDG_STATE_HOME: state,
    PATH: `${bin}:${process.env['PATH']}`,
    DISPLAY: '',
    BROWSER: '',
  }
  const setup = (...args: string[]) => runWarm(['setup', ...args], { cwd: home, env })
  return { server, home, setup, keep }
}

const asked = (server: SignInServer, path: string) => server.asked.filter((one) => one.path === path)

test('issue 47 setup --login: Claude Code signs in by itself at a private gateway, without a key and without a session', async () => {
  const { server, home, setup } = await machine()
  mkdirSync(join(home, '.claude'))
  const path = join(home, '.claude/settings.json')
  const before = {
    theme: 'dark',
    apiKeyHelper: 'old',
    env: { ANTHROPIC_BASE_URL: 'x', ANTHROPIC_AUTH_TOKEN: 'y', MINE: 'z' },
  }
  writeFileSync(path, JSON.stringify(before))
  const { code, stdout, stderr } = await setup('claude-code', '--login', '--url', server.url, '--write', '--yes')
  assert.equal(code, 0, stderr)
  assert.match(stderr, /claude-code signs in by itself, since 127\.0\.0\.1 is a private address/)
  const { env, ...settings } = JSON.parse(readFileSync(path, 'utf8'))
  assert.deepEqual(settings, { theme: 'dark', forceLoginMethod: 'gateway', forceLoginGatewayUrl: server.url })
  assert.deepEqual(
    [env.MINE, env.ANTHROPIC_BASE_URL, env.ANTHROPIC_AUTH_TOKEN, env.ANTHROPIC_MODEL],
    ['z', undefined, undefined, 'large'],
  )
  assert.equal(stdout, '# in the shell\nclaude\n')
  assert.equal(asked(server, '/oauth/device_authorization').length, 0)
})

test('issue 47 setup --login: Codex and Copilot run triwire token with the URL, and get no key', async () => {
  const { server, home, setup, keep } = await machine()
  keep()
  const codex = await setup('codex', '--login', '--url', server.url, '--write', '--yes')
  assert.equal(codex.code, 0, codex.stderr)
  const config = readFileSync(join(home, '.codex/config.toml'), 'utf8')
  assert.ok(config.includes(`auth = { command = "triwire", args = ["token","${server.url}"] }`), config)
  assert.ok(!config.includes('env_key'))
  const copilot = await setup('copilot', '--login', '--url', server.url, '--json')
  assert.deepEqual([copilot.json['sign_in'], copilot.json['key']], ['command', null])
  const env = copilot.json['env'] as unknown as Record<string, string>
  assert.deepEqual(
    [env['COPILOT_PROVIDER_API_KEY_COMMAND'], env['COPILOT_PROVIDER_API_KEY']],
    [`triwire token '${server.url}'`, undefined],
  )
  assert.equal(asked(server, '/v1/models')[0]!.headers.authorization, `Bearer ${accessToken(1)}`)
  assert.equal(asked(server, '/console/api/me/keys').length, 0)
  // To a key and back: neither way leaves a setting of the other.
  const key = await setup('codex', '--key', 'other-key', '--url', server.url, '--write', '--yes')
  assert.equal(key.code, 0, key.stderr)
  assert.match(
    readFileSync(join(home, '.codex/config.toml'), 'utf8'),
    /^(?![\s\S]*auth =)[\s\S]*env_key = "TRIWIRE_API_KEY"/,
  )
  await setup('codex', '--login', '--url', server.url, '--write', '--yes')
  assert.equal(readFileSync(join(home, '.codex/config.toml'), 'utf8').includes('env_key'), false)
})

for (const [name, program] of Object.entries(programs))
  test(`issue 47 setup --login ${name}: its settings have a token command, its own sign-in, or a key of the person`, async () => {
    const { server, setup, keep } = await machine()
    keep()
    const { code, json, stderr } = await setup(name, '--login', '--url', server.url, '--json')
    assert.equal(code, 0, stderr)
    const way = program.signsIn ? 'itself' : program.runsTokenCommand ? 'command' : 'key'
    assert.equal(json['sign_in'], way)
    const text = JSON.stringify(json)
    assert.equal(text.includes('own-key-of-dev'), way === 'key')
    assert.ok(!text.includes('YOUR-KEY') && !text.includes('tri-at-'))
    const made = asked(server, '/console/api/me/keys')
    assert.equal(made.length, way === 'key' ? 1 : 0)
    if (way === 'key') assert.equal(made[0]!.headers.authorization, `Bearer ${accessToken(1)}`)
  })

test('issue 47 setup --login uses the given way of signing in if the client has it', async () => {
  const { server, setup, keep } = await machine()
  keep()
  const { json, stderr } = await setup('claude-code', '--login', 'command', '--url', server.url, '--json')
  assert.equal(json['sign_in'], 'command', stderr)
  assert.ok(
    JSON.stringify(json['file']).includes(`"apiKeyHelper\\": \\"triwire token '${server.url}'`.slice(1)),
    JSON.stringify(json['file']),
  )
  const key = await setup('claude-code', '--login', 'key', '--url', server.url, '--json')
  assert.deepEqual([key.json['sign_in'], key.json['key']], ['key', 'own-key-of-dev'])
  for (const [client, way, said] of [
    ['codex', 'itself', 'codex has no such way: with --login command or key'],
    ['aider', 'command', 'aider has no such way: with --login key'],
  ] as const) {
    const wrong = await setup(client, '--login', way, '--url', server.url)
    assert.deepEqual([wrong.code, wrong.stderr.includes(said)], [2, true], wrong.stderr)
  }
})

test('issue 47 setup --login makes no key in a dry run, and prints why a gateway makes none', async () => {
  const { server, setup, keep } = await machine()
  keep()
  const dry = await setup('qwen-code', '--login', '--url', server.url, '--dry-run')
  assert.equal(dry.code, 0, dry.stderr)
  assert.equal(asked(server, '/console/api/me/keys').length, 0)
  for (const [status, body, said] of [
    [403, { detail: 'you may have five keys' }, /makes no key for qwen-code \(status 403\): you may have five keys/],
    [404, {}, /makes no key for qwen-code \(status 404\)/],
    [201, { key: 'a b' }, /makes no key for qwen-code \(status 201\)/],
    [201, '<html>', /makes no key/],
  ] as const) {
    server.script('/console/api/me/keys', { status, body })
    const { code, stderr } = await setup('qwen-code', '--login', '--url', server.url)
    assert.equal(code, 1)
    assert.match(stderr, said)
  }
})

test('issue 47 setup --login key makes no key if the settings are not written then', async () => {
  const { server, home, setup, keep } = await machine()
  keep()
  mkdirSync(join(home, '.cline/data/settings'), { recursive: true })
  const path = join(home, '.cline/data/settings/providers.json')
  const write = (client: string, ...more: string[]) =>
    setup(client, '--login', 'key', '--url', server.url, '--write', '--json', ...more)
  writeFileSync(path, '{ "theirs": 1 }')
  // Nobody can be asked here.
  const unasked = await write('cline')
  assert.deepEqual([unasked.code, unasked.stderr.includes('run with --yes to change it')], [1, true], unasked.stderr)
  assert.equal((await write('cursor', '--yes')).code, 2)
  writeFileSync(path, '{')
  assert.match((await write('cline', '--yes')).stderr, /was left as it is: line 1 is not JSON/)
  assert.equal(asked(server, '/console/api/me/keys').length, 0)
  writeFileSync(path, '{ "theirs": 1 }')
  const { code, json, stderr } = await write('cline', '--yes')
  assert.deepEqual([code, json['key']], [0, 'own-key-of-dev'], stderr)
  assert.equal(JSON.parse(readFileSync(path, 'utf8')).providers['openai-compatible'].settings.apiKey, 'own-key-of-dev')
  assert.equal(asked(server, '/console/api/me/keys').length, 1)
})

test('issue 47 the name of an agent and its machine is cut to what a gateway takes', async () => {
  const { server } = await machine()
  await makeOwnKey(server.url, accessToken(1), `${'a'.repeat(94)} b`)
  const [{ form }] = asked(server, '/console/api/me/keys') as [SignInServer['asked'][number]]
  assert.match(JSON.stringify(form), /[^a]a{94}[^a ]/)
})

test('issue 47 setup --login signs in a person who is not; a gateway without sign-in is reported', async () => {
  const { server, setup } = await machine()
  const { code, stderr, json } = await setup('codex', '--login', '--url', server.url, '--json')
  assert.equal(code, 0, stderr)
  assert.match(stderr, /BCDF-GHJK/)
  assert.equal(json['sign_in'], 'command')
  const both = await setup('codex', '--login', '--key', 'x')
  assert.deepEqual([both.code, both.stderr.includes('leave out --key')], [2, true])
  server.script('/.well-known/oauth-authorization-server', { status: 404 })
  const none = await setup('codex', '--login', '--url', server.url)
  assert.deepEqual([none.code, none.stderr.includes('offers no sign-in')], [1, true])
})

test('issue 47 Claude Code gets the token command for a gateway on the public network', () => {
  const tokenCommand = ['triwire', 'token', 'https://gw.example']
  const small = { model: 'm', contextWindow: undefined, outputTokensMax: undefined }
  const access: Access = {
    ...small,
    origin: 'https://gw.example',
    key: 'k',
    model: 'm',
    small,
    models: [small],
    session: 's',
    tokenCommand,
  }
  const { files, env } = programs['claude-code']!.settings(access, 'messages')
  const { apiKeyHelper, env: inner, forceLoginMethod } = JSON.parse(files![0]!.text)
  assert.deepEqual(
    [apiKeyHelper, inner.ANTHROPIC_BASE_URL, forceLoginMethod],
    ["triwire token 'https://gw.example'", 'https://gw.example', undefined],
  )
  assert.equal(env?.['ANTHROPIC_AUTH_TOKEN'], undefined)
})

test('issue 47 the addresses that Claude Code treats as private, and their neighbours', () => {
  const inside = [
    '10.0.0.1',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '127.9.9.9',
    '169.254.1.1',
    '100.64.0.1',
    '100.127.255.255',
  ]
  const inside6 = ['fc00::1', 'fdff::1', 'fe80::1', 'febf::1', '::1', '::ffff:10.0.0.1', 'fe80::1%lo']
  const outside = [
    '9.255.255.255',
    '11.0.0.1',
    '172.15.0.1',
    '172.32.0.1',
    '192.167.1.1',
    '100.63.0.1',
    '100.128.0.1',
    '8.8.8.8',
    '0.0.0.0',
  ]
  const outside6 = ['fec0::1', 'fb00::1', 'fe00::1', '::2', '2001:db8::1', '::ffff:8.8.8.8']
  for (const address of [...inside, ...inside6]) assert.equal(isPrivateAddress(address), true, address)
  for (const address of [...outside, ...outside6]) assert.equal(isPrivateAddress(address), false, address)
})

test('issue 47 one public address among many, or a public proxy, makes a gateway public', async () => {
  const names: Record<string, string[]> = {
    'gw.corp.test': ['10.0.0.1', 'fd00::1'],
    'mixed.corp.test': ['10.0.0.1', '203.0.113.5'],
    'proxy.corp.test': ['192.168.0.9'],
    'proxy.example': ['203.0.113.9'],
  }
  const find = async (host: string) => names[host]!
  const rows = [
    ['https://gw.corp.test', {}, true, 'gw.corp.test resolves to 10.0.0.1 and fd00::1, private addresses'],
    ['https://mixed.corp.test', {}, false, 'mixed.corp.test resolves to 203.0.113.5, a public address'],
    ['https://[2001:db8::1]:8443', {}, false, '2001:db8::1 is a public address'],
    ['https://10.0.0.7', {}, true, '10.0.0.7 is a private address'],
    [
      'https://gw.corp.test',
      { HTTPS_PROXY: 'http://proxy.corp.test:3128' },
      true,
      'gw.corp.test resolves to 10.0.0.1 and fd00::1, private addresses',
    ],
    [
      'https://gw.corp.test',
      { https_proxy: 'proxy.example:3128' },
      false,
      'its proxy (https_proxy) is public: proxy.example resolves to 203.0.113.9, a public address',
    ],
    [
      'https://gw.corp.test',
      { HTTPS_PROXY: 'http://proxy.example', NO_PROXY: '.corp.test' },
      true,
      'gw.corp.test resolves to 10.0.0.1 and fd00::1, private addresses',
    ],
  ] as const
  for (const [url, env, isPrivate, reason] of rows)
    assert.deepEqual(await findNetwork(url, env, find), { isPrivate, reason })
})

test('issue 47 the token command names triwire if it is installed, never a folder of npm, and otherwise this program', () => {
  const folder = testFolder('path')
  for (const at of ['bin', 'node_modules/.bin', '_npx/1/node_modules/.bin']) {
    mkdirSync(join(folder, at), { recursive: true })
    writeFileSync(join(folder, at, 'triwire'), '')
  }
  const words = (at: string) => findTokenCommand('https://gw.example', { PATH: join(folder, at) }).words
  assert.deepEqual(words('bin'), ['triwire', 'token', 'https://gw.example'])
  for (const at of ['node_modules/.bin', '_npx/1/node_modules/.bin', 'none'])
    assert.deepEqual(words(at), [
      process.execPath,
      join(import.meta.dirname, '../../bin/triwire.mjs'),
      'token',
      'https://gw.example',
    ])
})
