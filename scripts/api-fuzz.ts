import { spawn, spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createBooks } from '../src/accounts/books.ts'
import { priceNanos } from '../src/catalog/model.ts'
import { describeApi } from '../src/operations/openapi.ts'
import { startTestGateway } from '../test/support/gateway.ts'

// npm run test:api-fuzz -- [examples an operation] [seed]
//
// Schemathesis (PyPI) makes requests from the API's OpenAPI document, with examples of real ids, to a whole gateway. It
// does so as admin, viewer, owner of a key, and without a valid token. The exit code is 1 if a response is a 5xx,
// differs from the document, or has data of another account or a key. Python packages are installed into
// TRIWIRE_FUZZ_DIR (by default in the system's folder for temporary files).

const release = '4.32.5'
const examples = process.argv[2] ?? '50'
const seed = process.argv[3] ?? '1'
const folder = process.env['TRIWIRE_FUZZ_DIR'] ?? join(tmpdir(), `triwire-api-fuzz-${release}`)
const checks = fileURLToPath(new URL('api-fuzz/checks.py', import.meta.url))

install()
const gateway = await startTestGateway({
  config: { limits: { requests_per_minute: 1e9 } },
  credit: '1000000',
})
// The gateway's clock is moved so that minutes pass quickly, and no request exceeds a rate limit.
const minutes = setInterval(() => gateway.advance(60_000), 20)
const books = createBooks(gateway.store.asked, gateway.nowMs)
const words = ['quetzal-of-b', 'hoatzin-of-b']
const b = gateway.store.createAccount(words[0]!, 1_000_000_000_000n)
const keyB = gateway.store.createKey(b.id, { label: words[1]! })
const keyA = gateway.store.listKeys('tester')[0]!
const make = async (name: string, role: 'admin' | 'viewer') =>
  (await books.createOperator(name, role, gateway.nowMs() + 1e13)).token
const [admin, viewer] = [await make('ann', 'admin'), await make('vic', 'viewer')]
const gone = (await books.createOperator('to-be-revoked', 'viewer', gateway.nowMs() + 1e13)).operator
const request = await pay(gateway.key)
await pay(keyB.key)

const document = withExamples({
  account: ['tester', b.id],
  key: [keyA.id, keyB.prefix],
  request: [request],
  operator: [gone.id],
  upstream: ['sim'],
  client: ['claude-code', 'codex'],
  model: ['native-chat'],
  wire: ['chat'],
  from: ['2026-11-01'],
})
const file = join(folder, 'openapi.json')
writeFileSync(file, JSON.stringify(document))

const secrets = [gateway.key, keyB.key, admin, viewer]
const ofOthers = [...secrets, ...words, b.id, keyB.id, keyB.prefix]
// The admin is last, because it revokes the tokens of the others.
const runs = [
  { who: 'nobody', token: 'tri-op-nobody', forbidden: ofOthers },
  { who: 'the owner of a key', token: gateway.key, forbidden: ofOthers },
  { who: 'viewer', token: viewer, forbidden: secrets },
  { who: 'admin', token: admin, forbidden: secrets },
]
for (const { who, token, forbidden } of runs) {
  console.log(`\n# as ${who}\n`)
  const code = await fuzz(token, forbidden)
  if (code !== 0) process.exitCode = 1
}
const bugs = (await gateway.logLines()).filter(({ event }) => event === 'bug')
for (const bug of bugs.slice(0, 20)) console.error(bug['error'])
const findings = [...gateway.store.verify({ priceNanos }), ...(await books.verifyAudit()).findings]
for (const finding of findings) console.error(finding)
if (bugs.length + findings.length > 0) process.exitCode = 1
clearInterval(minutes)
await gateway.close()

function install(): void {
  if (existsSync(join(folder, 'bin', 'schemathesis'))) return
  run('python3', ['-m', 'venv', folder])
  run(join(folder, 'bin', 'pip'), ['install', '--quiet', `schemathesis==${release}`])
}

function run(program: string, args: string[]): void {
  const { status, error } = spawnSync(program, args, { stdio: 'inherit' })
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} failed`, { cause: error })
}

async function pay(key: string): Promise<string> {
  const body = { model: 'native-chat', messages: [{ role: 'user', content: 'hello' }] }
  const answer = await gateway.post('/v1/chat/completions', body, { authorization: `Bearer ${key}` })
  await answer.text()
  return answer.headers.get('x-request-id')!
}

function fuzz(token: string, forbidden: readonly string[]): Promise<number> {
  const named = [
    'not_a_server_error',
    'status_code_conformance',
    'content_type_conformance',
    'response_schema_conformance',
    'nothing_of_others',
  ]
  const args = ['run', file, '--url', gateway.adminUrl, '--checks', named.join(','), '--max-examples', examples]
  args.push('--seed', seed, '--header', `Authorization: Bearer ${token}`, '--request-timeout', '20', '--no-color')
  // The excluded operation is a stream without an end.
  args.push(
    '--exclude-path',
    '/api/v1/events',
    '--generation-database',
    'none',
    '--phases',
    'examples,coverage,fuzzing',
  )
  const child = spawn(join(folder, 'bin', 'schemathesis'), args, {
    stdio: 'inherit',
    cwd: folder,
    env: { ...process.env, SCHEMATHESIS_HOOKS: checks, TRIWIRE_FORBIDDEN: forbidden.join('\n') },
  })
  return new Promise((resolve) => child.on('exit', (code) => resolve(code ?? 1)))
}

type Node = {
  name?: string
  schema?: object
  properties?: Record<string, object>
  example?: unknown
  [key: string]: unknown
}

/** Adds examples to all fields of these names in the document. */
function withExamples(values: Record<string, readonly string[]>): unknown {
  return visit(JSON.parse(JSON.stringify(describeApi('0.0.0'))))

  function visit(node: unknown): unknown {
    if (Array.isArray(node)) return node.map(visit)
    if (typeof node !== 'object' || node === null) return node
    const one = Object.fromEntries(Object.entries(node).map(([name, value]) => [name, visit(value)])) as Node
    const own = typeof one.name === 'string' && one['in'] !== undefined ? values[one.name] : undefined
    if (own) one['examples'] = Object.fromEntries(own.map((value, at) => [`e${at}`, { value }]))
    if (one['type'] === 'object' && one.properties)
      for (const [name, schema] of Object.entries(one.properties)) {
        const found = values[name]
        if (found) one.properties[name] = { ...schema, examples: found }
      }
    return one
  }
}
