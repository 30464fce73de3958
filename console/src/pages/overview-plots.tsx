import { go, hrefOf } from '../location.ts'
import { Plot, type Plotted } from '../plot/plot.tsx'
import { tellCount, tellCredits, tellMs, tellPlotted, tellShare } from '../pure/format.ts'
import { type Range, spanOfBucket } from '../pure/range.ts'
import { sumOf, sumOfCredits, tokenKinds, valuesOf } from '../pure/usage.ts'
import { creditName, zones } from '../session.ts'
import type { Dimension, Figures, Usage } from '../shapes.ts'
import { Count } from '../ui/numbers.tsx'
import { dashes, outcomeSeries, seriesOf } from './series.tsx'

type Props = {
  usage: Usage
  /** The path from which `usage` was loaded. */
  path: string
  outcomesPath: string
  outcomes: Usage | undefined
  before: Usage | undefined
  by: Dimension
  /** Whether some values are compared with each other, as lines. */
  isCompared: boolean
  range: Range
  filters: Partial<Record<Dimension, string | undefined>>
}

export function OverviewPlots({ usage, path, outcomesPath, outcomes, before, by, isCompared, range, filters }: Props) {
  const { buckets, bucket, complete_until } = usage
  const frame = {
    buckets,
    bucket,
    zones: zones(),
    completeUntil: range.endsNow ? complete_until : undefined,
    onPick: (at: number) => go(requestsHref(usage, at, range, filters)),
  }
  const per = `per ${bucket}`
  const spend = seriesOf(usage, 'credits', { before, isCompared })
  const total = tellCredits(sumOfCredits(usage.total))
  const tokens = tokenKinds.map(([kind, label], at): Plotted => {
    return {
      id: kind,
      label,
      values: valuesOf(usage.total, kind),
      colour: `s${at + 1}`,
      total: <Count value={sumOf(usage.total, kind)} />,
    }
  })
  return (
    <div class="plots">
      <Plot
        {...frame}
        title="Credits"
        unit={`${creditName()} ${per}, by ${by}`}
        kind={isCompared || before ? 'lines' : 'bars'}
        series={spend}
        total={`${total} ${creditName()}`}
        tell={tellPlotted}
        csvPath={path}
      />
      {outcomes && (
        <Plot
          {...frame}
          buckets={outcomes.buckets}
          title="Requests"
          unit={`requests ${per}, by outcome`}
          kind="bars"
          series={outcomeSeries(outcomes)}
          total={`${tellCount(sumOf(outcomes.total, 'requests'))} requests`}
          tell={tellCount}
          csvPath={outcomesPath}
        />
      )}
      <Plot
        {...frame}
        title="Tokens"
        unit={`tokens ${per}, by kind`}
        kind="bars"
        series={tokens}
        tell={tellCount}
        csvPath={path}
      />
      <Plot
        {...frame}
        title="First byte"
        unit={isCompared ? 'p95 of the time to it' : 'time to it, percentiles'}
        kind="lines"
        isLog
        series={isCompared ? seriesOf(usage, 'first_byte_ms', { isCompared }) : percentiles(usage.total)}
        tell={tellMs}
        csvPath={path}
      />
      <Plot
        {...frame}
        title="Shares"
        unit={isCompared ? 'of input that came from caches' : 'cached of input, failed of requests'}
        kind="lines"
        top={0.05}
        series={isCompared ? seriesOf(usage, 'cache_share', { isCompared }) : shares(usage.total)}
        tell={tellShare}
        csvPath={path}
      />
    </div>
  )
}

/** Makes the address of the list of the requests that one bar counts. */
function requestsHref(usage: Usage, at: number, range: Range, filters: Props['filters']): string {
  // The list of requests accepts only one account and one key, so a filter by several of them is left out.
  const isTaken = (name: string, value: string) =>
    name !== 'wires' && (!value.includes(',') || (name !== 'account' && name !== 'key'))
  const said = Object.entries(filters).flatMap(([name, value]) =>
    value && isTaken(name, value) ? [[name, value]] : [],
  )
  return hrefOf({
    page: 'requests',
    query: { ...spanOfBucket(usage.buckets, at, range.to), ...Object.fromEntries(said) },
  })
}

function percentiles(total: Figures): Plotted[] {
  return (['p50', 'p95', 'p99'] as const).map((percentile, at) => ({
    id: percentile,
    label: percentile,
    values: valuesOf(total, 'first_byte_ms', percentile),
    colour: `s${at + 1}`,
    dash: dashes[at],
  }))
}

function shares(total: Figures): Plotted[] {
  const requests = valuesOf(total, 'requests')
  const failed = valuesOf(total, 'errors').map((errors, at) =>
    errors !== null && requests[at] ? errors / requests[at] : null,
  )
  return [
    { id: 'cached', label: 'Cached of input', values: valuesOf(total, 'cache_share'), colour: 's3' },
    { id: 'failed', label: 'Failed of requests', values: failed, colour: 's2', dash: dashes[1] },
  ]
}
