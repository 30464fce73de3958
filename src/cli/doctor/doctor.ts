import { type Command, InvalidArgumentError, Option } from 'commander'
import { findClientUrl, originOf } from '../../config/client-url.ts'
import { timeoutOption } from '../options.ts'
import { clearProgress, formatTable, note, print, showProgress } from '../print.ts'
import type { Probe, ProbedGateway, ProbeFinding } from './probe.ts'

type DoctorOptions = {
  key?: string
  signIn?: true
  model: string[]
  modelsMax: number
  baseUrl?: string
  timeout: number
}

/** Adds `doctor`, which sends requests to a gateway as clients would: text, stream, tools, reasoning, cache, errors. */
export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .description('test a running gateway as a client would, on every wire, and report failures')
    .addOption(
      new Option('--key <key>', 'an API key of an account with credit; the probes are billed').env('TRIWIRE_KEY'),
    )
    .addOption(
      new Option('--model <id>', 'a model to test; the option can be repeated')
        .argParser(addModel)
        .default([], 'the first models that the gateway lists'),
    )
    .option('--models-max <number>', 'how many of the listed models are tested', readCount, 10)
    .option('--base-url <url>', 'the address of the gateway (default: the address in the configuration)', readOrigin)
    .addOption(timeoutOption('the time limit of each request, such as 500ms, 60s or 2m', '60s'))
    .option('--sign-in', 'check only sign-in: no key is needed, and nothing is billed')
    .action(async (options: DoctorOptions, command: Command) => {
      const { modelsMax, timeout: timeoutMs } = options
      if (options.signIn) return checkSignInOnly(options, command)
      const key = needKey(options.key ?? (await findBearer(options)), command)
      const { origin, clientUrl } = await findAddresses(options, command)
      const { chooseModels } = await import('./choose-models.ts')
      const chosen = await chooseModels({ origin, key, named: options.model, modelsMax, timeoutMs })
      const { models, skipped, isPeer } = chosen
      if (skipped > 0) note(command, `${skipped} more models are listed: --models-max or --model asks them too`)
      const findings = await probeAll(models, { origin, key, timeoutMs, isPeer })
      const { checkSignIn, offersSignIn } = await import('./sign-in.ts')
      if (!isPeer && (await offersSignIn({ origin, timeoutMs })))
        findings.push(...(await checkSignIn({ origin: clientUrl, timeoutMs })))
      report(command, origin, models, findings)
    })
}

async function checkSignInOnly(options: DoctorOptions, command: Command): Promise<void> {
  const { clientUrl: origin } = await findAddresses(options, command)
  const { checkSignIn } = await import('./sign-in.ts')
  report(command, origin, [], await checkSignIn({ origin, timeoutMs: options.timeout }))
}

/** Returns the token of a person who is signed in at the gateway. Undefined without a valid token. */
async function findBearer({ baseUrl }: DoctorOptions): Promise<string | undefined> {
  if (baseUrl === undefined) return undefined
  const { readBearer } = await import('../login/bearer.ts')
  return readBearer(baseUrl, () => {}).catch(() => undefined)
}

function report(command: Command, origin: string, models: readonly string[], findings: readonly ProbeFinding[]): void {
  const isHealthy = findings.every(({ result }) => result !== 'failed')
  const tokens = findings.reduce((sum, finding) => sum + finding.tokens, 0)
  print(command, { ok: isHealthy, base_url: origin, models, tokens, findings: findings.map(toRow) }, () =>
    describe(origin, tokens, findings),
  )
  if (!isHealthy) process.exitCode = 1
}

async function probeAll(models: readonly string[], target: ProbedGateway): Promise<ProbeFinding[]> {
  const { planProbes } = await import('./plan-probes.ts')
  const { runProbe } = await import('./run-probe.ts')
  const probes = planProbes(models)
  const findings: ProbeFinding[] = []
  const unserved = new Set<string>()
  try {
    for (const [at, probe] of probes.entries()) {
      const place = `${probe.wire} ${probe.model}`
      if (unserved.has(place)) continue
      showProgress(describePlace(at, probes.length, probe))
      const finding = await runProbe(probe, target)
      const isUnserved = target.isPeer && probe.name === 'text' && unservedStatuses.includes(finding.status ?? 0)
      if (isUnserved) unserved.add(place)
      findings.push(
        isUnserved ? { ...finding, result: 'none', note: `not served on this wire: ${finding.note}` } : finding,
      )
    }
  } finally {
    clearProgress()
  }
  return findings
}

/** The statuses with which a server answers on the path of a wire that it does not have. */
const unservedStatuses = [404, 405, 501]

/** Checks the characters of the key here, because later errors would quote the key. */
function needKey(key: string | undefined, command: Command): string {
  if (!key)
    command.error(
      "error: a key is needed: give --key or set TRIWIRE_KEY ('triwire key create' makes one), or sign in with triwire login",
    )
  if (!/^[\x21-\x7e]+$/.test(key))
    command.error('error: the key of --key or TRIWIRE_KEY has characters that no key has')
  return key
}

/**
 * Finds the address to which probes are sent. `clientUrl` is the address at which people sign in, which may be that of
 * a proxy in front of the gateway.
 */
async function findAddresses({ baseUrl }: DoctorOptions, command: Command) {
  if (baseUrl !== undefined) return { origin: baseUrl, clientUrl: baseUrl }
  const { glanceAtConfig } = await import('../../config/load.ts')
  const config = glanceAtConfig(command.optsWithGlobals())
  const { listen, tls } = config
  if (listen.port === 0) throw new Error('The configuration lets the gateway choose its port: name it with --base-url')
  return { origin: originOf(listen, tls ? 'https' : 'http'), clientUrl: findClientUrl(config).url }
}

function addModel(id: string, before: string[]): string[] {
  return [...before, id]
}

function readCount(text: string): number {
  if (!/^[1-9]\d{0,4}$/.test(text)) throw new InvalidArgumentError('It is a number from 1 on.')
  return Number(text)
}

/** Accepts a URL with or without `/v1`, because settings of clients have both forms. */
function readOrigin(text: string): string {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol)) throw new InvalidArgumentError('Write it like http://127.0.0.1:8080.')
  if (url.username || url.password || url.search || url.hash) {
    throw new InvalidArgumentError('It has no user name, query or fragment in it.')
  }
  return url.href.replace(/\/+(v1\/*)?$/, '')
}

function describePlace(at: number, total: number, { model, wire, name }: Probe): string {
  return [`${at + 1} of ${total}:`, model, wire, name].filter((word) => word !== null).join(' ')
}

function toRow({ model, wire, probe, result, firstByteMs, totalMs, tokens, note }: ProbeFinding) {
  return { model, wire, probe, result, first_byte_ms: firstByteMs, total_ms: totalMs, tokens, note }
}

const columns = ['model', 'wire', 'probe', 'result', 'first byte ms', 'total ms', 'tokens', 'note']

function describe(origin: string, tokens: number, findings: readonly ProbeFinding[]): string {
  const rows = findings.map((finding) => Object.values(toRow(finding)).map((value) => String(value ?? '-')))
  const failed = findings.filter(({ result }) => result === 'failed').length
  const verdict = failed === 0 ? 'all is well' : `${failed} of ${findings.length} probes failed`
  const bill = tokens === 0 ? '' : `; the probes took ${tokens} tokens, billed to the key's account`
  return `${origin}\n\n${formatTable(columns, rows)}\n\n${verdict}${bill}`
}
