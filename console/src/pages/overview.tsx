import { failingModels } from '../api/ask.ts'
import { useSteady } from '../api/load.ts'
import { apiOf, isDemo } from '../demo.ts'
import { hrefOf, pageHref, place, setQuery } from '../location.ts'
import { outcomesMax } from '../pure/colours.ts'
import { changeQuery, readList } from '../pure/place.ts'
import { periodBefore, type Range } from '../pure/range.ts'
import { sumOf, sumOfCredits } from '../pure/usage.ts'
import { isAdmin } from '../session.ts'
import type { Dimension, Usage } from '../shapes.ts'
import { Copy } from '../ui/copy.tsx'
import { Select } from '../ui/form.tsx'
import { Icon } from '../ui/icons.tsx'
import { Empty, Shown } from '../ui/states.tsx'
import { DemoOffer } from './demo.tsx'
import { dimensions, overviewMeasures, usagePath, useFresh, useRange } from './figures.ts'
import { FirstSteps } from './first-steps.tsx'
import { NeedsYou } from './needs.tsx'
import { OverviewPlots } from './overview-plots.tsx'
import { Tiles } from './tiles.tsx'
import { TopLists } from './top-lists.tsx'

/** Shows spending by model, failures, response times and the use of caches. */
export function Overview() {
  const range = useRange()
  const view = readView()
  const { by, only, filters, isCompared } = view
  const shown = only.length > 0 ? { ...filters, [by]: only.join(',') } : filters
  const path = usagePath({ range, by, measures: overviewMeasures, top: 6, only: shown })
  const main = useSteady<Usage>(path)
  const outcomesPath = usagePath({ range, by: 'outcome', measures: ['requests'], top: outcomesMax, only: shown })
  const outcomes = useSteady<Usage>(outcomesPath)
  const whole = { ...range, bucket: 'all' as const }
  const span = useSteady<Usage>(usagePath({ range: whole, measures: overviewMeasures, only: shown }))
  const before = { ...periodBefore(range), bucket: 'all' as const }
  const spanBefore = useSteady<Usage>(usagePath({ range: before, measures: overviewMeasures, only: shown }))
  const drawnBefore = useSteady<Usage>(
    isCompared
      ? usagePath({ range: { ...before, bucket: range.bucket }, by, measures: overviewMeasures, top: 6, only: shown })
      : undefined,
  )
  useFresh(range.endsNow, main.tookMs, '/usage')
  return (
    <>
      <Filters view={view} path={path} />
      <FailingNow />
      <NeedsYou />
      <FirstSteps />
      <Tiles span={span} before={spanBefore} range={range} />
      <Shown of={main} height={262} lines={3}>
        {(usage) =>
          sumOf(usage.total, 'requests') > 0 || sumOfCredits(usage.total) > 0n || main.isOld ? (
            <OverviewPlots
              usage={usage}
              path={path}
              outcomesPath={outcomesPath}
              outcomes={outcomes.data}
              before={isCompared ? drawnBefore.data : undefined}
              by={by}
              isCompared={only.length > 0}
              range={range}
              filters={shown}
            />
          ) : (
            <Nothing range={range} isFiltered={Object.keys(shown).length > 0} />
          )
        }
      </Shown>
      <TopLists range={range} filters={filters} by={by} only={only} />
    </>
  )
}

/** The outcomes that count as failed answers of a model. */
const failures = 'upstream_error,upstream_cut,upstream_stall'

/** Names the models that fail now, above all figures (CON-8). */
function FailingNow() {
  if (failingModels.value.length === 0) return null
  return (
    <div class="failure" role="alert">
      <Icon name="trouble" />
      <div>
        <strong>Failing now</strong>
        <p>
          At least half of the last 20 answers failed of{' '}
          {failingModels.value.map((id, at) => (
            <>
              {at > 0 && ', '}
              <a href={pageHref('requests', undefined, { model: id, outcome: failures })}>{id}</a>
            </>
          ))}
          . <a href={pageHref('upstreams')}>To the upstreams</a>
        </p>
      </div>
    </div>
  )
}

export type View = {
  by: Dimension
  /** The values to compare with each other, at most six. */
  only: readonly string[]
  filters: Partial<Record<Dimension, string>>
  isCompared: boolean
}

function readView(): View {
  const { query } = place.value
  const by = dimensions.map(([dimension]) => dimension).find((dimension) => dimension === query['by']) ?? 'model'
  const filters = Object.fromEntries(
    dimensions.flatMap(([dimension]) => (query[dimension] ? [[dimension, query[dimension]]] : [])),
  )
  return { by, only: readList(query['only']).slice(0, 6), filters, isCompared: query['compare'] === 'previous' }
}

function Filters({ view: { by, only, filters, isCompared }, path }: { view: View; path: string }) {
  return (
    <div class="filters">
      <Select
        label="By"
        hidesLabel
        value={by}
        options={dimensions.map(([dimension, label]) => [dimension, `by ${label}`] as const)}
        onChange={(next) => setQuery({ by: next === 'model' ? undefined : next, only: undefined })}
      />
      <label class="check">
        <input
          type="checkbox"
          checked={isCompared}
          onChange={(event) => setQuery({ compare: event.currentTarget.checked ? 'previous' : undefined })}
        />
        with the period before
      </label>
      {only.length > 0 && (
        <Chip
          text={`${only.length} ${by}${only.length > 1 ? 's' : ''} compared`}
          drop={() => setQuery({ only: undefined })}
        />
      )}
      {Object.entries(filters).map(([dimension, value]) => (
        <Chip key={dimension} text={`${dimension} ${value}`} drop={() => setQuery({ [dimension]: undefined })} />
      ))}
      <span class="spring" />
      <Copy text={() => window.location.href} label="Link" />
      <Copy
        text={() => `curl -H "authorization: Bearer $TRIWIRE_TOKEN" '${window.location.origin}${apiOf(path)}${path}'`}
        label="curl"
      />
    </div>
  )
}

export function Chip({ text, drop }: { text: string; drop(): void }) {
  return (
    <span class="chip">
      {text}
      <button type="button" aria-label={`Remove ${text}`} onClick={drop}>
        <Icon name="close" size={12} />
      </button>
    </span>
  )
}

function Nothing({ range, isFiltered }: { range: Range; isFiltered: boolean }) {
  const { query } = place.value
  const act = isFiltered ? (
    <a
      href={hrefOf({
        page: 'overview',
        query: changeQuery(
          query,
          Object.fromEntries(['only', ...dimensions.map(([name]) => name)].map((name) => [name, undefined])),
        ),
      })}
    >
      Show all
    </a>
  ) : (
    <p class="acts">
      {isAdmin() && (
        <a class="button primary" href={pageHref('accounts', undefined, { new: '1' })}>
          Make an account with a key
        </a>
      )}
      {!isDemo.value && <DemoOffer />}
    </p>
  )
  return (
    <Empty act={act}>
      No request {isFiltered ? 'of these ' : ''}was billed in this time ({range.label.toLowerCase()}).
    </Empty>
  )
}
