import { sumAt } from '../pure/stack.ts'
import { tellBucket } from '../pure/ticks.ts'
import { SortHead, sortRows, useOrder } from '../ui/order.tsx'
import type { Drawing } from './draw.ts'

/** Shows the data of a plot as rows, the newest first. */
export function PlotTable({ title, kind, buckets, bucket, zones, tell, ...drawing }: Drawing & { title: string }) {
  const isStack = kind === 'bars' && drawing.series.length > 1
  const sum = { id: ' sum', label: 'In all', values: sumAt(drawing.series.map(({ values }) => values)) }
  const series = isStack ? [...drawing.series, sum] : drawing.series
  const { order, press } = useOrder()
  const newest = buckets.map((_, at) => at).reverse()
  const sorting = series.find(({ id }) => id === order?.head)
  const places =
    order === undefined ? newest : sortRows(newest, (at) => (sorting ? sorting.values[at] : at), order.isDown)
  const downOf = (head: string) => (order?.head === head ? order.isDown : undefined)
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling area must be reachable without a mouse
    <section class="plot-table" tabIndex={0} aria-label={`${title} as a table`}>
      <table class="table">
        <thead>
          <tr>
            <SortHead class="" isDown={downOf('time')} press={() => press('time', false)}>
              Time
            </SortHead>
            {series.map(({ id, label }) => (
              <SortHead key={id} class="number" isDown={downOf(id)} press={() => press(id, true)}>
                {label}
              </SortHead>
            ))}
          </tr>
        </thead>
        <tbody>
          {places.map((at) => (
            <tr key={at}>
              <th scope="row">{tellBucket(buckets[at]!, bucket, zones)}</th>
              {series.map(({ id, values }) => (
                <td key={id} class="number" title={values[at] == null ? undefined : String(values[at])}>
                  {values[at] == null ? '–' : tell(values[at])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
