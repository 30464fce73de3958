import { accessSync, constants, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { type Adapter, adapterNames } from './adapter.ts'
import { createProofs } from './bad-traces.ts'
import type { Case, Wire } from './case.ts'
import { levels, wires } from './case.ts'
import { explain } from './explain.ts'
import { loadCases, pairsOf } from './load-cases.ts'
import { startModel } from './model.ts'
import { advice, askOnce, isKeptAway, whyUnreachable } from './reach.ts'
import {
  compareBaseline,
  drawBadge,
  type ExpectedFailure,
  type Report,
  type Result,
  verdictNames,
  writeJunit,
  writeMarkdown,
} from './report.ts'
import { runCases, type Subject } from './run.ts'

const help = `Usage: bothsides COMMAND [options]

Commands:
  run               run the cases against a gateway
  report FILE       write the page, the JUnit file and the badges of a kept report
  explain CASE      show a case: its clause, its requests, its script and what it expects
  check             read all case files, and list them

Options of run:
  --gateway URL     a gateway that runs already; with --key
  --key KEY         the key that the client sends (or BOTHSIDES_KEY)
  --upstream-port N the port of the scripted model on 127.0.0.1; default 8970
  --adapter NAME    configure, start and stop an installed gateway (adapters/NAME)
  --endpoint        ask only what holds with any model; with --gateway, --key and --model
  --model NAME      the model of --endpoint
  --wires LIST      the models that are configured: chat,responses,messages; default: all
  --only TEXT       run cases whose id has this text, such as streams/ or usage; may be given several times
  --level LEVEL     run cases of this level only
  --jobs N          cases at a time; the gateway then needs N models of each wire; default 1, or the adapter's
  --lanes N         use N models of each wire in turn, for a gateway that rests a model after failures; default as --jobs
  --baseline FILE   expected failures, as JSON: [{"case", "pair", "why"}]; an entry that does not fail is an error
  --prove           make wrong runs of each that passed, and check that every expectation notices one
  --out FOLDER      write results.json, results.md, results.xml and a badge for each level

Exit codes: 0 no MUST and no SHOULD fails that the baseline does not have; 1 one fails, or an entry of the baseline is stale;
2 the command line or a case file is wrong; 3 the gateway cannot be reached or started, or asks no model; 130 or 143 the run was interrupted.
`

const suite = JSON.parse(readFileSync(join(import.meta.dirname, '../package.json'), 'utf8')).version as string

/** The options of each command, and of each kind of run. All others are refused, because they would have no effect. */
const optionsOf: { readonly [command: string]: readonly string[] } = {
  'run --adapter': ['adapter', 'upstream-port', 'only', 'level', 'jobs', 'baseline', 'prove', 'out'],
  'run --gateway': 'gateway key upstream-port wires only level jobs lanes baseline prove out'.split(' '),
  'run --endpoint': 'endpoint gateway key model only level jobs baseline prove out'.split(' '),
  report: ['out'],
  explain: [],
  check: [],
}

/** An error with the exit code that it ends the process with. */
class Exit extends Error {
  readonly code: number
  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

/** Rejects when the user ends the run. What was started is then stopped, and a second signal ends the process at once. */
const interrupted = Promise.withResolvers<never>()
interrupted.promise.catch(() => {})
const ending = new AbortController()
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)
  process.once(signal, () => {
    ending.abort()
    interrupted.reject(new Exit(code, 'interrupted: what was started is stopped'))
  })

function unlessInterrupted<T>(work: Promise<T>): Promise<T> {
  return Promise.race([work, interrupted.promise])
}

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  const { message } = error as Error
  console.error(message)
  process.exitCode = error instanceof Exit ? error.code : 2
  // Otherwise the cases that still run would go on.
  if (Number(process.exitCode) > 128) process.exit()
}

async function main(words: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: words,
    allowPositionals: true,
    options: {
      gateway: { type: 'string' },
      key: { type: 'string' },
      'upstream-port': { type: 'string' },
      adapter: { type: 'string' },
      endpoint: { type: 'boolean' },
      model: { type: 'string' },
      wires: { type: 'string' },
      only: { type: 'string', multiple: true },
      level: { type: 'string' },
      jobs: { type: 'string' },
      lanes: { type: 'string' },
      baseline: { type: 'string' },
      out: { type: 'string' },
      prove: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  const [command, ...rest] = positionals
  if (values.help || !command) {
    console.log(help)
    return command || values.help ? 0 : 2
  }
  refuseNeedless(command, values, rest)
  if (command === 'run') return run(values)
  const [name] = rest
  if (command === 'check') {
    const cases = loadCases()
    for (const one of cases) console.log(`${one.level.padEnd(6)} ${one.id}, ${pairsOf(one).length} pairs: ${one.title}`)
    const counts = levels.map((level) => `${cases.filter((one) => one.level === level).length} ${level}`)
    console.log(`${cases.length} cases: ${counts.join(', ')}`)
    return 0
  }
  if (command === 'explain') {
    if (!name) throw new Exit(2, 'explain needs the id of a case; bothsides check lists all')
    const one = loadCases().find(({ id }) => id === name || id.split('/')[1] === name)
    if (!one) throw new Exit(2, `there is no case ${name}; bothsides check lists all`)
    console.log(explain(one))
    return 0
  }
  if (command === 'report') {
    if (!name) throw new Exit(2, 'report needs the results.json of a run')
    const report = readJson(name) as Report
    if (!isReport(report)) throw new Exit(2, `${name} is no results.json of a run`)
    if (values.out) makeFolder(values.out)
    if (values.out) writeReport(report, values.out)
    else console.log(writeMarkdown(report))
    return 0
  }
  throw new Exit(2, `there is no command ${command}; bothsides --help lists all`)
}

/** Refuses options and words that would have no effect: probably they are mistakes. */
function refuseNeedless(command: string, values: Options, rest: readonly string[]): void {
  const kind = values.adapter !== undefined ? ' --adapter' : values.endpoint ? ' --endpoint' : ' --gateway'
  const name = command === 'run' ? command + kind : command
  const known = optionsOf[name]
  if (!known) return
  const needless = Object.keys(values).find((option) => !known.includes(option))
  if (needless) throw new Exit(2, `--${needless} does not go with ${name}; bothsides --help`)
  const word = rest[command === 'explain' || command === 'report' ? 1 : 0]
  if (word !== undefined) throw new Exit(2, `${name} does not take the word ${word}; bothsides --help`)
}

/** Whether JSON is a report as `run` keeps it. */
function isReport(report: Report | null): report is Report {
  return (
    typeof report?.gateway?.name === 'string' &&
    Array.isArray(report.switchedOn) &&
    Array.isArray(report.results) &&
    report.results.every(
      (one) =>
        typeof one?.case === 'string' &&
        levels.includes(one.level) &&
        verdictNames.includes(one.verdict) &&
        Array.isArray(one.differences),
    )
  )
}

/** Makes the folder of `--out` before the run, whose results would be lost if that failed. */
function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true })
    accessSync(folder, constants.W_OK)
  } catch (error) {
    throw new Exit(2, `--out: ${folder} cannot be written to: ${(error as Error).message}`)
  }
}

type Options = {
  gateway?: string
  key?: string
  'upstream-port'?: string
  adapter?: string
  endpoint?: boolean
  model?: string
  wires?: string
  only?: string[]
  level?: string
  jobs?: string
  lanes?: string
  baseline?: string
  out?: string
  prove?: boolean
}

async function run(options: Options): Promise<number> {
  const all = loadCases()
  const cases = choose(all, options)
  const baseline = readBaseline(options.baseline, all)
  if (options.out) makeFolder(options.out)
  const started = Date.now()
  const proofs = createProofs()
  // Proofs are made after the run, because no answer could be read while one is computed.
  const traces: Parameters<typeof proofs.add>[] = []
  const onTrace = options.prove ? { onTrace: (...traced: (typeof traces)[number]) => traces.push(traced) } : {}
  const { gateway, switchedOn, results } = options.adapter
    ? await runAdapter(options.adapter, cases, options, onTrace)
    : await runGateway(cases, options, onTrace)
  const seconds = Math.round((Date.now() - started) / 1_000)
  const day = new Date().toISOString().slice(0, 10)
  const report: Report = { suite, gateway, day, node: process.versions.node, switchedOn, seconds, results }
  if (options.out) writeReport(report, options.out)
  const code = conclude(report, baseline)
  if (!options.prove) return code
  for (const traced of traces) proofs.add(...traced)
  const { text, isBlind } = proofs.tell()
  console.log(text)
  return isBlind ? 1 : code
}

function choose(cases: readonly Case[], { only, level, endpoint }: Options): Case[] {
  if (level && !levels.includes(level as never)) throw new Exit(2, `--level is one of ${levels.join(', ')}`)
  const unmatched = only?.find((text) => !cases.some(({ id }) => id.includes(text)))
  if (unmatched !== undefined)
    throw new Exit(2, `--only: no case has ${JSON.stringify(unmatched)} in its id; bothsides check lists all`)
  const chosen = cases.filter(
    (one) =>
      (!only || only.some((text) => one.id.includes(text))) &&
      (!level || one.level === level) &&
      (!endpoint || one.endpoint),
  )
  if (chosen.length === 0) throw new Exit(2, 'no case is chosen; bothsides check lists all')
  return chosen
}

function readBaseline(file: string | undefined, cases: readonly Case[]): ExpectedFailure[] {
  if (!file) return []
  const content = readJson(file) as ExpectedFailure[]
  if (!Array.isArray(content)) throw new Exit(2, `${file} is a list of entries with a case and why`)
  const wrong = content.find((entry) => typeof entry?.case !== 'string' || !entry.why)
  if (wrong !== undefined) throw new Exit(2, `${file}: each entry has a case and why; ${JSON.stringify(wrong)} has not`)
  const ids = new Set(cases.map(({ id }) => id))
  const unknown = content.find((entry) => !ids.has(entry.case))
  if (unknown) throw new Exit(2, `${file}: there is no case ${unknown.case}; bothsides check lists all`)
  return content
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new Exit(2, `${file} cannot be read as JSON: ${(error as Error).message}`)
  }
}

type Run = { gateway: Report['gateway']; switchedOn: readonly string[]; results: Result[] }

async function runAdapter(
  name: string,
  cases: readonly Case[],
  options: Options,
  more: Partial<Subject>,
): Promise<Run> {
  if (!/^[a-z0-9-]+$/.test(name)) throw new Exit(2, `there is no adapter ${name}`)
  const file = join(import.meta.dirname, '../adapters', name, 'adapter.ts')
  if (!existsSync(file)) throw new Exit(2, `there is no adapter ${name}`)
  const module = await import(pathToFileURL(file).href)
  const adapter = module.default as Adapter
  const found = await adapter.find()
  if ('missing' in found) throw new Exit(3, `${adapter.title}: ${found.missing}`)
  const { lanes, names = adapterNames } = adapter
  const model = await listen(count(options['upstream-port'], '--upstream-port') ?? 0)
  const folder = mkdtempSync(join(tmpdir(), 'bothsides-'))
  try {
    const models = wires.flatMap((wire) =>
      Array.from({ length: lanes }, (_, at) => ({ wire, lane: at + 1, ...names(wire, at + 1) })),
    )
    const upstream = { origin: `http://127.0.0.1:${model.port}`, key: 'bothsides-upstream-key' }
    const prices = JSON.parse(readFileSync(join(import.meta.dirname, '../prices.json'), 'utf8'))
    const starting = adapter.start({ upstream, models, prices, folder, signal: ending.signal })
    try {
      const running = await unlessInterrupted(starting).catch((error: Error) => {
        throw error instanceof Exit ? error : new Exit(3, `${adapter.title} does not start: ${error.message}`)
      })
      const jobs = count(options.jobs, '--jobs') ?? adapter.jobs ?? 1
      const subject = { ...adapter, ...running, model, names, jobs, onResult: show, ...more }
      const results = await unlessInterrupted(runCases(cases, subject))
      const gateway = {
        name: adapter.title,
        version: found.version,
        ...(adapter.homepage && { homepage: adapter.homepage }),
      }
      return { gateway, switchedOn: adapter.switchedOn, results }
    } finally {
      await starting.then(
        (running) => running.stop(),
        () => {},
      )
    }
  } finally {
    await model.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function runGateway(cases: readonly Case[], options: Options, more: Partial<Subject>): Promise<Run> {
  const { gateway, endpoint } = options
  const key = options.key ?? process.env['BOTHSIDES_KEY']
  if (!gateway || !key) throw new Exit(2, 'run needs --adapter NAME, or --gateway URL and --key KEY; bothsides --help')
  const origin = readOrigin(gateway)
  if (endpoint && !options.model) throw new Exit(2, '--endpoint needs --model NAME')
  const jobs = count(options.jobs, '--jobs') ?? 1
  const lanes = Math.max(jobs, count(options.lanes, '--lanes') ?? 1)
  const chosen = (options.wires?.split(',') ?? [...wires]) as Wire[]
  const unknown = chosen.find((wire) => !wires.includes(wire))
  if (unknown) throw new Exit(2, `--wires has ${unknown}; there are ${wires.join(', ')}`)
  const port = endpoint ? 0 : (count(options['upstream-port'], '--upstream-port') ?? 8970)
  if (!endpoint) console.log(describeSetting(port, lanes, chosen))
  const reason = await unlessInterrupted(whyUnreachable(origin))
  if (reason) throw new Exit(3, `${origin} cannot be reached: ${reason}`)
  const model = await listen(port)
  try {
    const named = { client: options.model!, upstream: options.model! }
    const subject: Subject = {
      origin,
      key,
      model,
      features: ['keys'],
      deviations: [],
      lanes,
      jobs,
      names: endpoint ? () => named : adapterNames,
      pairs: wires.flatMap((client) => chosen.map((one) => `${client}>${one}`)),
      onResult: show,
      ...more,
    }
    const { failed, isAll } = await unlessInterrupted(askOnce(subject, endpoint ? undefined : chosen))
    if (isAll) throw new Exit(3, failed)
    if (failed) console.log(`${failed}\n`)
    const results = await unlessInterrupted(runCases(endpoint ? cases.map(withoutModel) : cases, subject))
    if (!endpoint && results.filter(isKeptAway).length > 5) console.log(advice)
    return { gateway: { name: origin, version: 'unknown' }, switchedOn: [], results }
  } finally {
    await model.close()
  }
}

async function listen(port: number): Promise<Subject['model']> {
  return startModel(port).catch((error: Error) => {
    throw new Exit(3, `the model cannot listen on port ${port}: ${error.message}`)
  })
}

/** The client's side of a case, once for each wire of the client. */
function withoutModel({ model, pairs, ...one }: Case): Case {
  return one
}

function describeSetting(port: number, lanes: number, chosen: readonly Wire[]): string {
  const lines = chosen.flatMap((wire) => {
    const names = Array.from({ length: lanes }, (_, at) => adapterNames(wire, at + 1).client)
    if (lanes > 4) return [`  ${names[0]}, ${names[1]} … ${names.at(-1)}   ${wire}`]
    return names.map((name) => `  ${name.padEnd(24)} ${wire}`)
  })
  return `The gateway needs these models, with the same name for clients and at the upstream:

  Base URL    http://127.0.0.1:${port} (with /v1 if the gateway wants it)
  Key         bothsides-upstream-key
  Output      up to 32,000 tokens
  Features    functions, images, PDFs, and reasoning with the efforts low, medium and high
  Prices      2 USD for a million input tokens, 0.5 cached, 2.5 written to the cache, 8 output

${lines.join('\n')}

Switch off what answers in the model's place or keeps it away: caches, retries with other models, cooldowns, rate limits.
`
}

function readOrigin(text: string): string {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol)) throw new Exit(2, `--gateway is a URL such as http://127.0.0.1:8080`)
  return url.href.replace(/\/+(v1\/*)?$/, '')
}

function count(text: string | undefined, option: string): number | undefined {
  if (text === undefined) return undefined
  if (!/^[1-9]\d{0,4}$/.test(text) || Number(text) > 65_535) throw new Exit(2, `${option} is a number from 1 to 65535`)
  return Number(text)
}

function show({ case: id, pair, verdict, note, differences, level }: Result): void {
  if (verdict === 'pass') return
  console.log(`${verdict.padEnd(11)} ${level.padEnd(6)} ${id} ${pair}`)
  for (const line of [note, ...differences.slice(0, 4)].filter(Boolean)) console.log(`              ${line}`)
}

function writeReport(report: Report, folder: string): void {
  writeFileSync(join(folder, 'results.json'), `${JSON.stringify(report, null, 1)}\n`)
  writeFileSync(join(folder, 'results.md'), writeMarkdown(report))
  writeFileSync(join(folder, 'results.xml'), writeJunit(report))
  for (const level of levels) writeFileSync(join(folder, `${level.toLowerCase()}.svg`), drawBadge(report, level))
}

function conclude(report: Report, baseline: readonly ExpectedFailure[]): number {
  const { unexpected, stale } = compareBaseline(report.results, baseline)
  const [, counts] = writeMarkdown(report).split('## Cases\n')
  console.log(`\n${counts!.split('\n## ')[0]!.trim()}\n`)
  for (const { case: id, pair } of stale)
    console.log(`stale: the baseline expects ${id}${pair ? ` ${pair}` : ''} to fail, and it does not`)
  const severe = unexpected.filter(({ level }) => level !== 'MAY')
  console.log(
    `${report.results.length} expansions in ${report.seconds} s; ${severe.length} of MUST and SHOULD fail unexpectedly`,
  )
  return severe.length > 0 || stale.length > 0 ? 1 : 0
}
