import { withQuery } from '../api/ask.ts'
import { useList, useSteady } from '../api/load.ts'
import { pageHref } from '../location.ts'
import { sumOf } from '../pure/usage.ts'
import type { LedPerson, Usage } from '../shapes.ts'
import { Count, Credits } from '../ui/numbers.tsx'
import { Empty, Shown } from '../ui/states.tsx'
import { furtherOf, Table } from '../ui/table.tsx'
import { useRange } from './figures.ts'

/** Lists the people of the account of a lead, with what each used in the range. */
export function People() {
  const people = useList<LedPerson>('/me/people')
  const { from, to } = useRange()
  const measures = 'credits,requests,errors'
  const usage = useSteady<Usage>(
    withQuery('/me/people/usage', { from, to, bucket: 'all', by: 'person', measures, top: 50 }),
  )
  const figures = new Map(usage.data?.series.map((series) => [series.of.person, series]))
  const countOf = (id: string, measure: 'requests' | 'errors') => {
    const series = figures.get(id)
    return series ? sumOf(series, measure) : 0
  }
  return (
    <Shown of={people} height={36} lines={6}>
      {() =>
        !people.items || people.items.length === 0 ? (
          <Empty>Nobody has a key or a session of this account yet.</Empty>
        ) : (
          <Table
            label="People"
            rows={people.items}
            keyOf={({ id }) => id}
            hrefOf={({ id }) => pageHref('requests', undefined, { whose: id })}
            {...furtherOf(people)}
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
                by: ({ id }) => countOf(id, 'requests'),
                cell: ({ id }) => <Count value={countOf(id, 'requests')} />,
              },
              {
                ...{ head: 'Failed', kind: 'number', wide: true },
                by: ({ id }) => countOf(id, 'errors'),
                cell: ({ id }) => <Count value={countOf(id, 'errors')} />,
              },
              {
                ...{ head: 'Spent', unit: 'credits', kind: 'number' },
                cell: ({ id }) => {
                  const [spent] = figures.get(id)?.credits ?? []
                  return <Credits value={spent ?? '0'} />
                },
              },
            ]}
          />
        )
      }
    </Shown>
  )
}
