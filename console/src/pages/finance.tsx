import { withQuery } from '../api/ask.ts'
import { useSteady } from '../api/load.ts'
import { changedHref, place, setQuery } from '../location.ts'
import { addMonths, dayIn, isDay, tellMonth } from '../pure/calendar.ts'
import { readCredits, tellColumn } from '../pure/format.ts'
import { askedAs } from '../pure/usage.ts'
import { creditName, reportingZone, status } from '../session.ts'
import type { TableRow } from '../shapes.ts'
import { CsvButton } from '../ui/csv-button.tsx'
import { Select } from '../ui/form.tsx'
import { Icon } from '../ui/icons.tsx'
import { Count } from '../ui/numbers.tsx'
import { Empty, Shown } from '../ui/states.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { Chip } from './overview.tsx'

/**
 * The columns by which a bill can be divided. Each dimension of labels is a further column.
 * @property next the column that a row leads to, as in `nextOf`
 */
const columns: Readonly<Record<string, { head: string; next?: string }>> = {
  account: { head: 'Account', next: 'key' },
  person: { head: 'Person', next: 'key' },
  key: { head: 'Key', next: 'model' },
  model: { head: 'Model', next: 'key' },
  tier: { head: 'Tier' },
  band: { head: 'Band' },
}

const labelOf = (by: string) => /^label:(.+)/.exec(by)?.[1]

function headOf(by: string): string {
  return columns[by]?.head ?? labelOf(by) ?? by
}

/** Returns the column that a row leads to; undefined if a bill cannot be narrowed to a row of this column. */
function nextOf(by: string): string | undefined {
  return labelOf(by) === undefined ? columns[by]?.next : 'model'
}

/** The number of months that can be chosen. Earlier months have no figures by day. */
const monthsShown = 14

/** The bill of a calendar month: every row, and the total. A row leads to its parts. */
export function Finance() {
  const { query } = place.value
  const thisMonth = dayIn(reportingZone(), Date.now()).slice(0, 7)
  const month = isDay(`${query['month']}-01`) ? query['month']! : thisMonth
  const names = [...Object.keys(columns), ...(status.value?.reporting.labels ?? []).map((name) => `label:${name}`)]
  const narrowed = names.filter((name) => nextOf(name) && query[name])
  const only = Object.fromEntries(narrowed.map((name) => [name, query[name]!]))
  const by = names.find((name) => name === query['by']) ?? 'account'
  // A bill is narrowed to one label at a time. The field `label` has the dimension and the value.
  const filters = Object.entries(only).map(([name, word]) =>
    labelOf(name) === undefined ? [name, word] : ['label', `${labelOf(name)}=${word}`],
  )
  // Keys of different accounts can have the same label, so the account is shown beside the key.
  const groups = by === 'key' ? 'account,key' : by
  const path = withQuery('/usage/table', { by: groups, month, ...Object.fromEntries(filters) })
  const parts = [...Object.entries(only).flat(), 'by', by].join('-').replaceAll(/[^\p{L}\p{N}._-]+/gu, '-')
  const table = useSteady<readonly TableRow[]>(path)
  const months = Array.from({ length: monthsShown }, (_, at) => addMonths(thisMonth, -at))
  const turn = (by: number) => setQuery({ month: addMonths(month, by) })
  return (
    <>
      <div class="filters">
        <button type="button" aria-label="Month before" onClick={() => turn(-1)}>
          <Icon name="back" />
        </button>
        <Select
          label="Month"
          hidesLabel
          value={month}
          options={[...new Set([...months, month])].map((one) => [one, tellMonth(one)] as const)}
          onChange={(next) => setQuery({ month: next })}
        />
        <button
          type="button"
          aria-label="Next month"
          class="turned"
          disabled={month >= thisMonth}
          onClick={() => turn(1)}
        >
          <Icon name="back" />
        </button>
        <Select
          label="By"
          hidesLabel
          value={by}
          options={names.map((name) => [name, `by ${headOf(name).toLowerCase()}`] as const)}
          onChange={(next) => setQuery({ by: next })}
        />
        {Object.entries(only).map(([name, word]) => (
          <Chip key={name} text={`${name} ${word}`} drop={() => setQuery({ [name]: undefined })} />
        ))}
        <span class="spring" />
        {only['account'] && (
          <CsvButton
            path={withQuery(`/accounts/${encodeURIComponent(only['account'])}/statements/${month}`, { form: 'html' })}
            name={`statement-${only['account']}-${month}.html`}
            word="Statement"
          />
        )}
        <CsvButton path={path} name={`usage-${month}-${parts}.csv`} label="This table as CSV" />
      </div>
      {status.value?.reporting.away?.includes(month) && (
        <p class="note" role="status">
          Entries of {month} are away: they were archived. The sums by account, key and model hold. Other tables and the
          statements of the month need them: bring them back with <code>triwire ledger archive attach {month}</code>.
        </p>
      )}
      <Shown of={table} height={36} lines={8}>
        {(rows) => <Bill rows={rows as Rows} by={by} month={month} />}
      </Shown>
    </>
  )
}

type Rows = readonly (TableRow & Readonly<Record<string, unknown>>)[]

const accountColumn: Column<Rows[number]> = {
  head: 'Account',
  wide: true,
  by: ({ account }) => account,
  cell: ({ account }) => account ?? <span class="none">none</span>,
}

function Bill({ rows, by, month }: { rows: Rows; by: string; month: string }) {
  const total = rows.at(-1)
  const parts = rows.slice(0, -1)
  if (!total || parts.length === 0) return <Empty>Nothing was spent in {tellMonth(month)}.</Empty>
  const whole = Number(readCredits(total.credits))
  const [head, next] = [headOf(by), nextOf(by)]
  const tellSpent = tellColumn(rows.map(({ credits }) => credits))
  const wordOf = (row: Rows[number]) => (row[by] ?? null) as string | null
  return (
    <Table
      label={`Spent in ${tellMonth(month)} by ${head.toLowerCase()}`}
      rows={parts}
      keyOf={(row, at) => `${wordOf(row)} ${at}`}
      startsBy="Spent"
      columns={[
        {
          head,
          by: wordOf,
          cell: (row) => {
            const word = wordOf(row)
            // Entries of the first release have no key. The gateway has no filter for such a row, so it gets no link.
            if (word === null) return <span class="none">none</span>
            if (!next) return word
            const others = labelOf(by) === undefined ? [] : Object.keys(place.value.query).filter(labelOf)
            const dropped = Object.fromEntries(others.map((name) => [name, undefined]))
            // Imported keys of different accounts can have the same first characters, so their account is named too.
            const whose = by === 'key' && row.account ? { account: row.account } : {}
            return <a href={changedHref({ ...dropped, ...whose, by: next, [by]: askedAs(by, word) })}>{word}</a>
          },
        },
        ...(by === 'key' ? [accountColumn] : []),
        {
          head: 'Spent',
          unit: creditName(),
          kind: 'number',
          by: ({ credits }) => readCredits(credits),
          cell: ({ credits }) => tellSpent(credits),
        },
        {
          head: 'Share',
          unit: '%',
          kind: 'number',
          wide: true,
          cell: ({ credits }) => (whole === 0 ? '–' : ((100 * Number(readCredits(credits))) / whole).toFixed(1)),
        },
        {
          head: 'Requests',
          kind: 'number',
          by: ({ requests }) => requests,
          cell: ({ requests }) => <Count value={requests} />,
        },
        {
          head: 'Tokens',
          kind: 'number',
          wide: true,
          by: ({ tokens }) => tokens,
          cell: ({ tokens }) => <Count value={tokens} />,
        },
      ]}
      foot={
        <tr>
          <th scope="row">Total</th>
          {by === 'key' && <td class="wide" />}
          <td class="number">{tellSpent(total.credits)}</td>
          <td class="number wide">{whole === 0 ? '–' : '100.0'}</td>
          <td class="number">
            <Count value={total.requests} />
          </td>
          <td class="number wide">
            <Count value={total.tokens} />
          </td>
        </tr>
      }
    />
  )
}
