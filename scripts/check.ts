import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

// npm run check [-- --without-tests]
//
// All that a change has to pass. It stops at the first part that fails. What the type check found out of files that have
// not changed is kept for the next one. Tests on PostgreSQL are left to `npm test`, which has no two minutes to stay under;
// with TRIWIRE_TEST_POSTGRES=1 they run here too.

const root = fileURLToPath(new URL('..', import.meta.url))

const parts: Record<string, string[]> = {
  'format and lint': ['node_modules/@biomejs/biome/bin/biome', 'check', '--error-on-warnings', '.'],
  types: [
    'node_modules/typescript/bin/tsc',
    ...['-p', '.', '--incremental', '--tsBuildInfoFile', 'node_modules/.cache/triwire/types.tsbuildinfo'],
  ],
  'generated files': ['scripts/config-generated.ts', '--check'],
  'pages of translation': ['scripts/translation-docs.ts', '--check'],
  metrics: ['scripts/metrics-docs.ts', '--check'],
  dashboard: ['scripts/dashboard.ts', '--check'],
  conformance: ['scripts/conformance.ts', '--check'],
  tests: ['scripts/test.ts'],
}

const env = { TRIWIRE_TEST_POSTGRES: '0', ...process.env }
const lines: string[] = []
for (const [name, command] of Object.entries(parts)) {
  if (name === 'tests' && process.argv.includes('--without-tests')) continue
  const started = performance.now()
  const { status } = spawnSync(process.execPath, command, { cwd: root, stdio: 'inherit', env })
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  lines.push(`${status === 0 ? 'ok    ' : 'FAILED'} ${name}, ${seconds} s`)
  if (status !== 0) {
    process.exitCode = 1
    break
  }
}
console.log(`\n${lines.join('\n')}`)
