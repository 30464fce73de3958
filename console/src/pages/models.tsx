import { failingModels } from '../api/ask.ts'
import { useLoad, useSteady } from '../api/load.ts'
import { isDemo } from '../demo.ts'
import { hrefOf, pageHref, place } from '../location.ts'
import { readCredits, tellCount } from '../pure/format.ts'
import { cacheShareOf, countedAs, isFailing, shareOf, sumOf, sumOfCredits, valuesOf } from '../pure/usage.ts'
import { creditName } from '../session.ts'
import type { Listed, ModelRow, Series, Usage } from '../shapes.ts'
import { FailingModel } from '../ui/badges.tsx'
import { Icon } from '../ui/icons.tsx'
import { Count, Credits, Ms, Share } from '../ui/numbers.tsx'
import { SearchField } from '../ui/search-field.tsx'
import { Empty, Panel, Shown } from '../ui/states.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { usagePath, useRange } from './figures.ts'
import { Fact } from './key-fields.tsx'
import { SpendPlot } from './spend-plot.tsx'

/** The demo's store has entries of models, but a catalog is a part of the configuration. */
const demoModels =
  'The models of the demo are made up, so they are not in the catalog. The list of models is that of this gateway.'

export function Models({ id }: { id: string | undefined }) {
  const list = useLoad<Listed<ModelRow>>('/models')
  return (
    <Shown of={list} height={36} lines={8}>
      {({ items }) => (id === undefined ? <ModelList models={items} /> : <ModelPage models={items} id={id} key={id} />)}
    </Shown>
  )
}

/** Loads the traffic of each model in the range. */
function useTraffic(): { of: ReadonlyMap<string, Series>; all: bigint } {
  const range = useRange('7d')
  const whole = { ...range, bucket: 'all' as const }
  const measures = [
    'credits',
    'requests',
    'errors',
    'input_tokens',
    'cache_read_tokens',
    'cache_write_tokens',
    'first_byte_ms',
  ] as const
  const { data } = useSteady<Usage>(usagePath({ range: whole, by: 'model', measures, top: 50 }))
  return {
    of: new Map((data?.series ?? []).map((series) => [series.of.model ?? '', series])),
    all: data ? sumOfCredits(data.total) : 0n,
  }
}

function ModelList({ models }: { models: readonly ModelRow[] }) {
  const { of, all } = useTraffic()
  const q = (place.value.query['q'] ?? '').toLowerCase()
  const rows = models.filter(({ id, also, wire, upstreams }) =>
    [id, wire, ...also, ...upstreams.map(({ name }) => name)].some((text) => text.toLowerCase().includes(q)),
  )
  const figure =
    <T,>(read: (series: Series) => T) =>
    ({ id }: ModelRow) => {
      const series = of.get(id)
      return series && read(series)
    }
  const requestsOf = figure((series) => sumOf(series, 'requests'))
  const creditsOf = figure(sumOfCredits)
  const creditsShare = figure((series) => shareOf(sumOfCredits(series), all))
  const firstByteOf = figure((series) => valuesOf(series, 'first_byte_ms')[0])
  const cachedOf = figure(cacheShareOf)
  const namesOf = ({ upstreams }: ModelRow) => upstreams.map(({ name }) => name).join(', ')
  const columns: Column<ModelRow>[] = [
    {
      head: 'Model',
      by: ({ id }) => id,
      cell: ({ id, also, chain }) => (
        <>
          <a href={pageHref('models', id)}>{id}</a>
          {also.length > 0 && <span class="small"> also {also.join(', ')}</span>}
          {chain && <span class="small"> a chain of {chain.join(', ')}</span>}
          {isFailing({ id, chain }, failingModels.value) && <FailingModel />}
        </>
      ),
    },
    {
      head: 'Wire',
      kind: 'fit',
      by: ({ wire }) => wire,
      cell: ({ wire }) => <span class={`wire ${wire}`}>{wire}</span>,
    },
    { head: 'Upstream', wide: true, by: namesOf, cell: namesOf },
    {
      head: 'Input',
      unit: 'per 1 M',
      kind: 'number',
      wide: true,
      by: ({ prices }) => readCredits(prices.input),
      cell: ({ prices }) => prices.input,
    },
    {
      head: 'Cached',
      unit: 'per 1 M',
      kind: 'number',
      wide: true,
      by: ({ prices }) => readCredits(prices.cache_read),
      cell: ({ prices }) => prices.cache_read,
    },
    {
      head: 'Output',
      unit: 'per 1 M',
      kind: 'number',
      wide: true,
      by: ({ prices }) => readCredits(prices.output),
      cell: ({ prices }) => prices.output,
    },
    {
      head: 'Requests',
      kind: 'number',
      by: requestsOf,
      cell: (row) => <Count value={requestsOf(row)} />,
    },
    {
      head: 'Share',
      unit: `of ${creditName()}`,
      kind: 'number',
      by: creditsOf,
      cell: (row) => <Share value={all > 0n ? creditsShare(row) : undefined} />,
    },
    {
      head: 'First byte',
      unit: 'p95',
      kind: 'number',
      wide: true,
      by: firstByteOf,
      cell: (row) => <Ms value={firstByteOf(row)} />,
    },
    {
      head: 'Cached',
      unit: 'of input',
      kind: 'number',
      wide: true,
      by: cachedOf,
      cell: (row) => <Share value={cachedOf(row)} />,
    },
  ]
  return (
    <>
      <div class="filters">
        <SearchField label="Model, wire or upstream" name="q" />
      </div>
      {isDemo.value && (
        <p class="note" role="status">
          {demoModels}
        </p>
      )}
      {rows.length === 0 ? (
        <Empty>
          {models.length === 0 ? 'The catalog has no model: triwire catalog add puts one in.' : 'No model fits.'}
        </Empty>
      ) : (
        <Table
          label="Models"
          rows={rows}
          columns={columns}
          keyOf={({ id }) => id}
          hrefOf={({ id }) => pageHref('models', id)}
        />
      )}
    </>
  )
}

function ModelPage({ models, id }: { models: readonly ModelRow[]; id: string }) {
  const model = models.find((one) => one.id === id || one.also.includes(id))
  const { of, all } = useTraffic()
  if (!model)
    return (
      <Empty act={<a href={pageHref('models')}>To the models</a>}>
        {isDemo.value ? demoModels : 'The catalog has no model of this name, or no longer.'}
      </Empty>
    )
  const counted = countedAs(model)
  const series = of.get(counted)
  const { prices } = model
  return (
    <>
      <div class="page-head">
        <a class="back" href={pageHref('models')}>
          <Icon name="back" /> Models
        </a>
        <h2>{model.id}</h2>
        {isFailing(model, failingModels.value) && <FailingModel />}
        <span class={`wire ${model.wire}`}>{model.wire}</span>
        <span class="spring" />
        <a class="button" href={pageHref('requests', undefined, { model: counted })}>
          Requests
        </a>
        <a class="button" href={hrefOf({ page: 'translate', query: { model: model.id } })}>
          Translate
        </a>
        <a class="button primary" href={hrefOf({ page: 'playground', query: { model: model.id } })}>
          Try
        </a>
      </div>
      <SpendPlot only={{ model: counted }} usual="7d" by="account" />
      <div class="plots two">
        <Panel title="Facts">
          <dl class="facts">
            {model.also.length > 0 && <Fact name="Other names">{model.also.join(', ')}</Fact>}
            {model.chain && (
              <Fact name="Chain">
                {model.chain.join(', ')}: the first one answers, and a further one if it cannot. Figures and prices here
                are those of the first.
              </Fact>
            )}
            <Fact name="Context window">
              <Count value={model.context_window} /> {model.context_window === null ? '' : 'tokens'}
            </Fact>
            <Fact name="Longest answer">
              <Count value={model.max_output_tokens} /> tokens
            </Fact>
            <Fact name={`Share of ${creditName()}`}>
              <Share value={series && all > 0n ? shareOf(sumOfCredits(series), all) : undefined} />
            </Fact>
            <Fact name="Credits">
              <Credits value={series && sumOfCredits(series)} />
            </Fact>
            <Fact name="Cached of input">
              <Share value={series && cacheShareOf(series)} />
            </Fact>
            {model.upstreams.map(({ name, priority, weight, upstream_model }) => (
              <Fact name={`Upstream, priority ${priority}`} key={name}>
                <a href={pageHref('upstreams', name)}>{name}</a> as <code>{upstream_model}</code>
                {weight !== 1 && <span class="small"> weight {weight}</span>}
              </Fact>
            ))}
          </dl>
        </Panel>
        <Prices prices={prices} version={model.price_version} />
      </div>
    </>
  )
}

const rates = [
  ['input', 'Input'],
  ['cache_read', 'From cache'],
  ['cache_write', 'Into cache'],
  ['cache_write_1h', 'Into cache for an hour'],
  ['output', 'Output'],
] as const

type Rate = { rate: (typeof rates)[number][0] | undefined; label: string; price: string }

function Prices({ prices, version }: { prices: ModelRow['prices']; version: string }) {
  const steps = prices.steps ?? []
  const calls = Object.entries(prices.calls ?? {})
  const rows: Rate[] = [
    ...rates.map(([rate, label]) => ({ rate, label, price: prices[rate] })),
    ...calls.map(([kind, price]) => ({ rate: undefined, label: `A call of ${kind.replaceAll('_', ' ')}`, price })),
  ]
  return (
    <Panel title="Prices" unit={`${creditName()} per million tokens`}>
      <Table
        label="Prices"
        class="plain"
        rows={rows}
        keyOf={({ label }) => label}
        columns={[
          { head: 'Tokens', by: ({ label }) => label, cell: ({ label }) => label },
          { head: 'Price', kind: 'number', by: ({ price }) => readCredits(price), cell: ({ price }) => price },
          ...steps.map(
            (step): Column<Rate> => ({
              head: `above ${tellCount(step.above)}`,
              kind: 'number',
              by: ({ rate }) => (rate ? readCredits(step[rate]) : undefined),
              cell: ({ rate }) => rate && step[rate],
            }),
          ),
        ]}
      />
      <p class="small pad">Version {version}. Clients and owners of keys are told no prices.</p>
    </Panel>
  )
}
