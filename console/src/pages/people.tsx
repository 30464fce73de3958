import { withQuery } from '../api/ask.ts'
import { useList, useSteady } from '../api/load.ts'
import { pageHref } from '../location.ts'
import { readCredits } from '../pure/format.ts'
import { sumOf, sumOfCredits } from '../pure/usage.ts'
import { creditName } from '../session.ts'
import type { LedPerson, Usage } from '../shapes.ts'
import { Count, Credits } from '../ui/numbers.tsx'
import { Empty, Shown } from '../ui/states.tsx'
import { furtherOf, Table } from '../ui/table.tsx'
import { useRange } from './figures.ts'

/** The most people whose figures are loaded: those who spent most. */
const figuresOf = 50

/**
 * Lists the people of a lead's account, with the use of each in the range, and the total. The figures of people beyond
 * the first fifty are known only as one sum.
 */
export function People() {
  const people = useList<LedPerson>('/me/people')
  const { from, to } = useRange()
  const measures = 'credits,requests,errors'
  const usage = useSteady<Usage>(
    withQuery('/me/people/usage', { from, to, bucket: 'all', by: 'person', measures, top: figuresOf }),
  )
  const figures = new Map(usage.data?.series.map((series) => [series.of.person, series]))
  const isComplete = usage.data !== undefined && figures.size < figuresOf
  const countOf = (id: string, measure: 'requests' | 'errors') => {
    const series = figures.get(id)
    return series ? sumOf(series, measure) : isComplete ? 0 : undefined
  }
  const sums = [
    ['Without a person', figures.get(null)],
    ['All others', isComplete ? undefined : usage.data?.other],
    ['Total', usage.data?.total],
  ] as const
  return (
    <Shown of={people} height={36} lines={6}>
      {() =>
        !people.items || people.items.length === 0 ? (
          <Empty>No person has a key or a session of this account yet.</Empty>
        ) : (
          <Table
            label="People"
            rows={people.items}
            keyOf={({ id }) => id}
            hrefOf={({ id }) => pageHref('requests', undefined, { whose: id })}
            {...furtherOf(people)}
            startsBy="Spent"
            columns={[
              {
                head: 'Person',
                by: ({ name, email, id }) => name ?? email ?? id,
                cell: ({ name, email, id }) => (
                  <a href={pageHref('requests', undefined, { whose: id })}>{name ?? email ?? id}</a>
                ),
              },
              { head: 'E-mail', wide: true, cell: ({ email }) => email ?? '–' },
              {
                ...{ head: 'Requests', kind: 'number' },
                by: ({ id }) => countOf(id, 'requests') ?? 0,
                cell: ({ id }) => <Known count={countOf(id, 'requests')} />,
              },
              {
                ...{ head: 'Failed', kind: 'number', wide: true },
                by: ({ id }) => countOf(id, 'errors') ?? 0,
                cell: ({ id }) => <Known count={countOf(id, 'errors')} />,
              },
              {
                ...{ head: 'Spent', unit: creditName(), kind: 'number' },
                by: ({ id }) => readCredits(figures.get(id)?.credits?.[0]),
                cell: ({ id }) => {
                  const [spent = isComplete ? '0' : undefined] = figures.get(id)?.credits ?? []
                  return spent === undefined ? '–' : <Credits value={spent} />
                },
              },
            ]}
            foot={sums.map(
              ([name, series]) =>
                series && (
                  <tr>
                    <th scope="row">{name}</th>
                    <td class="wide" />
                    <td class="number">
                      <Count value={sumOf(series, 'requests')} />
                    </td>
                    <td class="number wide">
                      <Count value={sumOf(series, 'errors')} />
                    </td>
                    <td class="number">
                      <Credits value={sumOfCredits(series)} />
                    </td>
                  </tr>
                ),
            )}
          />
        )
      }
    </Shown>
  )
}

function Known({ count }: { count: number | undefined }) {
  return count === undefined ? '–' : <Count value={count} />
}
