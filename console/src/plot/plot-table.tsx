import { tellBucket } from '../pure/ticks.ts'
import type { Drawing } from './draw.ts'

/** Shows the data of a plot as rows, the newest first. */
export function PlotTable({ title, series, buckets, bucket, zones, tell }: Drawing & { title: string }) {
  const places = buckets.map((_, at) => at).reverse()
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling area must be reachable without a mouse
    <section class="plot-table" tabIndex={0} aria-label={`${title} as a table`}>
      <table class="table">
        <thead>
          <tr>
            <th scope="col">Time</th>
            {series.map(({ id, label }) => (
              <th key={id} scope="col" class="number">
                {label}
              </th>
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
