import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import type uPlot from 'uplot'
import { hasAmount, largest, sumAt } from '../pure/stack.ts'
import { tellBucket, tellSpan } from '../pure/ticks.ts'
import { colourVersion } from '../theme.ts'
import { download } from '../ui/copy.tsx'
import { CsvButton } from '../ui/csv-button.tsx'
import { type Drawing, type Drawn, dataOf, draw, toPicture } from './draw.ts'
import { PlotTable } from './plot-table.tsx'

export type Plotted = Drawn & {
  /** The total of the whole range, shown beside the series' name. */
  total?: ComponentChildren
}

type Props = Omit<Drawing, 'series'> & {
  title: string
  unit: string
  series: readonly Plotted[]
  /** The total of the whole range, for the sentence that a screen reader reads. */
  total?: string
  /** Called with a time that was clicked, or chosen with Enter. */
  onPick?: (at: number) => void
  /** The API path of the same figures as CSV. */
  csvPath?: string | undefined
  tools?: ComponentChildren
}

/** Shows figures over time: as a drawing that arrow keys walk through, a sentence for screen readers, and a table. */
export function Plot({ title, unit, total, onPick, csvPath, tools, ...given }: Props) {
  const target = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | undefined>(undefined)
  const cursor = useSignal<number | null>(null)
  const hidden = useSignal<ReadonlySet<string>>(new Set())
  const isTable = useSignal(false)
  const said = useSignal('')
  const id = useId()
  const drawing: Drawing & { series: readonly Plotted[] } = {
    ...given,
    series: given.series.filter((series) => !hidden.value.has(series.id)),
  }
  // A change of `shape` makes a new drawing. If only values change, the current drawing gets them.
  const { kind, bucket, zones, buckets } = drawing
  const shape = JSON.stringify([
    ...[kind, bucket, zones, drawing.isLog, isTable.value, colourVersion.value, buckets[0], buckets.length],
    drawing.completeUntil === undefined,
    drawing.series.map(({ id, colour, dash }) => [id, colour, dash]),
  ])
  const newest = useRef(drawing)
  newest.current = drawing
  useEffect(() => {
    if (!target.current) return undefined
    const made = draw(target.current, newest.current, (at) => {
      cursor.value = at
    })
    plot.current = made
    const watch = new ResizeObserver(([entry]) => {
      const width = Math.max(120, Math.floor(entry!.contentRect.width))
      if (width !== made.width) made.setSize({ width, height: made.height })
    })
    watch.observe(target.current)
    return () => {
      watch.disconnect()
      made.destroy()
      plot.current = undefined
    }
  }, [shape])
  useEffect(() => {
    plot.current?.setData(dataOf(drawing))
  }, [given.series])

  const at = cursor.value
  const sentence = describe(drawing, title, unit, total)
  return (
    <figure class="panel plot" aria-labelledby={`${id}-title`}>
      <header>
        <h2 id={`${id}-title`}>{title}</h2>
        <span class="unit">{unit}</span>
        <div class="tools">
          {tools}
          <button
            type="button"
            class="quiet word"
            aria-pressed={isTable.value}
            aria-label={`${title} as a table`}
            onClick={() => {
              isTable.value = !isTable.value
            }}
          >
            Table
          </button>
          <button
            type="button"
            class="quiet word"
            aria-label={`${title} as PNG`}
            disabled={isTable.value}
            onClick={() => void savePicture(plot.current, title)}
          >
            PNG
          </button>
          {csvPath && <CsvButton path={csvPath} name={`${fileName(title)}.csv`} label={`${title} as CSV`} />}
        </div>
      </header>
      <p class="offscreen">{sentence}</p>
      <Readout drawing={drawing} at={at} />
      {isTable.value ? (
        <PlotTable {...drawing} title={title} />
      ) : (
        <div
          ref={target}
          class={`canvas${onPick ? ' picks' : ''}`}
          role="slider"
          tabIndex={0}
          aria-label={`${title}, ${unit}: step through time with the arrow keys`}
          aria-valuemin={0}
          aria-valuemax={Math.max(0, buckets.length - 1)}
          aria-valuenow={at ?? Math.max(0, buckets.length - 1)}
          aria-valuetext={at === null ? sentence : tellAt(drawing, at)}
          onKeyDown={step}
          onClick={() => at !== null && onPick?.(at)}
        />
      )}
      <Legend series={given.series} drawing={drawing} at={at} hidden={hidden.value} toggle={toggle} />
      <p class="offscreen" role="status">
        {said.value}
      </p>
    </figure>
  )

  function step(event: KeyboardEvent): void {
    const last = buckets.length - 1
    const now = cursor.peek()
    const goes: Record<string, number> = {
      ArrowLeft: Math.max(0, (now ?? last + 1) - 1),
      ArrowRight: Math.min(last, (now ?? -1) + 1),
      Home: 0,
      End: last,
    }
    if (event.key === 'Enter' && now !== null) onPick?.(now)
    const next = goes[event.key]
    if (next === undefined || last < 0) return
    event.preventDefault()
    plot.current?.setCursor({ left: plot.current.valToPos(next, 'x'), top: 10 })
    cursor.value = next
  }

  function toggle({ id: series, label }: Plotted): void {
    const next = new Set(hidden.peek())
    if (!next.delete(series)) next.add(series)
    hidden.value = next
    said.value = `${label} is ${next.has(series) ? 'hidden' : 'shown'}.`
  }
}

async function savePicture(plot: uPlot | undefined, title: string): Promise<void> {
  const picture = plot && (await toPicture(plot))
  if (picture) download(`${fileName(title)}.png`, picture)
}

function fileName(title: string): string {
  return title.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')
}

/** Shows the values at the cursor; without a cursor, the span of the plot. */
function Readout({ drawing, at }: { drawing: Drawing; at: number | null }) {
  const { buckets, bucket, zones } = drawing
  const span = buckets.length === 0 ? 'No time' : tellSpan(buckets, bucket, zones)
  return (
    <p class="readout" aria-hidden="true">
      {at === null || !buckets[at] ? span : tellBucket(buckets[at], bucket, zones)}
      {at !== null && tellSum(drawing, at)}
    </p>
  )
}

/** Formats the sum of a stack at one time, such as `: 12.50 in all`; empty for other plots. */
function tellSum({ kind, series, tell }: Drawing, at: number): string {
  if (kind !== 'bars' || series.length < 2) return ''
  const sum = sumAt(series.map(({ values }) => values))[at]
  return sum == null ? '' : `: ${tell(sum)} in all`
}

/** Leaves out parts of a stack that are 0 in the whole range. */
function listed<One extends Drawn>(kind: Drawing['kind'], series: readonly One[]): readonly One[] {
  return kind === 'bars' ? series.filter(({ values }) => hasAmount(values)) : series
}

function Legend(props: {
  series: readonly Plotted[]
  drawing: Drawing
  at: number | null
  hidden: ReadonlySet<string>
  toggle(series: Plotted): void
}) {
  const { series, drawing, at, hidden, toggle } = props
  return (
    <ul class="legend">
      {listed(drawing.kind, series).map((one) => {
        const value = at === null ? undefined : one.values[at]
        return (
          <li key={one.id}>
            <button type="button" aria-pressed={!hidden.has(one.id)} onClick={() => toggle(one)} title={one.label}>
              <span class={`swatch ${one.colour}${one.dash ? ' dashed' : ''}`} />
              <span class="name">{one.label}</span>
              <span class="value">
                {at === null ? one.total : value === null || value === undefined ? '–' : drawing.tell(value)}
              </span>
            </button>
          </li>
        )
      })}
    </ul>
  )
}

/** Describes a plot in words. */
function describe(drawing: Drawing, title: string, unit: string, total: string | undefined): string {
  const { kind, series, buckets, bucket, zones, tell } = drawing
  if (buckets.length === 0 || series.length === 0) return `${title}: nothing to show.`
  const heights =
    kind === 'bars' ? sumAt(series.map(({ values }) => values)) : series.flatMap(({ values }) => [...values])
  const most = largest(heights)
  const shown = listed(kind, series)
  const span = `from ${tellSpan(buckets, bucket, zones, ' to ')}`
  const high = most
    ? `; most, ${tell(most.value)}, at ${tellBucket(buckets[most.at % buckets.length]!, bucket, zones)}`
    : '; nothing happened'
  return `${title}, ${unit}, ${span}${total ? `; ${total} in all` : ''}${high}. ${shown.length} series: ${shown.map(({ label }) => label).join(', ')}.`
}

function tellAt(drawing: Drawing, at: number): string {
  const { series, buckets, bucket, zones, tell } = drawing
  const values = series.map(({ label, values }) => `${label} ${values[at] == null ? 'none' : tell(values[at])}`)
  return `${tellBucket(buckets[at]!, bucket, zones)}${tellSum(drawing, at)}: ${values.join(', ')}`
}
