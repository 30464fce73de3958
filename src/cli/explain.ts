import type { Command } from 'commander'
import { withoutKeys } from '../accounts/keys.ts'
import type { Explanation } from '../process/explanation.ts'
import { adminOption, askServer } from './admin.ts'
import { formatFields, formatTable, note, print } from './print.ts'
import { withStore } from './store.ts'

/** `explain`: why a request was answered as it was. The running server knows most; the ledger knows what was billed. */
export function addExplainCommand(program: Command): void {
  program
    .command('explain <request-id>')
    .description('tell why a request was answered as it was: attempts, losses, usage, price, settlement')
    .option(...adminOption)
    .action(async (requestId: string, _options, command: Command) => {
      const explanation = await find(requestId, command)
      print(command, explanation, () => describe(explanation))
    })
}

/** @throws Error where nobody knows of it, with what that may mean. */
async function find(requestId: string, command: Command): Promise<Explanation> {
  const shown = withoutKeys(requestId)
  // Whatever else is typed names no request, and belongs in no path.
  if (!/^[\w-]{1,100}$/.test(requestId))
    throw new Error(`"${shown}" is not a request id: it stands in x-request-id of the answer, such as req_…`)
  const told = await askServer(command, `/api/v1/requests/${requestId}/explain`)
  if ('status' in told && told.status === 200) return told.body as Explanation
  if ('status' in told && told.status === 404)
    throw new Error(
      `There is no request ${shown}: it is not among the last ones that the server remembers, and has no debit; refused and failed requests have none`,
    )
  const trouble = 'trouble' in told ? told.trouble : `the server says: ${(told.body as { detail?: string }).detail}`
  note(command, trouble)
  const debit = await withStore(command, (books) => books.findDebit(requestId))
  if (!debit)
    throw new Error(
      `The ledger has no debit of request ${shown}, and no server could be asked: refused and failed requests have none`,
    )
  const { explainDebit } = await import('../process/explanation.ts')
  return explainDebit(debit)
}

const fromLedger =
  'not known: this is from the ledger, which has neither attempts nor losses (who answered: triwire ledger show)'

function describe(explanation: Explanation): string {
  const { request_id, account, key, model, alias, wire, attempts, stopped, losses, usage, price, settlement } =
    explanation
  const wires = [wire.client && `asked in ${wire.client}`, wire.model && `answered in ${wire.model}`]
  const head = {
    request: request_id,
    account: named(account?.name, account?.id),
    key: named(key?.prefix, key?.id),
    model: model === null ? '-' : alias === null ? model : `${model} (asked for as ${alias})`,
    wires: wires.filter(Boolean).join(', ') || '-',
  }
  return [
    formatFields(head),
    section('attempts', attempts && describeAttempts(attempts, stopped)),
    section('losses', losses && formatRows(losses)),
    section('usage', usage ? formatFields(usage) : 'none'),
    section('price, credits per million tokens', price ? formatFields(price) : 'none'),
    section('settlement', formatFields(told(settlement))),
  ].join('\n\n')
}

const stops: Record<NonNullable<Explanation['stopped']>, string> = {
  seen: 'the client had seen a part of the answer',
  final: 'nobody else would do better with this request',
  attempts: 'three are the most',
  budget: 'who would be next has no retries left in this minute (triwire upstreams)',
  nobody: 'nobody else is on, not left alone and not tried (triwire upstreams)',
}

function describeAttempts(attempts: NonNullable<Explanation['attempts']>, stopped: Explanation['stopped']): string {
  const rows = formatRows(attempts.map((attempt, at) => ({ '#': at + 1, ...attempt })))
  return stopped ? `${rows}\nno further one: ${stops[stopped]}` : rows
}

function section(name: string, text: string | null): string {
  return `${name}\n${(text ?? fromLedger).replace(/^/gm, '  ')}`
}

function formatRows(rows: readonly Record<string, string | number | null>[]): string {
  if (rows.length === 0) return 'none'
  const columns = Object.keys(rows[0]!)
  return formatTable(
    columns,
    rows.map((row) => columns.map((name) => `${row[name] ?? '-'}`)),
  )
}

/** What is there of it. */
function told(fields: Explanation['settlement']): Record<string, unknown> {
  const { flags, ...rest } = fields
  const entries = Object.entries(rest).filter(([, value]) => value !== null)
  return { ...Object.fromEntries(entries), ...(flags.length > 0 && { flags: flags.join(', ') }) }
}

function named(name: string | null | undefined, id: string | null | undefined): string {
  if (!name || !id) return name ?? id ?? '-'
  return `${name} (${id})`
}
