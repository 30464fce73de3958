import type { Command } from 'commander'
import { BookError } from '../accounts/book-error.ts'
import { withoutKeys } from '../accounts/keys.ts'
import type { Explanation } from '../operations/shapes.ts'
import type { AdminReply } from './admin.ts'
import { formatFields, formatRows, note } from './print.ts'
import { withStore } from './store.ts'

const fromLedger =
  'not known: this is from the ledger, which has neither attempts nor losses (who answered: triwire ledger show)'

const between = '; the ledger has no steps in between'

function describeHop({ from, to, cause }: NonNullable<Explanation['fell_back']>[number]): string {
  return `${from} to ${to} (${cause})`
}

/** Formats an explanation for people. */
export function describeExplanation(explanation: Explanation): string {
  const {
    request_id,
    account,
    key,
    person,
    key_name,
    person_name,
    labels,
    model,
    alias,
    fell_back: hops,
    moved,
    wire,
    attempts,
    stopped,
    losses,
    usage,
    price,
    settlement,
  } = explanation
  const wires = [wire.client && `asked in ${wire.client}`, wire.model && `answered in ${wire.model}`]
  const head = {
    request: request_id,
    account: named(account?.name, account?.id),
    key: named(key_name ?? key?.prefix, key?.id),
    ...(person !== null && { person: named(person_name, person) }),
    ...(labels !== null && { labels }),
    model: model === null ? '-' : alias === null ? model : `${model} (asked for as ${alias})`,
    wires: wires.filter(Boolean).join(', ') || '-',
    ...(moved && { moved: `${moved.why}${moved.cost === null ? '' : `, which cost ${moved.cost} credits at most`}` }),
    ...(hops?.length && { 'fell back': `${hops.map(describeHop).join(', ')}${attempts ? '' : between}` }),
  }
  return [
    formatFields(head),
    section('attempts', attempts && describeAttempts(attempts, stopped)),
    section('losses', losses && formatList(losses)),
    section('usage', usage ? formatFields(usage) : 'none'),
    section('price, credits per million tokens', price ? formatFields(price) : 'none'),
    section('settlement', formatFields(told(settlement))),
  ].join('\n\n')
}

const stops: Record<NonNullable<Explanation['stopped']>, string> = {
  seen: 'the client had seen a part of the answer',
  final: 'nobody else would do better with this request',
  attempts: 'a request gets no more attempts',
  budget: 'who would be next has no retries left in this minute (triwire upstreams)',
  nobody: 'nobody else is on, not left alone and not tried (triwire upstreams)',
}

function describeAttempts(attempts: NonNullable<Explanation['attempts']>, stopped: Explanation['stopped']): string {
  const rows = formatList(
    attempts.map(({ text: _, model, ...attempt }, at) => ({ '#': at + 1, ...(model && { model }), ...attempt })),
  )
  const said = attempts.flatMap(({ text }, at) => (text ? [`${at + 1} said: ${text}`] : []))
  return [rows, ...(stopped ? [`no further one: ${stops[stopped]}`] : []), ...said].join('\n')
}

function section(name: string, text: string | null): string {
  return `${name}\n${(text ?? fromLedger).replace(/^/gm, '  ')}`
}

function formatList(rows: readonly object[]): string {
  if (rows.length === 0) return 'none'
  return formatRows(Object.keys(rows[0]!), rows)
}

/** Returns the fields that have a value. */
function told(fields: Explanation['settlement']): Record<string, unknown> {
  const { flags, ...rest } = fields
  const entries = Object.entries(rest).filter(([, value]) => value !== null)
  return { ...Object.fromEntries(entries), ...(flags.length > 0 && { flags: flags.join(', ') }) }
}

function named(name: string | null | undefined, id: string | null | undefined): string {
  if (!name || !id) return name ?? id ?? '-'
  return `${name} (${id})`
}

/**
 * Explains a request from its debit in the ledger, if no server can explain it.
 * @throws Error with possible reasons if the ledger has no debit of the request
 */
export async function explainWithout(command: Command, requestId: string, told: AdminReply): Promise<Explanation> {
  if ('status' in told && told.status === 404)
    throw new Error(
      `There is no request ${withoutKeys(requestId)}: it is not among the last ones that the server remembers, and has no debit; refused and failed requests have none`,
    )
  note(command, 'trouble' in told ? told.trouble : `the server says: ${(told.body as { detail?: string }).detail}`)
  const debit = await withStore(command, async (books) => {
    const found = await books.findDebit(requestId)
    const archived = found ? undefined : await books.findArchived(requestId)
    if (archived) throw new BookError('month_away', archived.month)
    return found
  })
  if (!debit)
    throw new Error(
      `The ledger has no debit of request ${requestId}, and no server could be asked: refused and failed requests have none`,
    )
  const { explainDebit } = await import('../live/explanation.ts')
  return explainDebit(debit)
}
