import { putGenerated } from './support/generated.ts'

// Writes ops/grafana/triwire.json from the table of panels. `--check` only reports whether the file is up to date.

/** A line of a plot: its query and its label. */
type Query = readonly [expr: string, legend: string]
type Panel = { title: string; says: string; unit: string; stacked?: boolean; queries: readonly Query[] }
type Row = { title: string; panels: readonly Panel[] }

const rate = (metric: string, more = '') => `rate(${metric}{job=~"$job",model=~"$model"${more}}[$__rate_interval])`
const bare = (metric: string, labels = '') => `${metric}{job=~"$job"${labels}}`
const quantile = (share: number, metric: string, by = '') =>
  `histogram_quantile(${share}, sum by (le${by}) (${rate(`${metric}_bucket`)}))`

const rows: readonly Row[] = [
  {
    title: 'Traffic',
    panels: [
      {
        title: 'Requests by outcome',
        says: 'A second; all but ok and refused are failures.',
        unit: 'reqps',
        stacked: true,
        queries: [[`sum by (outcome) (${rate('triwire_requests_total')})`, '{{outcome}}']],
      },
      {
        title: 'Requests by model',
        says: 'A second; without those that were refused before their model was known.',
        unit: 'reqps',
        stacked: true,
        queries: [[`sum by (model) (${rate('triwire_requests_total', ',model!=""')})`, '{{model}}']],
      },
      {
        title: 'Refusals',
        says: 'What clients were told, a second, and our own word for why.',
        unit: 'reqps',
        stacked: true,
        queries: [
          [`sum by (code, reason) (rate(${bare('triwire_refusals_total')}[$__rate_interval]))`, '{{code}} {{reason}}'],
        ],
      },
      {
        title: 'Under way',
        says: 'Requests that run now, and of those the ones that stream.',
        unit: 'short',
        queries: [
          [`sum(${bare('triwire_requests_active')})`, 'requests'],
          [`sum(${bare('triwire_streams_active')})`, 'streams'],
        ],
      },
    ],
  },
  {
    title: 'Money',
    panels: [
      {
        title: 'Credits an hour by model',
        says: 'At the rate of the interval. The ledger has the exact sums.',
        unit: 'short',
        stacked: true,
        queries: [[`sum by (model) (${rate('triwire_credits_debited_total')}) * 3600`, '{{model}}']],
      },
      {
        title: 'Credits held',
        says: 'By requests that run.',
        unit: 'short',
        queries: [[`sum(${bare('triwire_held_credits')})`, 'held']],
      },
      {
        title: 'The ten accounts with the least credit',
        says: 'Only with metrics.accounts: true.',
        unit: 'short',
        queries: [[`bottomk(10, max by (account) (${bare('triwire_account_balance_credits')}))`, '{{account}}']],
      },
    ],
  },
  {
    title: 'Tokens and cache',
    panels: [
      {
        title: 'Tokens by kind',
        says: 'A second; the kinds are disjoint.',
        unit: 'short',
        stacked: true,
        queries: [[`sum by (kind) (${rate('triwire_tokens_total')})`, '{{kind}}']],
      },
      {
        title: 'Cache share by model',
        says: 'Of the input tokens those that were read from a cache.',
        unit: 'percentunit',
        queries: [
          [
            `sum by (model) (${rate('triwire_tokens_total', ',kind="cache_read"')}) / sum by (model) (${rate('triwire_tokens_total', ',kind!="output"')})`,
            '{{model}}',
          ],
        ],
      },
      {
        title: 'Reasoning share by model',
        says: 'Of the output tokens those of reasoning.',
        unit: 'percentunit',
        queries: [
          [
            `sum by (model) (${rate('triwire_reasoning_tokens_total')}) / sum by (model) (${rate('triwire_tokens_total', ',kind="output"')})`,
            '{{model}}',
          ],
        ],
      },
      {
        title: 'Fallbacks',
        says: 'Requests of chains that went on to a further model, and why.',
        unit: 'reqps',
        queries: [
          [
            `sum by (chain, from, to, cause) (rate(${bare('triwire_fallbacks_total')}[$__rate_interval]))`,
            '{{chain}}: {{from}} to {{to}}, {{cause}}',
          ],
        ],
      },
      {
        title: 'Moved conversations',
        says: 'Requests of conversations that another account answered than before, and why; the most that it cost.',
        unit: 'short',
        queries: [
          [`sum by (reason) (${rate('triwire_moved_requests_total')})`, 'moved: {{reason}}'],
          [`sum by (model) (${rate('triwire_moved_credits_total')})`, 'credits: {{model}}'],
        ],
      },
      {
        title: 'Doubts and losses',
        says: 'Figures of models that were not taken at their word; fields that no model got.',
        unit: 'short',
        queries: [
          [`sum by (flag) (${rate('triwire_usage_doubts_total')})`, 'doubt: {{flag}}'],
          [
            `topk(10, sum by (pair, field) (rate(${bare('triwire_losses_total')}[$__rate_interval])))`,
            '{{pair}}: {{field}}',
          ],
        ],
      },
    ],
  },
  {
    title: 'Speed',
    panels: [
      {
        title: 'First byte',
        says: 'From the head of a request to the first byte of its answer.',
        unit: 's',
        queries: [
          [quantile(0.5, 'triwire_first_byte_seconds'), 'p50'],
          [quantile(0.95, 'triwire_first_byte_seconds'), 'p95'],
          [quantile(0.99, 'triwire_first_byte_seconds'), 'p99'],
        ],
      },
      {
        title: 'First byte by model, p95',
        says: 'The same, model by model.',
        unit: 's',
        queries: [[quantile(0.95, 'triwire_first_byte_seconds', ', model'), '{{model}}']],
      },
      {
        title: 'Whole answer',
        says: 'From the head of a request to the end of its answer.',
        unit: 's',
        queries: [
          [quantile(0.5, 'triwire_request_duration_seconds'), 'p50'],
          [quantile(0.95, 'triwire_request_duration_seconds'), 'p95'],
          [quantile(0.99, 'triwire_request_duration_seconds'), 'p99'],
        ],
      },
    ],
  },
  {
    title: 'Upstreams',
    panels: [
      {
        title: 'Attempts by result',
        says: 'Tries at upstream accounts, a second.',
        unit: 'reqps',
        stacked: true,
        queries: [
          [`sum by (result) (rate(${bare('triwire_upstream_attempts_total')}[$__rate_interval]))`, '{{result}}'],
        ],
      },
      {
        title: 'Failures by upstream',
        says: 'The share of its tries that failed.',
        unit: 'percentunit',
        queries: [
          [
            `sum by (upstream) (rate(${bare('triwire_upstream_attempts_total', ',result!~"ok|abandoned"')}[$__rate_interval])) / sum by (upstream) (rate(${bare('triwire_upstream_attempts_total')}[$__rate_interval]))`,
            '{{upstream}}',
          ],
        ],
      },
      {
        title: 'Accounts left alone',
        says: 'And what for.',
        unit: 'short',
        stacked: true,
        queries: [
          [`sum by (upstream, cause) (${bare('triwire_upstream_cooling')})`, '{{upstream}}: {{cause}}'],
          [`sum by (upstream, cause) (${bare('triwire_upstream_on_trial')})`, '{{upstream}}: {{cause}}, on trial'],
        ],
      },
      {
        title: 'Left alone anew',
        says: 'Cooldowns that began or were prolonged, an hour.',
        unit: 'short',
        stacked: true,
        queries: [
          [
            `sum by (upstream, cause) (rate(${bare('triwire_upstream_cooldowns_total')}[$__rate_interval])) * 3600`,
            '{{upstream}}: {{cause}}',
          ],
        ],
      },
      {
        title: 'Answers nobody asked for',
        says: 'Connections that brought one, an hour. Another request may have been given it.',
        unit: 'short',
        queries: [
          [
            `sum by (upstream) (rate(${bare('triwire_upstream_unasked_total')}[$__rate_interval])) * 3600`,
            '{{upstream}}',
          ],
        ],
      },
      {
        title: 'Accounts that may be asked',
        says: 'At 0 nobody serves the model.',
        unit: 'short',
        queries: [[`min by (model) (${bare('triwire_model_upstreams_available', ',model=~"$model"')})`, '{{model}}']],
      },
    ],
  },
  {
    title: 'House',
    panels: [
      {
        title: 'Ledger: commit',
        says: 'Until a debit is durable; the end of an answer waits for it.',
        unit: 's',
        queries: [0.5, 0.99].map(
          (share): Query => [
            `histogram_quantile(${share}, sum by (le) (rate(${bare('triwire_ledger_commit_seconds_bucket')}[$__rate_interval])))`,
            `p${share * 100}`,
          ],
        ),
      },
      {
        title: 'Ledger: what waits',
        says: 'Debits on their way, those in the spool, and the age of the oldest in seconds.',
        unit: 'short',
        queries: [
          [`sum(${bare('triwire_ledger_waiting_debits')})`, 'waiting'],
          [`sum(${bare('triwire_ledger_spooled_debits')})`, 'spooled'],
          [`max(${bare('triwire_ledger_oldest_debit_seconds')})`, 'oldest, s'],
          [`min(${bare('triwire_ledger_writable')})`, 'writable'],
        ],
      },
      {
        title: 'Event loop lag',
        says: 'How late the process answers of itself.',
        unit: 's',
        queries: [
          [bare('nodejs_eventloop_lag_p50_seconds'), '{{instance}} p50'],
          [bare('nodejs_eventloop_lag_p99_seconds'), '{{instance}} p99'],
        ],
      },
      {
        title: 'Processors',
        says: 'How many are busy with it.',
        unit: 'short',
        queries: [[`rate(${bare('process_cpu_seconds_total')}[$__rate_interval])`, '{{instance}}']],
      },
      {
        title: 'Memory',
        says: 'Resident, and the heap of it.',
        unit: 'bytes',
        queries: [
          [bare('process_resident_memory_bytes'), '{{instance}} resident'],
          [bare('nodejs_heap_size_used_bytes'), '{{instance}} heap'],
        ],
      },
      {
        title: 'Descriptors',
        says: 'Open ones, as a share of what there may be.',
        unit: 'percentunit',
        queries: [[`${bare('process_open_fds')} / ${bare('process_max_fds')}`, '{{instance}}']],
      },
      {
        title: 'Telemetry',
        says: 'What a collector got, and what was lost, a second. Only with telemetry.otlp.',
        unit: 'short',
        queries: [
          [`sum by (signal) (rate(${bare('triwire_telemetry_exported_total')}[$__rate_interval]))`, '{{signal}} sent'],
          [`sum by (signal) (rate(${bare('triwire_telemetry_dropped_total')}[$__rate_interval]))`, '{{signal}} lost'],
        ],
      },
      {
        title: 'Versions',
        says: 'Of triwire and Node, by instance.',
        unit: 'short',
        queries: [
          [`max by (instance, version, node) (${bare('triwire_build_info')})`, '{{instance}} {{version}} on {{node}}'],
        ],
      },
    ],
  },
]

putGenerated('ops/grafana/triwire.json', () => `${JSON.stringify(dashboard(), null, 2)}\n`)

function dashboard() {
  return {
    uid: 'triwire',
    title: 'triwire',
    tags: ['triwire'],
    timezone: 'browser',
    editable: true,
    graphTooltip: 1,
    schemaVersion: 39,
    version: 1,
    refresh: '30s',
    time: { from: 'now-6h', to: 'now' },
    templating: { list: variables() },
    panels: layOut(),
  }
}

function variables() {
  const datasource = { type: 'prometheus', uid: '$datasource' }
  const all = { refresh: 2, multi: true, includeAll: true, allValue: '.*', current: { text: 'All', value: '$__all' } }
  return [
    { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus' },
    {
      name: 'job',
      label: 'Job',
      type: 'query',
      datasource,
      query: 'label_values(triwire_build_info, job)',
      ...all,
    },
    {
      name: 'model',
      label: 'Model',
      type: 'query',
      datasource,
      query: 'label_values(triwire_requests_total{job=~"$job"}, model)',
      ...all,
    },
  ]
}

/** Places three panels side by side in a grid of 24 columns, with a heading for each row of the table. */
function layOut(): object[] {
  const panels: object[] = []
  let y = 0
  for (const { title, panels: own } of rows) {
    panels.push({
      id: panels.length + 1,
      type: 'row',
      title,
      collapsed: false,
      gridPos: { x: 0, y, w: 24, h: 1 },
      panels: [],
    })
    y++
    for (const [index, panel] of own.entries()) {
      const gridPos = { x: (index % 3) * 8, y: y + Math.floor(index / 3) * 8, w: 8, h: 8 }
      panels.push(plot(panel, panels.length + 1, gridPos))
    }
    y += Math.ceil(own.length / 3) * 8
  }
  return panels
}

function plot({ title, says, unit, stacked = false, queries }: Panel, id: number, gridPos: object) {
  const datasource = { type: 'prometheus', uid: '$datasource' }
  return {
    id,
    type: 'timeseries',
    title,
    description: says,
    datasource,
    gridPos,
    fieldConfig: {
      defaults: {
        unit,
        min: 0,
        custom: {
          drawStyle: 'line',
          lineWidth: 1,
          fillOpacity: stacked ? 30 : 0,
          showPoints: 'never',
          stacking: { mode: stacked ? 'normal' : 'none', group: 'A' },
        },
      },
      overrides: [],
    },
    options: {
      legend: { displayMode: 'list', placement: 'bottom', showLegend: true },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
    targets: queries.map(([expr, legendFormat], index) => ({
      refId: String.fromCharCode(65 + index),
      datasource,
      expr,
      legendFormat,
      range: true,
      editorMode: 'code',
    })),
  }
}
