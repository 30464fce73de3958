import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createBooks } from '../src/accounts/books.ts'
import { allOperations, describeApi } from '../src/operations/openapi.ts'
import { startTestGateway } from '../test/support/gateway.ts'
import { adminClientFiles } from './clients/admin-client.ts'

// node bin/node.mjs scripts/admin-clients.ts [--write]
//
// Makes clients of the admin API with public generators, compiles them, and counts the files of their models. Each
// client then makes a round trip with a real gateway: create, read, edit, write back, an error, revoke. `--write` only
// writes the TypeScript client, clients/admin. Needs npm, Python with venv, and Go, and reports a missing one.

const root = join(import.meta.dirname, '..')
const admin = join(root, 'clients/admin')
const folder = mkdtempSync(join(tmpdir(), 'triwire-admin-clients-'))

/** The groups of operations that a program for provisioning and billing needs. */
const groups = ['account', 'key', 'person', 'operator', 'audit', 'ledger', 'upstream', 'webhook']

const modelFilesMax = 60

/** The generators and their versions. */
const generators = { python: 'openapi-python-client==0.29.1', go: 'github.com/ogen-go/ogen/cmd/ogen@v1.24.0' }

try {
  if (process.argv.includes('--write')) await writeTypeScript()
  else await tryAll()
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/** Generates the client in a folder outside the sources, where the generator's packages are installed. */
async function makeTypeScript(): Promise<Record<string, string>> {
  for (const file of ['package.json', 'package-lock.json']) cpSync(join(admin, file), join(folder, file))
  must('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--silent'])
  return adminClientFiles((document) => {
    writeFileSync(join(folder, 'openapi.json'), JSON.stringify(document))
    must('node_modules/.bin/openapi-typescript', ['openapi.json', '--output', 'api.ts'])
    return readFileSync(join(folder, 'api.ts'), 'utf8')
  })
}

async function writeTypeScript(): Promise<void> {
  for (const [file, text] of Object.entries(await makeTypeScript())) writeFileSync(join(admin, file), text)
}

async function tryAll(): Promise<void> {
  writeFileSync(join(folder, 'groups.json'), JSON.stringify(describeApi('0.0.0', groups)))
  const gateway = await startTestGateway()
  const books = createBooks(gateway.store.asked, gateway.nowMs)
  const { token } = await books.createOperator('clients', 'admin', gateway.nowMs() + 86_400_000)
  const env = { ...process.env, ADMIN_URL: gateway.adminUrl, ADMIN_TOKEN: token }
  try {
    const clients = { TypeScript: tryTypeScript, Python: tryPython, Go: tryGo }
    for (const [name, tryOne] of Object.entries(clients)) {
      const said = await tryOne(env).catch((error: Error) => error)
      if (said instanceof Error) process.exitCode = 1
      console.log(
        `${said instanceof Error ? 'FAILED' : 'ok    '} ${name}: ${said instanceof Error ? said.stack : said}`,
      )
    }
    const made = await books.pageAccounts({ q: 'round trip', sort: 'created', limit: 10 })
    console.log(`${allOperations.length} operations; accounts made: ${made.map(({ name }) => name).join(', ')}`)
  } finally {
    await gateway.close()
  }
}

async function tryTypeScript(): Promise<string> {
  const files = await makeTypeScript()
  for (const [file, text] of Object.entries(files))
    assert.equal(readFileSync(join(admin, file), 'utf8'), text, `clients/admin/${file} is old: run with --write`)
  return 'clients/admin is what the generator makes; its round trip is test/clients/admin-client.test.ts'
}

async function tryPython(env: NodeJS.ProcessEnv): Promise<string> {
  must('python3', ['-m', 'venv', 'python'])
  must('python/bin/pip', ['install', '--quiet', generators.python, 'ruff'])
  const path = `${join(folder, 'python/bin')}:${process.env['PATH']}`
  must(
    'python/bin/openapi-python-client',
    ['generate', '--path', 'groups.json', '--output-path', 'admin', '--meta', 'none'],
    {
      ...process.env,
      PATH: path,
    },
  )
  const files = readdirSync(join(folder, 'admin/models')).filter(
    (name) => name.endsWith('.py') && name !== '__init__.py',
  )
  assert.ok(files.length <= modelFilesMax, `${files.length} files of models: at most ${modelFilesMax}`)
  must('python/bin/python', ['-m', 'compileall', '-q', 'admin'])
  cpSync(join(root, 'scripts/clients/round_trip.py'), join(folder, 'round_trip.py'))
  return `${files.length} files of models; ${await beside('python/bin/python', ['round_trip.py'], env)}`
}

async function tryGo(env: NodeJS.ProcessEnv): Promise<string> {
  const go = join(folder, 'go-client')
  mkdirSync(join(go, 'trip'), { recursive: true })
  const goEnv = { ...process.env, GOBIN: join(folder, 'bin'), GOFLAGS: '-mod=mod' }
  must('go', ['install', generators.go], goEnv)
  writeFileSync(join(go, 'go.mod'), 'module triwire.example/admin\n\ngo 1.25\n')
  must('bin/ogen', ['--target', 'go-client/admin', '--package', 'admin', '--clean', 'groups.json'])
  cpSync(join(root, 'scripts/clients/round-trip.go'), join(go, 'trip/main.go'))
  must('go', ['mod', 'tidy'], goEnv, go)
  must('go', ['build', '-o', '../bin/trip', './trip'], goEnv, go)
  const files = readdirSync(join(go, 'admin'))
  assert.ok(files.length <= modelFilesMax, `${files.length} files: at most ${modelFilesMax}`)
  return `${files.length} files; ${await beside('bin/trip', [], env)}`
}

/** Runs a program. @throws Error with its output if it fails or is missing */
function must(program: string, args: readonly string[], env = process.env, cwd = folder): void {
  const file = existsSync(join(folder, program)) ? join(folder, program) : program
  const { status, stdout, stderr, error } = spawnSync(file, args, { cwd, env, encoding: 'utf8' })
  if (error) throw new Error(`${program} cannot be run: ${error.message}`)
  if (status !== 0)
    throw new Error(`${program} ${args.join(' ')} ended with ${status}:\n${stdout}${stderr}`.slice(-4_000))
}

/** Runs a client of this process. @returns its last line @throws Error with its output if it fails */
async function beside(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
  const child = spawn(join(folder, program), args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (text += chunk))
  const [status] = await once(child, 'close')
  if (status !== 0) throw new Error(text)
  return text.trim().split('\n').at(-1)!
}
