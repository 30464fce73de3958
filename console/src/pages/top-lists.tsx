import { useSteady } from '../api/load.ts'
import { pageHref, setQuery } from '../location.ts'
import type { Range } from '../pure/range.ts'
import { labelOf, shareOf, sumOf, sumOfCredits } from '../pure/usage.ts'
import { creditName } from '../session.ts'
import type { Dimension, Usage } from '../shapes.ts'
import { Count, Credits } from '../ui/numbers.tsx'
import { Panel, Shown } from '../ui/states.tsx'
import { Table } from '../ui/table.tsx'
import { usagePath } from './figures.ts'

type Props = { range: Range; filters: Partial<Record<Dimension, string>>; by: Dimension; only: readonly string[] }

/** Lists the accounts, keys and models with the highest spending. Each can be compared with others, or opened. */
export function TopLists(props: Props) {
  return (
    <div class="tops">
      <Top {...props} title="Accounts" dimension="account" href={(id) => pageHref('accounts', id)} />
      <Top {...props} title="Keys" dimension="key" href={(id) => pageHref('keys', id)} />
      <Top {...props} title="Models" dimension="model" href={(id) => pageHref('models', id)} />
    </div>
  )
}

type TopProps = Props & { title: string; dimension: Dimension; href(id: string): string }

function Top({ range, filters, by, only, title, dimension, href }: TopProps) {
  const asked = { range: { ...range, bucket: 'all' as const }, by: dimension, top: 10, only: filters }
  const loaded = useSteady<Usage>(usagePath({ ...asked, measures: ['credits', 'requests'] }))
  return (
    <Panel title={`Top ${title.toLowerCase()}`} unit={`by ${creditName()}, ${range.label.toLowerCase()}`}>
      <Shown of={loaded} height={250}>
        {({ series, other }) => {
          const rows = series.map((one) => {
            const id = one.of[dimension] ?? ''
            const isOn = by === dimension && only.includes(id)
            return { id, label: labelOf(one), isOn, credits: sumOfCredits(one), requests: sumOf(one, 'requests') }
          })
          const most = rows.reduce((most, { credits }) => (credits > most ? credits : most), 0n)
          if (rows.length === 0) return <p class="small pad">Nothing was billed.</p>
          return (
            <Table
              label={`Top ${title.toLowerCase()}`}
              class="ranking"
              rows={rows}
              keyOf={({ id }) => id}
              columns={[
                {
                  head: 'Compare',
                  hidesHead: true,
                  kind: 'fit',
                  cell: ({ id, label, isOn }) => (
                    <input
                      type="checkbox"
                      aria-label={`Compare ${label}`}
                      checked={isOn}
                      disabled={id === '' || (!isOn && by === dimension && only.length >= 6)}
                      onChange={() => compare(dimension, id, by === dimension ? only : [])}
                    />
                  ),
                },
                {
                  head: title.slice(0, -1),
                  kind: 'named',
                  by: ({ label }) => label,
                  cell: ({ id, label, credits }) => (
                    <>
                      {id === '' ? label : <a href={href(id)}>{label}</a>}
                      <meter min={0} max={1} value={shareOf(credits, most)} aria-hidden="true" />
                    </>
                  ),
                },
                {
                  head: 'Requests',
                  kind: 'number',
                  by: ({ requests }) => requests,
                  cell: ({ requests }) => <Count value={requests} />,
                },
                {
                  head: 'Credits',
                  kind: 'number',
                  by: ({ credits }) => credits,
                  cell: ({ credits }) => <Credits value={credits} />,
                },
              ]}
              foot={
                other &&
                other.count > 0 && (
                  <tr class="others">
                    <td />
                    <td>{other.count === 1 ? '1 other' : `${other.count} others`}</td>
                    <td class="number">
                      <Count value={sumOf(other, 'requests')} />
                    </td>
                    <td class="number">
                      <Credits value={sumOfCredits(other)} />
                    </td>
                  </tr>
                )
              }
            />
          )
        }}
      </Shown>
    </Panel>
  )
}

function compare(dimension: Dimension, id: string, only: readonly string[]): void {
  const next = only.includes(id) ? only.filter((one) => one !== id) : [...only, id]
  setQuery({ by: dimension === 'model' ? undefined : dimension, only: next.join(',') || undefined }, 'replace')
}
