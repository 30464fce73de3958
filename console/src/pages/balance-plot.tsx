import { go, hrefOf } from '../location.ts'
import { Plot, type Plotted } from '../plot/plot.tsx'
import { balanceOver, type Credits as KnownCredits } from '../pure/balance.ts'
import { tellPlotted } from '../pure/format.ts'
import { type Range, spanOfBucket } from '../pure/range.ts'
import { sumOfCredits, valuesOf } from '../pure/usage.ts'
import { creditName, zones } from '../session.ts'
import type { Usage } from '../shapes.ts'
import { Credits } from '../ui/numbers.tsx'

/** Plots the balance of an account with its credits as marks, and what it spent. */
export function BalancePlot(props: {
  usage: Usage
  path: string
  balance: string
  credits: KnownCredits
  range: Range
}) {
  const { usage, path, balance, credits, range } = props
  const { buckets, bucket, complete_until } = usage
  const { reporting } = zones()
  const told = balanceOver(buckets, usage.total.credits ?? [], credits, balance, reporting)
  const frame = {
    buckets,
    bucket,
    zones: zones(),
    completeUntil: range.endsNow ? complete_until : undefined,
    tell: tellPlotted,
  }
  const ofNow: Plotted[] = [
    { id: 'balance', label: 'Balance', values: told.balances, colour: 's1', total: <Credits value={balance} /> },
  ]
  if (told.credits.some((value) => value !== null))
    ofNow.push({ id: 'credits', label: 'Credited', values: told.credits, colour: 's3', isMarks: true })
  return (
    <div class="plots two">
      {range.endsNow && (
        <Plot
          {...frame}
          title="Balance"
          unit={`${creditName()}, at the end of each time`}
          kind="steps"
          series={ofNow}
        />
      )}
      <Plot
        {...frame}
        title="Spend"
        unit={`${creditName()} per ${bucket}`}
        kind="bars"
        series={[
          {
            id: 'spend',
            label: 'Billed',
            values: valuesOf(usage.total, 'credits'),
            colour: 's2',
            total: <Credits value={sumOfCredits(usage.total)} />,
          },
        ]}
        csvPath={path}
        onPick={(at) => go(hrefOf({ page: 'requests', query: spanOfBucket(buckets, at, range.to) }))}
      />
    </div>
  )
}
