import type { ComponentChildren } from 'preact'
import { withQuery } from '../api/ask.ts'
import { useList, useSteady } from '../api/load.ts'
import { pageHref, place, setQuery } from '../location.ts'
import { readCredits } from '../pure/format.ts'
import { idOf, labelOf, sumOf, sumOfCredits } from '../pure/usage.ts'
import { creditName } from '../session.ts'
import type { Figures, LedPerson, Usage } from '../shapes.ts'
import { Select } from '../ui/form.tsx'
import { Count, Credits } from '../ui/numbers.tsx'
import { Empty, Panel, Shown } from '../ui/states.tsx'
import { furtherOf, Table } from '../ui/table.tsx'
import { useRange } from './figures.ts'

/** The most people or models whose figures are loaded: those with the highest spending. */
const figuresOf = 50
const measures = 'credits,requests,errors'

/**
 * Lists the people of a lead's account, with the use of each in the range, and the total. The figures of people beyond
 * the first fifty are known only as one sum. Below are the figures of each model.
 */
export function People() {
  const people = useList<LedPerson>('/me/people')
  const { from, to } = useRange()
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
    <>
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
                    <SumRow name={name} of={series}>
                      <td class="wide" />
                    </SumRow>
                  ),
              )}
            />
          )
        }
      </Shown>
      <ByModel people={people.items ?? []} />
    </>
  )
}

/** The use of each model, by one person or by all people of the account. */
function ByModel({ people }: { people: readonly LedPerson[] }) {
  const { from, to } = useRange()
  const { whose } = place.value.query
  const usage = useSteady<Usage>(
    withQuery('/me/people/usage', { from, to, bucket: 'all', by: 'model', measures, top: figuresOf, person: whose }),
  )
  const named = people.map(({ id, name, email }) => [id, name ?? email ?? id] as const)
  return (
    <Panel
      title="By model"
      tools={
        <Select
          label="Whose use by model"
          hidesLabel
          value={whose ?? ''}
          options={[['', 'of all people'], ...named]}
          onChange={(next) => setQuery({ whose: next || undefined })}
        />
      }
    >
      <Shown of={usage} height={36} lines={3}>
        {({ series, other, total }) =>
          series.length === 0 ? (
            <p class="pad small">There was no request in this time.</p>
          ) : (
            <Table
              label="By model"
              rows={series}
              keyOf={idOf}
              startsBy="Spent"
              columns={[
                { head: 'Model', by: labelOf, cell: labelOf },
                {
                  ...{ head: 'Requests', kind: 'number' },
                  by: (one) => sumOf(one, 'requests'),
                  cell: (one) => <Count value={sumOf(one, 'requests')} />,
                },
                {
                  ...{ head: 'Failed', kind: 'number', wide: true },
                  by: (one) => sumOf(one, 'errors'),
                  cell: (one) => <Count value={sumOf(one, 'errors')} />,
                },
                {
                  ...{ head: 'Spent', unit: creditName(), kind: 'number' },
                  by: sumOfCredits,
                  cell: (one) => <Credits value={sumOfCredits(one)} />,
                },
              ]}
              foot={
                <>
                  {other && <SumRow name="All others" of={other} />}
                  <SumRow name="Total" of={total} />
                </>
              }
            />
          )
        }
      </Shown>
    </Panel>
  )
}

/** A row of sums. @param children cells between the name and the figures */
function SumRow({ name, of, children }: { name: string; of: Figures; children?: ComponentChildren }) {
  return (
    <tr>
      <th scope="row">{name}</th>
      {children}
      <td class="number">
        <Count value={sumOf(of, 'requests')} />
      </td>
      <td class="number wide">
        <Count value={sumOf(of, 'errors')} />
      </td>
      <td class="number">
        <Credits value={sumOfCredits(of)} />
      </td>
    </tr>
  )
}

function Known({ count }: { count: number | undefined }) {
  return count === undefined ? '–' : <Count value={count} />
}
