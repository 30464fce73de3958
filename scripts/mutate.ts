import {
  chmodSync,
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { availableParallelism, tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { parse } from 'acorn'
import { createRandom } from '../src/store/seeded-random.ts'
import { findStale, isAccepted, readAccepted } from './mutate/accepted.ts'
import { instrument } from './mutate/instrument.ts'
import { createJudge, type Verdict } from './mutate/judge.ts'
import { findMutants, type Mutant } from './mutate/operators.ts'
import type { Instrumented } from './mutate/probe.ts'
import { tryMutants, visitMutants } from './mutate/run.ts'

// npm run test:mutations -- [folder or file of src …] [--sample 300] [--seed 1] [--jobs 2] [--report file]
//   [--root folder] [--tests folder or file] …
//
// Changes the code in one place at a time, and checks whether a test fails. Code whose change no test notices may break
// unnoticed. `--sample` limits the changes of each folder, chosen by `--seed`. Acceptable survivors are in
// scripts/mutants-accepted.json, with the reason. An entry there that matches no survivor fails the run.
//
// The run uses a copy of the checkout from its start, because files may change meanwhile.

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    sample: { type: 'string' },
    seed: { type: 'string', default: '1' },
    jobs: { type: 'string', default: `${Math.min(4, availableParallelism())}` },
    report: { type: 'string' },
    tests: { type: 'string', multiple: true, default: ['test'] },
    root: { type: 'string', default: join(import.meta.dirname, '..') },
  },
})
const jobs = Number(options.jobs)
const named = positionals.length > 0 ? positionals : ['src/gateway', 'src/accounts', 'src/store', 'src/upstream']
const misplaced = named.filter((path) => /^test(\/|$)/.test(path))
if (misplaced.length > 0) {
  console.error(`Tests are not changed (${misplaced.join(', ')}). Write --tests before each folder or file of tests.`)
  process.exit(2)
}

/** The time limit of a test file without a mutant, in ms, on a busy machine. */
const visitLimitMs = 300_000

// The path without links, as the module loader reports it.
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'triwire-mutants-')))
const root = join(folder, 'checkout')
// Tests start PostgreSQL as a user without privileges, who must reach its folder below this one.
chmodSync(folder, 0o711)
process.on('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1))
copyCheckout(resolve(options.root))
await run()

async function run(): Promise<void> {
  const { all, place } = prepare()
  const mutants = options.sample === undefined ? all : takeSample(all, Number(options.sample), Number(options.seed))
  say(`${mutants.length} of ${all.length} changes in ${new Set(all.map(({ file }) => file)).size} files`)

  const judge = createJudge({ place, mutants, tryMutants })
  const testFiles = globSync(
    options.tests.map((path) => (path.endsWith('.ts') ? path : `${path}/**/*.test.ts`)),
    { cwd: root },
  )
    .map((file) => file.replaceAll('\\', '/'))
    .sort()
  if (testFiles.length === 0) throw new Error(`no tests in ${options.tests.join(', ')}`)
  let done = 0
  await inTurns(testFiles, async (file) => {
    const visited = await visitMutants(place, file, visitLimitMs)
    if ('visits' in visited) judge.addVisits(file, visited.visits)
    else say(`  ${file} fails without any change and is left out:\n${visited.why.replaceAll(/^/gm, '    ')}`)
    if (++done % 20 === 0) say(`  ${done} of ${testFiles.length} test files read`)
  })

  const verdicts = new Map<number, Verdict>()
  const started = performance.now()
  const byId = new Map(mutants.map((mutant) => [mutant.id, mutant]))
  await inTurns(mutants, async (mutant) => {
    verdicts.set(mutant.id, await judge.tryAlone(mutant))
    if (verdicts.size % 50 > 0) return
    const left = (((performance.now() - started) / verdicts.size) * (mutants.length - verdicts.size)) / 60_000
    say(
      `  ${verdicts.size} of ${mutants.length} tried, ${count('unclear')} unclear, about ${left.toFixed(0)} min to go`,
    )
  })
  const unclear = mutants.filter(({ id }) => verdicts.get(id)!.is === 'unclear')
  const groups = judge.groupsOf(unclear)
  let settled = 0
  await inTurns(groups, async (group) => {
    for (const [id, verdict] of await judge.tryTogether(group)) verdicts.set(id, verdict)
    say(`  ${++settled} of ${groups.length} groups of what is unclear tried`)
  })
  tell(
    all,
    mutants.map((mutant) => [byId.get(mutant.id)!, verdicts.get(mutant.id)!]),
  )

  function count(is: Verdict['is']): number {
    return [...verdicts.values()].filter((verdict) => verdict.is === is).length
  }
}

/** Copies the checkout, because tests could fail on code that has changed since. */
function copyCheckout(from: string): void {
  const left = new Set(['.git', 'node_modules', '.clients'].map((name) => join(from, name)))
  cpSync(from, root, { recursive: true, filter: (path) => !left.has(path) })
  symlinkSync(join(from, 'node_modules'), join(root, 'node_modules'), 'junction')
}

/** Finds all mutants of the named files, and makes code that contains them all. */
function prepare() {
  const files = named
    .flatMap((path) => (statSync(join(root, path)).isDirectory() ? globSync(`${path}/**/*.ts`, { cwd: root }) : [path]))
    .map((file) => file.replaceAll('\\', '/'))
    .sort()
  const all: Mutant[] = []
  const instrumented: Instrumented = { count: 0, code: {} }
  for (const file of files) {
    const code = stripTypeScriptTypes(readFileSync(join(root, file), 'utf8'))
    const mutants = findMutants(file, code).map((mutant, i) => ({ ...mutant, id: all.length + i }))
    all.push(...mutants)
    const switched = instrument(code, mutants)
    // Invalid code would fail every test, so that all its mutants would seem to be caught.
    parse(switched, { ecmaVersion: 'latest', sourceType: 'module' })
    instrumented.code[pathToFileURL(join(root, file)).href] = switched
  }
  instrumented.count = all.length
  const codePath = join(folder, 'instrumented.json')
  writeFileSync(codePath, JSON.stringify(instrumented))
  const written = join(folder, 'written')
  mkdirSync(written)
  return { all, place: { root, folder: written, codePath } }
}

/** Takes a sample of each folder, which is the same for the same seed and code. */
function takeSample(all: readonly Mutant[], size: number, seed: number): Mutant[] {
  const chosen = Map.groupBy(all, ({ file }) => folderOf(file))
    .values()
    .flatMap((mutants) => {
      const random = createRandom(seed)
      const rank = new Map(mutants.map(({ id }) => [id, random()]))
      return mutants.toSorted((one, other) => rank.get(one.id)! - rank.get(other.id)!).slice(0, size)
    })
  return [...chosen].sort((one, other) => one.id - other.id)
}

function folderOf(file: string): string {
  return file.split('/').slice(0, 2).join('/')
}

async function inTurns<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const waiting = items.values()
  await Promise.all(
    Array.from({ length: jobs }, async () => {
      for (const item of waiting) await work(item)
    }),
  )
}

function tell(all: readonly Mutant[], results: readonly (readonly [Mutant, Verdict])[]): void {
  const accepted = readAccepted(join(root, 'scripts/mutants-accepted.json'))
  const survivors = results.filter(([, verdict]) => verdict.is === 'survived')
  const lines: string[] = []
  for (const [mutant, { why }] of survivors) {
    if (isAccepted(accepted, mutant)) continue
    const { file, line, within, operator, before, after } = mutant
    lines.push(`${file}:${line} ${operator} in ${within || 'the file'} (${why})\n    ${before}\n  → ${after}`)
  }
  lines.push('')
  for (const [name, of] of Map.groupBy(results, ([{ file }]) => folderOf(file))) lines.push(scoreOf(name, of))
  lines.push(scoreOf('all', results))
  const isWhole = (file: string) => options.sample === undefined && results.some(([mutant]) => mutant.file === file)
  const stale = findStale(
    accepted,
    all,
    isWhole,
    survivors.map(([mutant]) => mutant),
  )
  for (const entry of stale) lines.push(`accepted, but no survivor, or no change, any more: ${JSON.stringify(entry)}`)
  if (stale.length > 0) process.exitCode = 1
  const text = lines.join('\n')
  say(text)
  if (options.report) {
    mkdirSync(dirname(resolve(options.report)), { recursive: true })
    writeFileSync(options.report, `${text}\n`)
  }

  function scoreOf(name: string, of: readonly (readonly [Mutant, Verdict])[]): string {
    const number = (is: (mutant: Mutant, verdict: Verdict) => boolean) =>
      of.filter(([mutant, verdict]) => is(mutant, verdict)).length
    const caught = number((_, { is }) => is !== 'survived')
    const excused = number((mutant, { is }) => is === 'survived' && isAccepted(accepted, mutant))
    const late = number((_, { is }) => is === 'late')
    const unvisited = number((_, { is, why }) => is === 'survived' && why === 'no test comes by')
    const share = (part: number, whole: number) => `${((100 * part) / Math.max(1, whole)).toFixed(1)} %`
    const scored = `${share(caught, of.length)} caught, ${share(caught, of.length - excused)} without the accepted`
    return `${name}: ${of.length} changes, ${scored}; ${late} by the time limit, ${unvisited} that no test comes by, ${excused} accepted`
  }
}

function say(text: string): void {
  console.log(text)
}
