import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

// npm run check [-- --without-tests]
//
// Runs all checks that a change must pass. Tests run only if the other checks pass. The type check keeps its results on
// unchanged files for the next run. A check takes two minutes at most. So tests on PostgreSQL are left to `npm test`,
// and tests that cover little code for their time to `npm test -- --all`. With TRIWIRE_TEST_POSTGRES=1, tests on
// PostgreSQL run here too.

const root = fileURLToPath(new URL('..', import.meta.url))

const parts: Record<string, string[]> = {
  'format and lint': ['node_modules/@biomejs/biome/bin/biome', 'check', '--error-on-warnings', '.'],
  types: [
    'node_modules/typescript/bin/tsc',
    ...['-p', '.', '--incremental', '--tsBuildInfoFile', 'node_modules/.cache/triwire/types.tsbuildinfo'],
  ],
  'types of the console': [
    'node_modules/typescript/bin/tsc',
    ...['-p', 'console', '--incremental', '--tsBuildInfoFile', 'node_modules/.cache/triwire/console.tsbuildinfo'],
  ],
  'plain English': ['scripts/plain-english.ts'],
  'compiled assembly': ['scripts/assembly.ts', '--check'],
  'generated files': ['scripts/config-generated.ts', '--check'],
  'pages of translation': ['scripts/translation-docs.ts', '--check'],
  metrics: ['scripts/metrics-docs.ts', '--check'],
  'tables of errors and events': ['scripts/reference-docs.ts', '--check'],
  dashboard: ['scripts/dashboard.ts', '--check'],
  conformance: ['scripts/conformance.ts', '--check'],
  tests: ['scripts/test.ts', '--quick'],
}

const env = { TRIWIRE_TEST_POSTGRES: '0', ...process.env }
const lines: string[] = []
const { tests, ...others } = parts
// The parts run concurrently, because most of them use one core.
const results = await Promise.all(Object.entries(others).map(([name, command]) => runPart(name, command, 'pipe')))
for (const { output } of results) process.stdout.write(output)
const isGood = results.every(({ isOk }) => isOk)
if (!isGood) process.exitCode = 1
else if (!process.argv.includes('--without-tests')) await runPart('tests', tests!, 'inherit')
console.log(`\n${lines.join('\n')}`)

async function runPart(name: string, command: readonly string[], stdio: 'pipe' | 'inherit') {
  const started = performance.now()
  const child = spawn(process.execPath, command, { cwd: root, stdio: ['ignore', stdio, stdio], env })
  const pieces: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (piece) => pieces.push(piece))
  const [status] = await once(child, 'close')
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  const isOk = status === 0
  lines.push(`${isOk ? 'ok    ' : 'FAILED'} ${name}, ${seconds} s`)
  if (!isOk) process.exitCode = 1
  return { isOk, output: Buffer.concat(pieces) }
}
