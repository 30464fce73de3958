import { useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { withQuery } from '../api/ask.ts'
import { useLive } from '../api/live.ts'
import { refresh, useList, useLoad, useSteady } from '../api/load.ts'
import { isDemo } from '../demo.ts'
import { hrefOf, place, setQuery } from '../location.ts'
import { Plot } from '../plot/plot.tsx'
import { outcomesMax } from '../pure/colours.ts'
import { tellCount, tellRequests } from '../pure/format.ts'
import { readList } from '../pure/place.ts'
import { spanOfBucket } from '../pure/range.ts'
import { fits, tellPlottedMore } from '../pure/request-filter.ts'
import { inputOf, sumOf } from '../pure/usage.ts'
import { creditName, zones } from '../session.ts'
import type { Key, Listed, ModelRow, RequestRow, UpstreamState, Usage } from '../shapes.ts'
import { Outcome } from '../ui/badges.tsx'
import { CsvButton } from '../ui/csv-button.tsx'
import { Select } from '../ui/form.tsx'
import { Count, Credits, Ms, Time } from '../ui/numbers.tsx'
import { Pick, PickAccount, useNamed } from '../ui/pick.tsx'
import { NoneFits, NotListed, Shown } from '../ui/states.tsx'
import { type Column, furtherOf, Table } from '../ui/table.tsx'
import { Explain } from './explain.tsx'
import { usagePath, useFresh, useRange } from './figures.ts'
import { Chip } from './overview.tsx'
import { RequestSplit } from './request-frame.tsx'
import { outcomeSeries } from './series.tsx'

const filterNames = ['account', 'key', 'model', 'upstream', 'outcome', 'status'] as const
/** The most new rows to hold back while the operator is scrolled further down. */
const waitingMax = 500
/** The list stops moving if it is scrolled further down than this, in px. */
const scrolledPx = 160
/** The most rows of a sorted list. */
const sortedRows = 200

export function Requests({ id }: { id: string | undefined }) {
  return (
    <RequestSplit
      id={id}
      list={<RequestList selected={id} />}
      explain={(one, close) => <Explain id={one} key={one} close={close} />}
    />
  )
}

const columns: Column<RequestRow>[] = [
  {
    head: 'Ended at',
    kind: 'fit',
    sorts: ['-at', 'at'],
    cell: ({ request_id, at }) => (
      <a href={rowHref(request_id)}>
        <Time iso={at} />
      </a>
    ),
  },
  {
    head: 'Ended',
    kind: 'fit',
    by: ({ outcome, code }) => (outcome === 'ok' ? outcome : (code ?? outcome)),
    cell: ({ outcome, code }) => <Outcome outcome={outcome} code={code} />,
  },
  {
    head: 'Model',
    by: ({ model }) => model,
    cell: ({ model, alias }) => <span title={alias ? `asked for as ${alias}` : undefined}>{model ?? '–'}</span>,
  },
  { head: 'Account', wide: true, by: accountOf, cell: (row) => accountOf(row) ?? '–' },
  { head: 'Key', wide: true, by: keyOf, cell: (row) => keyOf(row) ?? '–' },
  { head: 'Upstream', wide: true, by: ({ upstream }) => upstream, cell: ({ upstream }) => upstream ?? '–' },
  {
    head: 'In',
    unit: 'tokens',
    kind: 'number',
    wide: true,
    sorts: ['-input_tokens', 'input_tokens'],
    cell: (row) => <Count value={inputOf(row)} />,
  },
  {
    head: 'Out',
    unit: 'tokens',
    kind: 'number',
    wide: true,
    sorts: ['-output_tokens', 'output_tokens'],
    cell: ({ output_tokens }) => <Count value={output_tokens} />,
  },
  {
    head: 'First byte',
    kind: 'number',
    wide: true,
    sorts: ['-first_byte_ms', 'first_byte_ms'],
    cell: ({ first_byte_ms }) => <Ms value={first_byte_ms} />,
  },
  {
    head: 'Total',
    kind: 'number',
    wide: true,
    sorts: ['-total_ms', 'total_ms'],
    cell: ({ total_ms }) => <Ms value={total_ms} />,
  },
  {
    head: 'Cost',
    get unit() {
      return creditName()
    },
    kind: 'number',
    sorts: ['-credits', 'credits'],
    cell: ({ credits }) => <Credits value={credits} />,
  },
]

function accountOf({ account }: RequestRow): string | null | undefined {
  return account?.name ?? account?.id
}

function keyOf({ key }: RequestRow): string | null | undefined {
  return key?.label ?? key?.prefix
}

function rowHref(id: string): string {
  return hrefOf({ page: 'requests', id, query: place.value.query })
}

function RequestList({ selected }: { selected: string | undefined }) {
  const { query } = place.value
  const filter = Object.fromEntries(filterNames.map((name) => [name, query[name]]))
  const hasTime = Boolean(query['from'] && query['to'])
  const { sort = '-at' } = query
  const isSorted = sort !== '-at'
  const isLive = !hasTime && !isSorted && query['live'] !== 'off'
  const asked = { ...filter, from: query['from'], to: query['to'], sort: isSorted ? sort : undefined }
  // A sorted list is one page.
  const path = withQuery('/requests', { ...asked, limit: isSorted ? sortedRows : 50 })
  const list = useList<RequestRow>(path)
  const live = useTail(isLive, filter, path)
  const known = new Set((list.items ?? []).map(({ request_id }) => request_id))
  const rows = [...live.shown.filter(({ request_id }) => !known.has(request_id)), ...(list.items ?? [])]
  return (
    <>
      <Filters
        filter={filter}
        isLive={isLive}
        hasTime={hasTime}
        isSorted={isSorted}
        csvPath={withQuery('/requests', asked)}
      />
      <Histogram />
      {live.waiting > 0 && (
        <button type="button" class="waiting" onClick={live.show}>
          {tellCount(live.waiting)} new
        </button>
      )}
      <Shown of={list} height={36} lines={10}>
        {() =>
          rows.length === 0 ? (
            <NoneFits of={list}>
              {Object.values(filter).some(Boolean) || hasTime
                ? 'No request fits.'
                : 'No request is listed yet. Requests are listed here when they end, even failed ones.'}
            </NoneFits>
          ) : (
            <Table
              label="Requests"
              class="tight"
              sort={sort}
              onSort={(next) => setQuery({ sort: next })}
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
      <NotListed of={list} />
    </>
  )
}

/** Adds requests to the list as they end. While the list is scrolled further down, new ones are held back. */
function useTail(isOn: boolean, filter: Record<string, string | undefined>, path: string) {
  const shown = useSignal<readonly RequestRow[]>([])
  const waiting = useSignal<readonly RequestRow[]>([])
  const empty = () => {
    shown.value = []
    waiting.value = []
  }
  useEffect(empty, [path])
  // Loads the list again: it also has requests that ended without an event.
  const listAnew = useMemo(
    () => () => {
      empty()
      refresh('/requests')
    },
    [],
  )
  useEffect(() => (isOn ? undefined : listAnew), [isOn])
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
  useLive('reset', isOn ? listAnew : undefined)
  useLive('dropped', isOn ? listAnew : undefined)
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

/** The statuses that the gateway answers with (docs/errors.md). */
const statuses = [
  '200',
  '400',
  '401',
  '402',
  '404',
  '408',
  '413',
  '417',
  '422',
  '426',
  '429',
  '431',
  '500',
  '502',
  '503',
]

type FilterProps = {
  filter: Record<string, string | undefined>
  isLive: boolean
  hasTime: boolean
  isSorted: boolean
  csvPath: string
}

function Filters({ filter, isLive, hasTime, isSorted, csvPath }: FilterProps) {
  const models = useModelNames()
  const upstreams = useLoad<Listed<UpstreamState>>('/upstreams')
  const key = useNamed<Key>('/keys', filter['key'])
  return (
    <div class="filters">
      <PickAccount said={filter['account']} />
      <Pick<Key>
        label="Any key"
        hidesLabel
        shown={key ? (key.label ?? key.prefix) : (filter['key'] ?? '')}
        pathOf={(q) => withQuery('/keys', { q, account: filter['account'], limit: 20 })}
        choiceOf={({ id, label, prefix, account_name }) => ({
          id,
          name: label ?? prefix,
          more: `${prefix}… of ${account_name}`,
        })}
        onPick={(choice) => setQuery({ key: choice?.id })}
      />
      <FilterSelect name="model" said={filter['model']} any="any model" of={models} />
      <FilterSelect
        name="upstream"
        said={filter['upstream']}
        any="any upstream"
        of={(upstreams.data?.items ?? []).map(({ upstream }) => upstream)}
      />
      <FilterSelect name="outcome" said={filter['outcome']} any="ended in any way" of={outcomes} />
      <FilterSelect name="status" said={filter['status']} any="any status" of={statuses} />
      {hasTime && <Chip text="a time" drop={() => setQuery({ from: undefined, to: undefined })} />}
      <span class="spring" />
      {isSorted && <span class="small">The last 5,000 that fit, sorted</span>}
      <CsvButton path={csvPath} name="requests.csv" label="Requests as CSV" />
      {!hasTime && !isSorted && (
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

/**
 * Returns the models of the catalog without chains, whose requests have the model that answered. In the demo, whose
 * models are in no catalog, returns those with the most requests.
 */
function useModelNames(): readonly string[] {
  const range = { ...useRange('30d'), bucket: 'all' as const }
  const path = usagePath({ range, by: 'model', measures: ['requests'], top: 50 })
  const catalog = useLoad<Listed<ModelRow>>(isDemo.value ? undefined : '/models')
  const used = useSteady<Usage>(isDemo.value ? path : undefined)
  const models = catalog.data?.items.filter(({ chain }) => chain === null)
  return (isDemo.value ? used.data?.series.map(({ of }) => of.model ?? '') : models?.map(({ id }) => id)) ?? []
}

const filterLabels = { model: 'Model', upstream: 'Upstream', outcome: 'Ended', status: 'Status' } as const

/** A filter by one of the known values. An address may have several, with commas, or one that is no longer known. */
function FilterSelect(props: {
  name: keyof typeof filterLabels
  said: string | undefined
  any: string
  of: readonly string[]
}) {
  const { name, said = '', any, of } = props
  const values = [...new Set([...readList(said), ...of])]
  return (
    <Select
      label={filterLabels[name]}
      hidesLabel
      value={said}
      options={[
        ['', any],
        ...(said.includes(',') ? [[said, `${name}: ${said.replaceAll(',', ', ')}`] as const] : []),
        ...values.map((value) => [value, value.replaceAll('_', ' ')] as const),
      ]}
      onChange={(next) => setQuery({ [name]: next || undefined })}
    />
  )
}

/** Plots the number of requests with the same filter, and how they ended. */
function Histogram() {
  const range = useRange('24h')
  const { query } = place.value
  const only = Object.fromEntries(['account', 'key', 'model', 'upstream', 'outcome'].map((name) => [name, query[name]]))
  const usage = useSteady<Usage>(usagePath({ range, by: 'outcome', measures: ['requests'], top: outcomesMax, only }))
  useFresh(range.endsNow, usage.tookMs, '/usage')
  return (
    <Shown of={usage} height={262}>
      {(shown) => (
        <Plot
          title="Requests"
          unit={`per ${shown.bucket}, ${range.label.toLowerCase()}, by how they ended${tellPlottedMore(query)}`}
          kind="bars"
          buckets={shown.buckets}
          bucket={shown.bucket}
          zones={zones()}
          completeUntil={range.endsNow ? shown.complete_until : undefined}
          series={outcomeSeries(shown)}
          total={tellRequests(sumOf(shown.total, 'requests'))}
          tell={tellCount}
          onPick={(at) => setQuery({ ...spanOfBucket(shown.buckets, at, range.to), range: undefined })}
        />
      )}
    </Shown>
  )
}
