import { useSignal } from '@preact/signals'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { act } from '../api/act.ts'
import { Refusal } from '../api/ask.ts'
import { refresh, useLoad, useSteady } from '../api/load.ts'
import { go, hrefOf, pageHref } from '../location.ts'
import { Plot } from '../plot/plot.tsx'
import { tellCount, tellRequests, tellSpan } from '../pure/format.ts'
import { spanOfBucket } from '../pure/range.ts'
import { sumOf } from '../pure/usage.ts'
import { isAdmin, zones } from '../session.ts'
import type { Listed, UpstreamState, Usage } from '../shapes.ts'
import { AdminOnly } from '../ui/admin-only.tsx'
import { UpstreamSign } from '../ui/badges.tsx'
import { Icon } from '../ui/icons.tsx'
import { Count } from '../ui/numbers.tsx'
import { Empty, Panel, Shown } from '../ui/states.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { say } from '../ui/toasts.tsx'
import { usagePath, useFresh, useRange } from './figures.ts'
import { outcomeSeries, seriesOf } from './series.tsx'

/** Shows whether each upstream account is ready, or why and how long it is avoided. Admins can change that. */
export function Upstreams({ id }: { id: string | undefined }) {
  const list = useLoad<Listed<UpstreamState>>('/upstreams')
  useFresh(true, list.tookMs, '/upstreams')
  const troubled = useTroubled(list)
  return (
    <Shown of={list} height={120} lines={3}>
      {(all) => {
        const items = all.items.toSorted((a, b) => Number(troubled.has(nameOf(b))) - Number(troubled.has(nameOf(a))))
        const shown = id === undefined ? items : items.filter(({ upstream }) => upstream === id)
        if (shown.length === 0)
          return (
            <Empty act={id !== undefined && <a href={pageHref('upstreams')}>To the upstreams</a>}>
              {id === undefined ? 'No upstream is configured.' : 'No upstream has this name.'}
            </Empty>
          )
        const names = [...new Set(shown.map(({ upstream }) => upstream))]
        return (
          <>
            <Results only={id} />
            {names.map((name) => (
              <Upstream
                key={name}
                name={name}
                rows={shown.filter(({ upstream }) => upstream === name)}
                tookAtMs={list.atMs}
                isAlone={id !== undefined}
              />
            ))}
          </>
        )
      }}
    </Shown>
  )
}

const nameOf = ({ upstream, model, account }: UpstreamState) => `${upstream} ${model} ${account}`

/**
 * Returns the services that need an operator when the page is opened. They are listed first. The set is kept until the
 * page is left, so that a row with the focus does not move when its button is pressed.
 */
function useTroubled({ data, atMs }: { data: Listed<UpstreamState> | undefined; atMs: number }): ReadonlySet<string> {
  const kept = useMemo(() => ({ openedMs: Date.now(), atMs: 0, names: new Set<string>() }), [])
  // The first data may be those of an earlier visit.
  if (data && kept.atMs < kept.openedMs) {
    const rows = data.items.filter(({ state, failing }) => failing || !['ready', 'off', 'disabled'].includes(state))
    Object.assign(kept, { atMs, names: new Set(rows.map(nameOf)) })
  }
  return kept.names
}

/** Plots requests over time by upstream; for a single upstream, by how they ended. */
function Results({ only }: { only: string | undefined }) {
  const range = useRange('24h')
  const by = only === undefined ? 'upstream' : 'outcome'
  const measures = ['requests', 'errors'] as const
  const usage = useSteady<Usage>(usagePath({ range, by, measures, top: 10, only: { upstream: only } }))
  useFresh(range.endsNow, usage.tookMs, '/usage')
  return (
    <Shown of={usage} height={262}>
      {(shown) => {
        const frame = {
          kind: 'bars' as const,
          buckets: shown.buckets,
          bucket: shown.bucket,
          zones: zones(),
          completeUntil: range.endsNow ? shown.complete_until : undefined,
          tell: tellCount,
          onPick: (at: number) =>
            go(
              hrefOf({
                page: 'requests',
                query: { ...spanOfBucket(shown.buckets, at, range.to), ...(only && { upstream: only }) },
              }),
            ),
        }
        const unit = `per ${shown.bucket}, ${range.label.toLowerCase()}`
        if (by === 'outcome')
          return (
            <Plot
              {...frame}
              title="Requests"
              unit={`${unit}, by how they ended`}
              series={outcomeSeries(shown)}
              total={tellRequests(sumOf(shown.total, 'requests'))}
            />
          )
        return (
          <div class="plots two">
            <Plot
              {...frame}
              title="Requests"
              unit={`${unit}, by upstream`}
              series={seriesOf(shown, 'requests', {})}
              total={tellRequests(sumOf(shown.total, 'requests'))}
            />
            <Plot
              {...frame}
              title="Failed"
              unit={`${unit}, by upstream`}
              series={seriesOf(shown, 'errors', {})}
              total={`${tellCount(sumOf(shown.total, 'errors'))} failed`}
            />
          </div>
        )
      }}
    </Shown>
  )
}

type Props = { name: string; rows: readonly UpstreamState[]; tookAtMs: number; isAlone: boolean }

function Upstream({ name, rows, tookAtMs, isAlone }: Props) {
  const troubled = rows.filter(({ state }) => state !== 'ready').length
  const failing = rows.filter((row) => row.failing).length
  const columns: Column<UpstreamState>[] = [
    { head: 'Model', by: ({ model }) => model, cell: ({ model }) => <a href={pageHref('models', model)}>{model}</a> },
    { head: 'Account', by: ({ account }) => account, cell: ({ account }) => account ?? '–' },
    { head: 'State', kind: 'fit', by: ({ state }) => state, cell: (row) => <UpstreamSign {...row} /> },
    {
      head: 'Cause',
      by: ({ cause }) => cause,
      cell: ({ cause, heard }) => (
        <>
          {cause?.replaceAll('_', ' ') ?? '–'}
          {heard && <span class="unit"> at another server</span>}
        </>
      ),
    },
    {
      head: 'Tried again',
      kind: 'number',
      by: ({ wait_ms }) => wait_ms,
      cell: ({ wait_ms }) => <Countdown ms={wait_ms} sinceMs={tookAtMs} />,
    },
    {
      head: 'Failures',
      unit: 'in a row',
      kind: 'number',
      wide: true,
      by: ({ failures }) => failures,
      cell: ({ failures }) => <Count value={failures} />,
    },
    {
      head: 'Retries left',
      unit: 'this minute',
      kind: 'number',
      wide: true,
      by: ({ retries_left }) => retries_left,
      cell: ({ retries_left }) => <Count value={retries_left} />,
    },
  ]
  if (isAdmin())
    columns.push({
      head: 'Acts',
      hidesHead: true,
      kind: 'fit',
      cell: (row) => <Steer upstream={name} rows={[row]} row={row} />,
    })
  return (
    <Panel
      title={name}
      unit={
        failing > 0
          ? `${failing} of ${rows.length} failing${troubled > 0 ? `, ${troubled} not ready` : ''}`
          : troubled === 0
            ? `${rows.length === 1 ? 'its only service is' : `all ${rows.length} services are`} ready`
            : `${troubled} of ${rows.length} not ready`
      }
      tools={
        <>
          {!isAlone && <a href={pageHref('upstreams', name)}>Details</a>}
          <AdminOnly acts="retry, disable and enable upstreams">
            <Steer upstream={name} rows={rows} />
          </AdminOnly>
        </>
      }
    >
      <Table
        label={`Accounts of ${name}`}
        rows={rows}
        keyOf={({ model, account }) => `${model} ${account}`}
        columns={columns}
      />
    </Panel>
  )
}

function Countdown({ ms, sinceMs }: { ms: number | null; sinceMs: number }) {
  const now = useSignal(Date.now())
  useEffect(() => {
    if (ms === null) return undefined
    const timer = window.setInterval(() => {
      now.value = Date.now()
    }, 1_000)
    return () => window.clearInterval(timer)
  }, [ms, sinceMs])
  if (ms === null) return <span class="none">–</span>
  const left = sinceMs + ms - now.value
  return <span>{left <= 0 ? 'now' : `in ${tellSpan(left)}`}</span>
}

/** Buttons that disable or enable a whole upstream, or one account's service of a model. */
function Steer({ upstream, rows, row }: { upstream: string; rows: readonly UpstreamState[]; row?: UpstreamState }) {
  const [isBusy, setBusy] = useState(false)
  const states = new Set(rows.map(({ state }) => state as string))
  const where = row ? { model: row.model, ...(row.account !== null && { account: row.account }) } : {}
  const what = row ? `${row.model} at ${upstream}` : upstream
  const steer = async (how: 'retry' | 'disable' | 'enable', done: string) => {
    if (isBusy) return
    setBusy(true)
    try {
      await act(`/upstreams/${encodeURIComponent(upstream)}/${how}`, where)
      say(`${what} ${done}.`)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      say(error.message, true)
    } finally {
      setBusy(false)
      refresh('/upstreams')
    }
  }
  return (
    <span class="acts">
      {(states.has('cooling') || states.has('trial')) && (
        <button
          key="retry"
          type="button"
          class="small-button"
          aria-disabled={isBusy}
          onClick={() => void steer('retry', 'is tried again')}
        >
          Retry now
        </button>
      )}
      {states.has('disabled') ? (
        <button
          key="enable"
          type="button"
          class="small-button"
          aria-disabled={isBusy}
          aria-label={`Enable ${what}`}
          onClick={() => void steer('enable', 'is asked again')}
        >
          Enable
        </button>
      ) : (
        <button
          key="disable"
          type="button"
          class="small-button"
          aria-disabled={isBusy}
          aria-label={`Disable ${what}`}
          onClick={() => void steer('disable', 'gets no requests until it is enabled')}
        >
          <Icon name="off" size={12} /> Disable
        </button>
      )}
    </span>
  )
}
