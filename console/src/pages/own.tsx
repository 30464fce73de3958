import { withQuery } from '../api/ask.ts'
import { refresh, useAgain, useSteady } from '../api/load.ts'
import { go, hrefOf, pageHref } from '../location.ts'
import { Plot } from '../plot/plot.tsx'
import { dayIn, tellMonth } from '../pure/calendar.ts'
import { outcomesMax } from '../pure/colours.ts'
import { readCredits, tellCount, tellCredits, tellPlotted } from '../pure/format.ts'
import { spanOfBucket } from '../pure/range.ts'
import { sumOf, sumOfCredits } from '../pure/usage.ts'
import { creditName, reportingZone, zones } from '../session.ts'
import type { Listed, Me, OwnRequest, Usage } from '../shapes.ts'
import { AccountState, Expires } from '../ui/badges.tsx'
import { Away, Credits } from '../ui/numbers.tsx'
import { Panel, Shown } from '../ui/states.tsx'
import { Table } from '../ui/table.tsx'
import { usagePath, useRange } from './figures.ts'
import { Fact, LimitFacts } from './key-fields.tsx'
import { ownColumns, rowHref } from './own-requests.tsx'
import { outcomeSeries, seriesOf } from './series.tsx'

/** The overview for the owner of a key: their remaining credit, their spending, and their last requests. */
export function Own() {
  const told = useSteady<Me>('/me')
  useAgain(told.reload)
  return (
    <Shown of={told} height={84} lines={2}>
      {(me) => (me.kind === 'owner' ? <OwnView me={me} /> : null)}
    </Shown>
  )
}

function OwnView({ me: { account, key, models, role } }: { me: Extract<Me, { kind: 'owner' }> }) {
  return (
    <>
      <div class="page-head">
        <h2>{account.name}</h2>
        <AccountState {...account} />
      </div>
      <dl class="tiles">
        <div class="tile">
          <dt>Balance of the account</dt>
          <dd class={readCredits(account.balance) <= 0n ? 'figure bad' : 'figure'}>
            <Credits value={account.balance} />
          </dd>
          <dd class="change">{creditName()}</dd>
        </div>
        <SpentThisMonth isPerson={key.person !== null} />
        <div class="tile">
          <dt>{role === null ? 'Spent by this key, ever' : 'Spent in this session, ever'}</dt>
          <dd class="figure">
            <Credits value={key.spent} />
          </dd>
          <dd class="change">{creditName()} in all</dd>
        </div>
      </dl>
      <LastRequests />
      <OwnPlots />
      <Panel title={role === null ? `Key ${key.label ?? ''}` : 'This session'}>
        <dl class="facts">
          <Fact name="Begins with">
            <code>{key.prefix}…</code>
          </Fact>
          <LimitFacts of={key} />
          <Fact name="Models">
            {key.models ? key.models.join(', ') : 'all'} ·{' '}
            <a href={hrefOf({ page: 'models' })}>{models.length} names</a>
          </Fact>
          <Fact name="Expires">
            <Expires iso={key.expires} />
          </Fact>
          {key.last_used !== undefined && (
            <Fact name="Last used">
              <Away iso={key.last_used} none="never" />
            </Fact>
          )}
        </dl>
      </Panel>
      <p class="pad">
        <a class="button primary" href={hrefOf({ page: 'setup' })}>
          Set up an agent
        </a>
      </p>
    </>
  )
}

/**
 * Shows the credits that the owner spent in the calendar month, with all keys and sessions that the lists below cover.
 */
function SpentThisMonth({ isPerson }: { isPerson: boolean }) {
  const month = dayIn(reportingZone(), Date.now()).slice(0, 7)
  const told = useSteady<Usage>(withQuery('/me/usage', { month, bucket: 'day', measures: 'credits,requests' }))
  return (
    <div class="tile">
      <dt>{isPerson ? 'Spent by you, this month' : 'Spent this month'}</dt>
      <dd class="figure">
        <Credits value={told.data && sumOfCredits(told.data.total)} />
      </dd>
      <dd class="change">
        {creditName()} in {tellMonth(month)}
        {told.data && `, ${tellCount(sumOf(told.data.total, 'requests'))} requests`}
      </dd>
    </div>
  )
}

/** Lists the last requests. Each row leads to the explanation of its request. */
function LastRequests() {
  const list = useSteady<Listed<OwnRequest>>(withQuery('/me/requests', { limit: 5 }))
  useAgain(list.reload)
  return (
    <Panel title="Last requests" tools={<a href={pageHref('requests')}>All</a>}>
      <Shown of={list} height={36} lines={5}>
        {({ items }) =>
          items.length === 0 ? (
            <p class="pad">No request is listed yet. Requests are listed when they end, even refused ones.</p>
          ) : (
            <Table
              label="Last requests"
              class="tight"
              rows={items}
              columns={ownColumns}
              keyOf={({ request_id }) => request_id}
              hrefOf={({ request_id }) => rowHref(request_id)}
            />
          )
        }
      </Shown>
    </Panel>
  )
}

/** The time between two loads of the figures, in ms. */
const figuresMs = 60_000

function OwnPlots() {
  const range = useRange()
  const spend = useSteady<Usage>(usagePath({ range, by: 'model', measures: ['credits', 'requests'], top: 6 }))
  const outcomes = useSteady<Usage>(usagePath({ range, by: 'outcome', measures: ['requests'], top: outcomesMax }))
  // Figures are summed from many entries, so they are loaded less often.
  useAgain(() => refresh('/me/usage'), figuresMs)
  const frameOf = ({ buckets, bucket, complete_until }: Usage) => ({
    ...{ buckets, bucket, zones: zones(), kind: 'bars' as const },
    completeUntil: range.endsNow ? complete_until : undefined,
    onPick: (at: number) => go(hrefOf({ page: 'requests', query: spanOfBucket(buckets, at, range.to) })),
  })
  return (
    <div class="plots">
      <Shown of={spend} height={262}>
        {(shown) => (
          <Plot
            {...frameOf(shown)}
            title="Credits"
            unit={`${creditName()} per ${shown.bucket}, by model`}
            series={seriesOf(shown, 'credits', {})}
            total={`${tellCredits(sumOfCredits(shown.total))} ${creditName()}`}
            tell={tellPlotted}
          />
        )}
      </Shown>
      <Shown of={outcomes} height={262}>
        {(shown) => (
          <Plot
            {...frameOf(shown)}
            title="Requests"
            unit={`requests per ${shown.bucket}, by outcome`}
            series={outcomeSeries(shown)}
            total={`${tellCount(sumOf(shown.total, 'requests'))} requests`}
            tell={tellCount}
          />
        )}
      </Shown>
    </div>
  )
}
