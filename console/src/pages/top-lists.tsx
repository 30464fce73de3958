import { useSteady } from '../api/load.ts'
import { pageHref, setQuery } from '../location.ts'
import type { Range } from '../pure/range.ts'
import { labelOf, shareOf, sumOf, sumOfCredits } from '../pure/usage.ts'
import type { Dimension, Usage } from '../shapes.ts'
import { Count, Credits } from '../ui/numbers.tsx'
import { Panel, Shown } from '../ui/states.tsx'
import { usagePath } from './figures.ts'

type Props = { range: Range; filters: Partial<Record<Dimension, string>>; by: Dimension; only: readonly string[] }

/** Lists the biggest spenders and what they spent on. Each can be compared with others, or opened. */
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
    <Panel title={`Top ${title.toLowerCase()}`} unit={`by credits, ${range.label.toLowerCase()}`}>
      <Shown of={loaded} height={250}>
        {({ series, other }) => {
          const rows = series.map((one) => ({ one, credits: sumOfCredits(one) }))
          const most = rows.reduce((most, { credits }) => (credits > most ? credits : most), 0n)
          if (rows.length === 0) return <p class="small pad">Nothing was billed.</p>
          return (
            <table class="table ranking">
              <thead>
                <tr>
                  <th scope="col">
                    <span class="offscreen">Compare</span>
                  </th>
                  <th scope="col">{title.slice(0, -1)}</th>
                  <th scope="col" class="number">
                    Requests
                  </th>
                  <th scope="col" class="number">
                    Credits
                  </th>
                </tr>
              </thead>
              <tbody>
                {rows.map(({ one, credits }) => {
                  const id = one.of[dimension] ?? ''
                  const isOn = by === dimension && only.includes(id)
                  return (
                    <tr key={id}>
                      <td class="fit">
                        <input
                          type="checkbox"
                          aria-label={`Compare ${labelOf(one)}`}
                          checked={isOn}
                          disabled={id === '' || (!isOn && by === dimension && only.length >= 6)}
                          onChange={() => compare(dimension, id, by === dimension ? only : [])}
                        />
                      </td>
                      <td class="named">
                        {id === '' ? labelOf(one) : <a href={href(id)}>{labelOf(one)}</a>}
                        <meter min={0} max={1} value={shareOf(credits, most)} aria-hidden="true" />
                      </td>
                      <td class="number">
                        <Count value={sumOf(one, 'requests')} />
                      </td>
                      <td class="number">
                        <Credits value={credits} />
                      </td>
                    </tr>
                  )
                })}
                {other && other.count > 0 && (
                  <tr class="others">
                    <td />
                    <td>{other.count} others</td>
                    <td class="number">
                      <Count value={sumOf(other, 'requests')} />
                    </td>
                    <td class="number">
                      <Credits value={sumOfCredits(other)} />
                    </td>
                  </tr>
                )}
              </tbody>
            </table>
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
