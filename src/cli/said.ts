import { hasEnded } from '../accounts/account.ts'
import type { IssuedKey } from '../accounts/book-rows.ts'
import { seenBounds } from '../accounts/key-bounds.ts'
import type { AccountDetails } from '../operations/accounts.ts'
import type { EntryLine } from '../operations/entry-lines.ts'
import type { ForeignKeyDetails, KeyDetails } from '../operations/keys.ts'
import type { TotalRow } from '../operations/ledger.ts'
import type { RequestRow, Status } from '../operations/live-shapes.ts'
import type { Need } from '../operations/needs.ts'
import type { PersonDetails } from '../operations/persons.ts'
import type { ModelRow, UpstreamState } from '../operations/shapes.ts'
import type { SessionDetails } from '../operations/sign-ins.ts'
import type { ToldStatement } from '../operations/statement-shape.ts'
import { describeExplanation } from './explanation.ts'
import { formatFields, formatRows, formatTable } from './print.ts'
import { formatUsage, sayFolded } from './usage.ts'

/** How the answer of an operation is printed for people. An operation without a rule is printed field by field. */
type PrintRule = {
  text(answer: never): string
  /** The error text if stdout cannot be written, for an answer that is shown only once. */
  lost?(answer: never): string
  /** A note for the case that the command created nothing, because the object exists already. */
  again?: string
}

type PrintedRow = Record<string, unknown>

const keyColumns = [
  ...['id', 'prefix', 'label', 'account'],
  ...seenBounds.flatMap((name) => (name === 'budget' ? [name, 'spent'] : name)),
  ...['expires', 'revoked', 'last_used'],
]

const personColumns = ['id', 'name', 'external_id', 'email', 'account', 'budget', 'spent', 'rpm', 'linked_to']

const sessionColumns = [
  'id',
  'person',
  'account',
  'role',
  'agent',
  'address',
  'created',
  'last_used',
  'expires',
  'ended',
  'why',
]

const issued: PrintRule = {
  text: ({ key }: IssuedKey) => key,
  lost: ({ id }: IssuedKey) => `The new key was not shown: revoke it with triwire key revoke ${id}`,
}

const steered: PrintRule = { text: ({ items }: { items: UpstreamState[] }) => formatUpstreams(items) }

const person: PrintRule = {
  text: ({ budget, ...row }: PersonDetails) =>
    formatFields({ ...row, ...(budget && { ...sayBudget(budget), renews_at: budget.renews_at }) }),
}

const said: Record<string, PrintRule> = {
  'account.list': { text: table('id', 'name', 'state', 'balance') },
  'account.create': { text: sayAccount },
  'account.show': { text: sayAccount },
  'account.update': { text: sayAccount },
  'account.credit': {
    text: sayAccount,
    again: 'it was booked before with this reference: nothing was added now',
  },
  'key.create': issued,
  'key.rotate': issued,
  'key.list': {
    text: (rows: readonly PrintedRow[]) =>
      formatRows(
        keyColumns,
        rows.map((row) => ({ ...row, ...sayBounds(row as KeyAnswer) })),
      ),
  },
  'key.foreign': { text: sayForeign },
  'key.show': { text: sayKey },
  'key.update': { text: sayKey },
  'key.revoke': { text: ({ id }: { id: string }) => `${id} is revoked` },
  'person.list': {
    text: (rows: readonly PersonDetails[]) =>
      formatRows(
        personColumns,
        rows.map((row) => ({ ...row, ...sayBudget(row.budget) })),
      ),
  },
  'person.show': person,
  'person.update': person,
  'person.link': person,
  'person.sign_out': person,
  'person.create': { text: ({ id }: { id: string }) => id },
  'person.import': {
    text: ({ created, changed, unchanged }: Record<string, number>) =>
      `${created} created, ${changed} changed, ${unchanged} unchanged`,
  },
  'person.erase': { text: ({ id }: { id: string }) => `${id} is erased: nothing but the id is left` },
  'session.list': {
    text: (rows: readonly SessionDetails[]) =>
      formatRows(
        sessionColumns,
        rows.map((row) => ({
          ...row,
          person: row.person_name ?? row.person,
          account: row.account_name ?? row.account,
        })),
      ),
  },
  'session.end': { text: ({ id }: { id: string }) => `${id} has ended` },
  'ledger.list': { text: formatLines },
  'ledger.totals': { text: formatTotals },
  'ledger.margin': { text: formatTotals },
  'usage.show': { text: formatUsage },
  'statement.show': { text: sayStatement },
  'usage.table': { text: (rows: readonly PrintedRow[]) => formatRows(Object.keys(rows[0]!), rows) },
  status: {
    text: ({ folding, failing, needs = [], ...status }: Status) =>
      `${formatFields({
        ...status,
        failing: failing.join(', ') || 'none',
        ...(folding && { folding: `figures of reports are of ${sayFolded(folding)}` }),
      })}\n\n${sayNeeds(needs)}`,
  },
  needs: { text: sayNeeds },
  'model.list': {
    text: (rows: readonly ModelRow[]) =>
      formatTable(
        ['id', 'wire', 'upstream', 'input / 1M', 'output / 1M'],
        rows.map(({ id, wire, upstreams, prices }) => {
          const names = [...new Set(upstreams.map(({ name }) => name))].join(', ')
          return [id, wire, names, prices.input, prices.output]
        }),
      ),
  },
  'upstream.list': { text: formatUpstreams },
  'webhook.list': {
    text: (rows: readonly (PrintedRow & { events: string[]; last: { at: string; result: string } | null })[]) =>
      formatRows(
        ['url', 'events', 'below', 'last', 'pending'],
        rows.map(({ events, last, ...row }) => ({
          ...row,
          events: events.join(','),
          last: last && `${last.result} ${last.at}`,
        })),
      ),
  },
  'upstream.retry': steered,
  'upstream.disable': steered,
  'upstream.enable': steered,
  'request.list': {
    text: (rows: readonly RequestRow[]) =>
      formatRows(
        ['at', 'request_id', 'account', 'key', 'model', 'upstream', 'outcome', 'status', 'credits', 'total_ms'],
        rows.map((row) => ({ ...row, account: row.account?.name, key: row.key?.prefix })),
      ),
  },
  'request.explain': { text: describeExplanation },
  'operator.create': {
    text: ({ token }: { token: string }) => token,
    lost: ({ name }: { name: string }) => `The token was not shown: revoke it with triwire operator revoke ${name}`,
  },
  'operator.list': { text: table('name', 'role', 'prefix', 'created', 'expires', 'revoked') },
  'operator.revoke': { text: ({ name }: { name: string }) => `the token of ${name} is revoked` },
  'audit.list': {
    text: (rows: readonly PrintedRow[]) => {
      const json = (value: unknown) => (value === null ? '-' : JSON.stringify(value))
      return formatRows(
        ['at', 'actor', 'from', 'operation', 'object', 'before', 'after'],
        rows.map((row) => ({ ...row, before: json(row['before']), after: json(row['after']) })),
      )
    },
  },
}

/** Formats the keys of another gateway, and how many of them still work and are not rotated. */
function sayForeign(rows: readonly ForeignKeyDetails[]): string {
  if (rows.length === 0) return 'The store has no key of another gateway.'
  const open = rows.filter(
    ({ rotated, revoked, expires }) =>
      !rotated && revoked === null && !hasEnded(expires === null ? undefined : Date.parse(expires), Date.now()),
  )
  const used = open.filter(({ last_used: at }) => at !== null).length
  const columns = ['id', 'prefix', 'label', 'account', 'person', 'origin', 'expires', 'last_used', 'rotated', 'revoked']
  const shown = rows.map((row) => ({
    ...row,
    ...{ account: row.account_name ?? row.account, person: row.person_name ?? row.person },
    rotated: row.rotated ? 'yes' : 'no',
  }))
  return `${formatRows(columns, shown)}\n\n${rows.length} keys of another gateway: ${rows.length - open.length} are rotated, revoked or expired, ${open.length} are not; ${used} of these were used here.\ntriwire key rotate ID makes a key of ours, with the same label, limits and spending.`
}

/** Formats each need, which is something to act on, as a line with a command below it. */
function sayNeeds(needs: readonly Need[]): string {
  if (needs.length === 0) return 'Nothing needs you.'
  const signs = { bad: '!!', warn: '! ', note: '- ' }
  return needs.map(({ severity, text, command }) => `${signs[severity]} ${text}\n   ${command}`).join('\n')
}

type KeyAnswer = PrintedRow &
  Pick<KeyDetails, 'budget' | 'models' | 'person' | 'person_name' | 'person_budget' | 'labels' | 'may_choose'>

function sayBudget(budget: KeyDetails['budget']) {
  return { budget: budget && `${budget.credits}${budget.per === null ? '' : `/${budget.per}`}`, spent: budget?.spent }
}

function sayBounds({ budget, models, person, person_name, labels, may_choose }: KeyAnswer) {
  const own = labels && Object.entries(labels).map((label) => label.join('='))
  return {
    ...sayBudget(budget),
    models: models?.join(','),
    person: person_name ?? person,
    labels: own?.join(','),
    may_choose: may_choose?.join(','),
  }
}

/** Formats those fields of an account that have a value. */
function sayAccount({ budget, rpm, warn, grant, ...row }: AccountDetails): string {
  const given = grant && { grant: `${grant.credits}/month${grant.lapse ? ', lapses' : ''}`, last_grant: grant.last }
  const bounds = {
    ...(budget && { ...sayBudget(budget), renews_at: budget.renews_at }),
    rpm,
    warn: warn?.join(),
    ...given,
  }
  const known = Object.entries({ ...row, ...bounds }).filter(([, value]) => value !== undefined && value !== null)
  return formatFields(Object.fromEntries(known))
}

/** Formats the fields of a key. */
function sayKey({ budget, person_budget, ...row }: KeyAnswer): string {
  const { held, renews_at } = budget ?? {}
  const { budget: ofPerson, spent: byPerson } = sayBudget(person_budget)
  const person = person_budget && { person_budget: ofPerson, person_spent: byPerson }
  const own = sayBounds({ ...row, budget } as KeyAnswer)
  return formatFields({ ...row, ...own, ...(budget && { held, renews_at }), ...person })
}

function table(...columns: readonly string[]): (rows: readonly PrintedRow[]) => string {
  return (rows) => formatRows(columns, rows)
}

export function sayAnswer(id: string, answer: unknown): string {
  return said[id] ? said[id].text(answer as never) : formatFields(answer as PrintedRow)
}

export function sayLost(id: string, answer: unknown): string {
  return said[id]?.lost?.(answer as never) ?? ''
}

export function sayAgain(id: string): string | undefined {
  return said[id]?.again
}

const columns = ['model', 'upstream', 'account', 'priority', 'state', 'cause', 'again in', 'failures', 'retries left']

/** Formats the state of each upstream account. */
function formatUpstreams(rows: readonly UpstreamState[]): string {
  return formatTable(
    columns,
    rows.map((row) => [
      row.model,
      row.upstream,
      row.account ?? '-',
      `${row.priority}`,
      row.failing ? `${row.state}, failing` : row.state,
      row.cause === null ? '-' : `${row.cause}${row.heard ? ', another server' : ''}`,
      row.wait_ms === null || row.wait_ms === 0 ? '-' : `${Math.ceil(row.wait_ms / 1_000)} s`,
      `${row.failures}`,
      `${row.retries_left}`,
    ]),
  )
}

function formatLines(rows: readonly EntryLine[]): string {
  const columns = ['posted', 'account', 'kind', 'amount', 'balance_after', 'request', 'key', 'model', 'outcome']
  const cells = rows.map((row) => [
    row.posted ?? '',
    row.account_name ?? row.account,
    row.kind,
    row.amount,
    row.balance_after,
    row.request_id ?? row.reference ?? '',
    row.key_label ?? row.key_prefix ?? '',
    row.model ?? '',
    row.outcome ?? '',
  ])
  return formatTable(columns, cells)
}

function formatTotals(rows: readonly TotalRow[]): string {
  const names = Object.keys(rows[0] ?? { requests: 0, billed: 0, credited: 0 })
  return formatRows(names, rows)
}

/**
 * Formats the sums and digests of a statement for people. The statement's lines are only in the forms csv, html and
 * JSON.
 */
function sayStatement(told: ToldStatement): string {
  const sums = Object.entries(told).filter(([, value]) => !Array.isArray(value))
  return formatFields(Object.fromEntries(sums))
}
