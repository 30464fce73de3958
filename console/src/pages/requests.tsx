import { useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { withQuery } from '../api/ask.ts'
import { useLive } from '../api/live.ts'
import { refresh, useList, useLoad, useSteady } from '../api/load.ts'
import { go, hrefOf, place, setQuery } from '../location.ts'
import { Plot } from '../plot/plot.tsx'
import { tellCount } from '../pure/format.ts'
import { readList } from '../pure/place.ts'
import { spanOfBucket } from '../pure/range.ts'
import { fits } from '../pure/request-filter.ts'
import { sumOf } from '../pure/usage.ts'
import { zones } from '../session.ts'
import type { Listed, ModelRow, RequestRow, Usage } from '../shapes.ts'
import { Outcome } from '../ui/badges.tsx'
import { Select } from '../ui/form.tsx'
import { Amount, Count, Ms, Time } from '../ui/numbers.tsx'
import { SearchField } from '../ui/search-field.tsx'
import { useEscape } from '../ui/shortcuts.tsx'
import { Empty, Shown } from '../ui/states.tsx'
import { type Column, furtherOf, Table } from '../ui/table.tsx'
import { Explain } from './explain.tsx'
import { usagePath, useFresh, useRange } from './figures.ts'
import { Chip } from './overview.tsx'
import { outcomeSeries } from './series.tsx'

const filterNames = ['account', 'key', 'model', 'upstream', 'outcome', 'status'] as const
/** The most new rows to hold back while the operator is scrolled further down. */
const waitingMax = 500
/** The list stops moving if it is scrolled further down than this, in px. */
const scrolledPx = 160

export function Requests({ id }: { id: string | undefined }) {
  const close = useMemo(
    () => () => {
      document.querySelector<HTMLElement>('tr.selected a')?.focus()
      go(hrefOf({ page: 'requests', query: place.peek().query }))
    },
    [],
  )
  useEscape(id === undefined ? undefined : close)
  return (
    <div class={id === undefined ? 'split' : 'split open'}>
      <div class="first">
        <RequestList selected={id} />
      </div>
      {id !== undefined && (
        <aside class="second" aria-label="Request explained">
          <Explain id={id} key={id} close={close} />
        </aside>
      )}
    </div>
  )
}

const columns: Column<RequestRow>[] = [
  {
    head: 'Over at',
    kind: 'fit',
    cell: ({ request_id, at }) => (
      <a href={rowHref(request_id)}>
        <Time iso={at} />
      </a>
    ),
  },
  { head: 'Ended', kind: 'fit', cell: ({ outcome, code }) => <Outcome outcome={outcome} code={code} /> },
  {
    head: 'Model',
    cell: ({ model, alias }) => <span title={alias ? `asked for as ${alias}` : undefined}>{model ?? '–'}</span>,
  },
  { head: 'Account', wide: true, cell: ({ account }) => account?.name ?? account?.id ?? '–' },
  { head: 'Key', wide: true, cell: ({ key }) => key?.label ?? key?.prefix ?? '–' },
  { head: 'Upstream', wide: true, cell: ({ upstream }) => upstream ?? '–' },
  { head: 'In', unit: 'tokens', kind: 'number', wide: true, cell: (row) => <Count value={inputOf(row)} /> },
  {
    head: 'Out',
    unit: 'tokens',
    kind: 'number',
    wide: true,
    cell: ({ output_tokens }) => <Count value={output_tokens} />,
  },
  { head: 'First byte', kind: 'number', wide: true, cell: ({ first_byte_ms }) => <Ms value={first_byte_ms} /> },
  { head: 'Total', kind: 'number', wide: true, cell: ({ total_ms }) => <Ms value={total_ms} /> },
  { head: 'Cost', unit: 'credits', kind: 'number', cell: ({ credits }) => <Amount value={credits} /> },
]

function rowHref(id: string): string {
  return hrefOf({ page: 'requests', id, query: place.value.query })
}

function inputOf({ input_tokens, cache_read_tokens, cache_write_tokens }: RequestRow): number | null {
  return input_tokens === null ? null : input_tokens + (cache_read_tokens ?? 0) + (cache_write_tokens ?? 0)
}

function RequestList({ selected }: { selected: string | undefined }) {
  const { query } = place.value
  const filter = Object.fromEntries(filterNames.map((name) => [name, query[name]]))
  const hasTime = Boolean(query['from'] && query['to'])
  const isLive = !hasTime && query['live'] !== 'off'
  const path = withQuery('/requests', { ...filter, from: query['from'], to: query['to'], limit: 50 })
  const list = useList<RequestRow>(path)
  const live = useTail(isLive, filter, path)
  useLive('reset', isLive ? listAnew : undefined)
  useLive('dropped', isLive ? listAnew : undefined)
  const known = new Set((list.items ?? []).map(({ request_id }) => request_id))
  const rows = [...live.shown.filter(({ request_id }) => !known.has(request_id)), ...(list.items ?? [])]
  return (
    <>
      <Filters filter={filter} isLive={isLive} hasTime={hasTime} />
      <Histogram />
      {live.waiting > 0 && (
        <button type="button" class="waiting" onClick={live.show}>
          {tellCount(live.waiting)} new
        </button>
      )}
      <Shown of={list} height={36} lines={10}>
        {() =>
          rows.length === 0 ? (
            <Empty>
              {Object.values(filter).some(Boolean) || hasTime
                ? 'No request fits.'
                : 'There was no request yet. They are listed here as they end, those that fail too.'}
            </Empty>
          ) : (
            <Table
              label="Requests"
              rows={rows}
              columns={columns}
              keyOf={({ request_id }) => request_id}
              hrefOf={({ request_id }) => rowHref(request_id)}
              selected={selected}
              {...furtherOf(list)}
            />
          )
        }
      </Shown>
    </>
  )
}

/** Loads the list again: it also has requests that ended without an event. */
function listAnew(): void {
  refresh('/requests')
}

/** Adds requests to the list as they end. While the list is scrolled further down, new ones are held back. */
function useTail(isOn: boolean, filter: Record<string, string | undefined>, path: string) {
  const shown = useSignal<readonly RequestRow[]>([])
  const waiting = useSignal<readonly RequestRow[]>([])
  useEffect(() => {
    shown.value = []
    waiting.value = []
  }, [path])
  const show = () => {
    shown.value = [...waiting.peek(), ...shown.peek()].slice(0, 2_000)
    waiting.value = []
    window.scrollTo({ top: 0 })
  }
  const listen = useMemo(
    () => (row: RequestRow) => {
      if (!fits(row, filter)) return
      if (window.scrollY > scrolledPx) waiting.value = [row, ...waiting.peek()].slice(0, waitingMax)
      else shown.value = [row, ...waiting.peek(), ...shown.peek()].slice(0, 2_000)
      if (window.scrollY <= scrolledPx) waiting.value = []
    },
    [path],
  )
  useLive('request.finished', isOn ? listen : undefined)
  return { shown: shown.value, waiting: waiting.value.length, show }
}

const outcomes = [
  'ok',
  'refused',
  'client_abort',
  'client_stall',
  'client_timeout',
  'upstream_cut',
  'upstream_stall',
  'upstream_error',
  'shutdown',
  'internal_error',
] as const

function Filters(props: { filter: Record<string, string | undefined>; isLive: boolean; hasTime: boolean }) {
  const { filter, isLive, hasTime } = props
  const models = useLoad<Listed<ModelRow>>('/models')
  const ids = [...new Set([...readList(filter['model']), ...(models.data?.items ?? []).map(({ id }) => id)])]
  return (
    <div class="filters">
      <SearchField label="Account, by name or id" name="account" />
      <Select
        label="Model"
        hidesLabel
        value={filter['model'] ?? ''}
        options={[
          ['', 'any model'],
          ...(filter['model']?.includes(',') ? [[filter['model'], 'several models'] as const] : []),
          ...ids.map((id) => [id, id] as const),
        ]}
        onChange={(model) => setQuery({ model: model || undefined })}
      />
      <Select
        label="Ended"
        hidesLabel
        value={filter['outcome'] ?? ''}
        options={[['', 'ended in any way'], ...outcomes.map((one) => [one, one.replaceAll('_', ' ')] as const)]}
        onChange={(outcome) => setQuery({ outcome: outcome || undefined })}
      />
      {(['key', 'upstream', 'status'] as const).map(
        (name) =>
          filter[name] && (
            <Chip key={name} text={`${name} ${filter[name]}`} drop={() => setQuery({ [name]: undefined })} />
          ),
      )}
      {hasTime && <Chip text="a time" drop={() => setQuery({ from: undefined, to: undefined })} />}
      <span class="spring" />
      {!hasTime && (
        <label class="check">
          <input
            type="checkbox"
            checked={isLive}
            onChange={(event) => setQuery({ live: event.currentTarget.checked ? undefined : 'off' }, 'replace')}
          />
          as they end
        </label>
      )}
    </div>
  )
}

/** Plots the number of requests with the same filter, and how they ended. */
function Histogram() {
  const range = useRange('24h')
  const { query } = place.value
  const only = Object.fromEntries(['account', 'key', 'model', 'upstream', 'outcome'].map((name) => [name, query[name]]))
  const usage = useSteady<Usage>(usagePath({ range, by: 'outcome', measures: ['requests'], top: 10, only }))
  useFresh(range.endsNow, usage.tookMs, '/usage')
  return (
    <Shown of={usage} height={262}>
      {(shown) => (
        <Plot
          title="Requests"
          unit={`per ${shown.bucket}, ${range.label.toLowerCase()}, by how they ended`}
          kind="bars"
          buckets={shown.buckets}
          bucket={shown.bucket}
          zones={zones()}
          completeUntil={range.endsNow ? shown.complete_until : undefined}
          series={outcomeSeries(shown)}
          total={`${tellCount(sumOf(shown.total, 'requests'))} requests`}
          tell={tellCount}
          onPick={(at) => setQuery({ ...spanOfBucket(shown.buckets, at, range.to), range: undefined })}
        />
      )}
    </Shown>
  )
}
