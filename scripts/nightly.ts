import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

// npm run test:nightly [-- inputs-per-decoder [seed]]
//
// Runs the trials that take too long for npm test, which `parts` lists. Properties get ten thousand runs each, and
// fuzzers a million inputs for each of the three decoders. The seed is the date, so that every night tries other
// inputs. A fuzzer prints an input that fails. Add it to test/translation/seeds.

const root = fileURLToPath(new URL('..', import.meta.url))
const inputs = 3 * Number(process.argv[2] ?? 1_000_000)
const seed = process.argv[3] ?? new Date().toISOString().slice(0, 10).replaceAll('-', '')

/** The limit of a property, in ms. Most end within two minutes, and the longest took ten on two shared cores. */
const propertyLimitMs = 3_600_000

const laws = globSync('test/**/*.test.ts', { cwd: root }).filter((file) =>
  readFileSync(new URL(`../${file}`, import.meta.url), 'utf8').includes('/support/runs.ts'),
)

const parts: Record<string, string[]> = {
  'properties, 10,000 runs': ['scripts/test.ts', `--test-timeout=${propertyLimitMs}`, ...laws],
  'models’ answers': ['scripts/fuzz-answers.ts', String(inputs), seed],
  'clients’ requests': ['scripts/fuzz-requests.ts', String(inputs), seed],
  'clients’ texts': ['scripts/fuzz-texts.ts', String(Math.ceil(inputs / 10)), seed],
  'clients’ bytes': ['scripts/fuzz-bodies.ts', String(inputs), seed],
  'the whole gateway': ['scripts/fuzz-gateway.ts', String(Math.ceil(inputs / 30)), seed],
  'bytes of HTTP, and three readers': ['scripts/fuzz-http.ts', '100000', seed],
  'what grows faster than its input': ['scripts/growth.ts'],
  'every fault': ['scripts/fault-matrix.ts'],
  'prices by the hour, and a second oracle': ['scripts/price-oracle.ts', '10000'],
  'surplus answers': ['scripts/surplus-answers.ts', '--trials', '100', '--honest', '100000', '--seed', seed],
  'clients of the admin API': ['scripts/admin-clients.ts'],
  'the conformance suite, and the proof of its cases': [
    'conformance/bin/bothsides.mjs',
    'run',
    '--adapter',
    'triwire',
    '--prove',
  ],
  'commands of the pages': ['scripts/docs-commands.ts'],
  'a release, twice': ['scripts/release-trial.ts'],
  attacks: ['scripts/attack.ts', '--minutes', '3'],
  'figures of a million entries': ['scripts/usage.ts', 'verify', '1000000'],
  'several gateways on PostgreSQL': ['scripts/replicas.ts', '--whole'],
  // These trials mount a file system, which they can do only on Linux.
  ...(process.platform === 'linux' && {
    'a full disk': ['scripts/full-disk.ts', '3'],
    'archives under kills, crashes and full disks': ['scripts/archive-faults.ts'],
  }),
}

const lines: string[] = []
for (const [name, command] of Object.entries(parts)) {
  console.log(`\n${name}: ${command.join(' ')}`)
  const started = performance.now()
  const env = { ...process.env, TRIWIRE_RUNS: '10000', TRIWIRE_TEST_STEP_LIMIT_MS: String(propertyLimitMs) }
  const { status } = spawnSync(process.execPath, command, { cwd: root, stdio: 'inherit', env })
  const minutes = ((performance.now() - started) / 60_000).toFixed(1)
  lines.push(`${status === 0 ? 'ok    ' : 'FAILED'} ${name}, ${minutes} min`)
  if (status !== 0) process.exitCode = 1
}
console.log(`\nseed ${seed}\n${lines.join('\n')}`)
