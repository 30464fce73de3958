import { useSteady } from '../api/load.ts'
import { go, hrefOf } from '../location.ts'
import { Plot } from '../plot/plot.tsx'
import { tellCredits, tellPlotted } from '../pure/format.ts'
import { type RangeName, spanOfBucket } from '../pure/range.ts'
import { sumOfCredits } from '../pure/usage.ts'
import { creditName, zones } from '../session.ts'
import type { Dimension, Usage } from '../shapes.ts'
import { Shown } from '../ui/states.tsx'
import { usagePath, useFresh, useRange } from './figures.ts'
import { seriesOf } from './series.tsx'

/** Plots the cost of one key or model over time. */
export function SpendPlot({
  only,
  usual,
  by = 'model',
}: {
  only: Partial<Record<Dimension, string>>
  usual: RangeName
  by?: Dimension
}) {
  const range = useRange(usual)
  const path = usagePath({ range, by, measures: ['credits', 'requests'], top: 6, only })
  const usage = useSteady<Usage>(path)
  useFresh(range.endsNow, usage.tookMs, '/usage')
  return (
    <Shown of={usage} height={262}>
      {(shown) => (
        <Plot
          title="Spend"
          unit={`${creditName()} per ${shown.bucket}, by ${by}, ${range.label.toLowerCase()}`}
          kind="bars"
          buckets={shown.buckets}
          bucket={shown.bucket}
          zones={zones()}
          completeUntil={range.endsNow ? shown.complete_until : undefined}
          series={seriesOf(shown, 'credits', {})}
          total={`${tellCredits(sumOfCredits(shown.total))} ${creditName()}`}
          tell={tellPlotted}
          csvPath={path}
          onPick={(at) =>
            go(hrefOf({ page: 'requests', query: { ...spanOfBucket(shown.buckets, at, range.to), ...only } }))
          }
        />
      )}
    </Shown>
  )
}
