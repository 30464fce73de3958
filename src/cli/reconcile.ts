import { type Command, InvalidArgumentError, Option } from 'commander'
import type { ExportProvider, ExportRow } from '../accounts/reconcile/exports.ts'
import { eachLogLine } from './access-log.ts'
import { formatRows, formatTable, print, readText } from './print.ts'
import { withStore } from './store.ts'

type ReconcileFlags = {
  provider: ExportProvider
  upstream?: string[]
  owner?: string[]
  model?: [string, string][]
  log?: string[]
}

/** Entries are also read for these times before and after an export, in ms, because debits and refunds may be late. */
const readMs = { before: 86_400_000, after: 7 * 86_400_000 }

/** Patterns for the names of each provider's upstreams. They apply if the command line names no upstreams. */
const usualNames: Record<ExportProvider, RegExp> = {
  openai: /^openai/i,
  anthropic: /^(anthropic|claude)/i,
  aws: /^(aws|bedrock)/i,
  openrouter: /^openrouter/i,
}

/** Adds `reconcile`, which compares an export of a provider with the ledger and writes nothing. */
export function addReconcileCommand(program: Command): void {
  program
    .command('reconcile')
    .argument('<file>', 'the export: pages of the usage API as JSON, or a cost and usage report (CUR 2.0) as CSV')
    .description(
      'compare the tokens in an export of a provider with the ledger; fails if a difference has no known reason',
    )
    .addOption(
      new Option('--provider <provider>', 'the provider that made the export')
        .choices(['openai', 'anthropic', 'aws', 'openrouter'])
        .makeOptionMandatory(),
    )
    .option(
      '--upstream <name...>',
      'the upstreams of this provider; default: upstreams whose names begin with the name of the provider, for aws also with bedrock',
    )
    .option('--owner <id...>', 'the keys, projects, workspaces or users in the export that are yours; default: all')
    .option(
      '--model <theirs=ours>',
      'the model of the catalog for a model name in the export; the option can be repeated',
      readPair,
      [],
    )
    .option('--log <file...>', 'access logs as JSON lines, which show failed attempts')
    .action((file: string, flags: ReconcileFlags, command: Command) => compare(command, file, flags))
}

async function compare(command: Command, file: string, flags: ReconcileFlags): Promise<void> {
  const { provider, upstream, owner, model = [], log = [] } = flags
  const { exportFormats, isRefund } = await import('../accounts/reconcile/exports.ts')
  const { coverSpan, differenceClasses, reconcile } = await import('../accounts/reconcile/reconcile.ts')
  const rows = exportFormats[provider].read(readText(file, 'name the file of the export'))
  if (rows.every((row) => isRefund(row) || row.isCharge)) throw new Error(`${file} has no row of usage`)
  const { fromMs, untilMs } = coverSpan(rows)
  const span = { sinceMs: fromMs - readMs.before, untilMs: untilMs + readMs.after }
  const isOf = (name = '') => (upstream ? upstream.includes(name) : usualNames[provider].test(name))
  const options = {
    provider,
    isOf,
    owners: owner && new Set(owner),
    names: new Map(model),
    attempts: await readAttempts(log),
  }
  const told = await withStore(command, (books) => reconcile(rows, books.eachEntry(span), options))
  if (told.ours === 0)
    throw new Error(
      `The ledger has no debit of such an upstream at that time: name those of ${provider} with --upstream`,
    )
  if (told.matched === 0) throw new Error(explainNoMatch(rows, told.models, owner))
  print(command, told, () => {
    const names = Object.keys(differenceClasses) as (keyof typeof differenceClasses)[]
    const cells = told.rows.map(({ from, until, model, kind, export: theirs, billed, classes, unexplained }) => [
      ...[from, until, model, kind, `${theirs}`, `${billed}`],
      ...names.map((name) => `${classes[name] ?? '-'}`),
      `${unexplained}`,
    ])
    const head = ['from', 'until', 'model', 'kind', 'export', 'billed', ...names, 'unexplained']
    const skipped = told.negative ? `, ${told.negative} negative lines skipped` : ''
    const end = `${told.compared} figures compared, ${told.unexplained} tokens unexplained${skipped}`
    const costs = formatRows(['from', 'until', 'model', 'charged', 'cost', 'class'], told.costs)
    const tables = [...(cells.length > 0 ? [formatTable(head, cells)] : []), ...(told.costs.length > 0 ? [costs] : [])]
    return `${tables.map((table) => `${table}\n`).join('\n')}${end}`
  })
  if (told.unexplained !== 0) process.exitCode = 1
}

function explainNoMatch(rows: readonly ExportRow[], models: readonly string[], owner: string[] | undefined): string {
  const first = (names: Iterable<string>) => [...new Set(names)].slice(0, 5).join(', ') || 'none'
  const theirs = `models ${first(rows.map(({ model }) => model))} of owners ${first(rows.flatMap(({ owners }) => owners))}`
  const cure = `name models with --model theirs=ours${owner ? ', and your keys or projects with --owner' : ''}`
  return `No row of the export matches a debit. It has ${theirs}; the ledger has ${first(models)}: ${cure}`
}

function readPair(text: string, before: [string, string][]): [string, string][] {
  const [, theirs, ours] = /^(.+)=([^=]+)$/.exec(text) ?? []
  if (!theirs || !ours) throw new InvalidArgumentError('Write it like claude4.5sonnet=claude-sonnet.')
  return [...before, [theirs, ours]]
}

async function readAttempts(files: readonly string[]): Promise<Map<string, number>> {
  const attempts = new Map<string, number>()
  for await (const line of eachLogLine(files)) {
    const [, id] = /"id":"(req_\w+)"/.exec(line) ?? []
    const [, count] = /"attempts":(\d+)/.exec(line) ?? []
    if (id && Number(count) > 1) attempts.set(id, Number(count) - 1)
  }
  return attempts
}
