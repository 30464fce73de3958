/**
 * The facts of a metric besides its values. Names and labels are public, so changing one breaks operators' dashboards.
 */
export type FamilyFacts = {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly labels: readonly string[]
  /** One sentence that describes the metric, for scrapes and docs/metrics.md. */
  readonly help: string
  /** The unit in UCUM, if a convention requires one. */
  readonly unit?: string
  /** For a histogram: the upper bounds of its buckets, ascending. The last bucket is unbounded and not listed. */
  readonly bounds?: readonly number[]
}

/** The sources of label values. No label value is a text that a client chose (ruling U5). */
export const labelSources = {
  wire: "the client's wire, by its name; empty where the request is no inference",
  model: "the id of the model's catalog entry; empty as long as none is known",
  outcome: 'how it ended, as in the log (docs/operating.md)',
  code: 'of the error that the client was told',
  reason: 'our own word for why; empty where the code says it all',
  kind: '`input`, `cache_read`, `cache_write`, `cache_write_1h`, `output`: no token is counted twice',
  upstream: 'its name in the configuration',
  upstream_account: 'the name of the account in the configuration of its upstream',
  result: 'what became of it: see below',
  cause:
    'what it was left alone for, in the same words; of a chain `capacity`, `unavailable`, `over_long`, `budget`, or `fit`',
  chain: 'the id of the chain',
  from: 'the id of the model that was passed over',
  to: 'the id of the model that was asked instead',
  pair: "the client's wire and the model's: `messages-to-chat`",
  field: 'the field of the request, in the words of docs/translation',
  flag: 'what was doubted, as in the log',
  account: 'the name of the account',
  key: 'what its owner calls it, with its first characters',
  version: 'of triwire',
  node: 'of Node',
  signal: '`traces` or `metrics`',
} as const
type Label = keyof typeof labelSources

/**
 * Bucket bounds in seconds. No model answers faster than 50 ms, and a JSON answer may take up to ten minutes (ruling
 * U6).
 */
const answerBounds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600]
/**
 * Bucket bounds in seconds. A disk syncs in less than a millisecond. If the disk is busy or missing, a commit may take
 * as long as a debit may wait.
 */
const commitBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

/** All our metrics. A metric that is not in this table is not written. docs/metrics.md is generated from the table. */
export const families = {
  requests: counter('triwire_requests_total', ['wire', 'model', 'outcome'], 'Requests that are over.'),
  refusals: counter('triwire_refusals_total', ['code', 'reason'], 'Requests whose client was told an error.'),
  tokens: counter('triwire_tokens_total', ['model', 'kind'], 'Tokens that were billed; the kinds are disjoint.'),
  reasoningTokens: counter('triwire_reasoning_tokens_total', ['model'], 'Output tokens that were spent on reasoning.'),
  credits: counter(
    'triwire_credits_debited_total',
    ['model'],
    'Credits that answers cost; the ledger has them exactly.',
  ),
  duration: histogram(
    'triwire_request_duration_seconds',
    ['wire', 'model'],
    answerBounds,
    'From the head of a request to the end of its answer, of answers that began.',
  ),
  firstByte: histogram(
    'triwire_first_byte_seconds',
    ['wire', 'model'],
    answerBounds,
    'From the head of a request to the first byte of its answer, of answers that began.',
  ),
  requestsActive: gauge('triwire_requests_active', [], 'Inference requests between their hold and their end.'),
  streamsActive: gauge('triwire_streams_active', [], 'Of those the ones that stream.'),
  held: gauge('triwire_held_credits', [], 'Credits that running requests of this process hold.'),
  attempts: counter(
    'triwire_upstream_attempts_total',
    ['upstream', 'result'],
    'Tries at upstream accounts, counted when their request is over.',
  ),
  cooling: gauge(
    'triwire_upstream_cooling',
    ['upstream', 'cause'],
    'Services of models by upstream accounts that are left alone now.',
  ),
  onTrial: gauge(
    'triwire_upstream_on_trial',
    ['upstream', 'cause'],
    'Services of models by upstream accounts that one request at a time tries, after a cooldown or because requests hang.',
  ),
  cooldowns: counter(
    'triwire_upstream_cooldowns_total',
    ['upstream', 'cause'],
    'How often this process has left a service of a model by an upstream account alone, or for longer, or put it on trial.',
  ),
  unasked: counter('triwire_upstream_unasked_total', ['upstream'], 'Connections with bytes that nobody had asked for.'),
  credential: gauge(
    'triwire_credential_expires_seconds',
    ['upstream', 'upstream_account'],
    'Time until the credential of an account at a cloud ends; 0 if there is none. Credentials without an end have no value.',
  ),
  available: gauge(
    'triwire_model_upstreams_available',
    ['model'],
    'Upstream accounts that may be asked for the model now.',
  ),
  failing: gauge(
    'triwire_model_failing',
    ['model'],
    '1 while at least half of the last 20 answers of the model failed, of 5 at least.',
  ),
  fallbacks: counter(
    'triwire_fallbacks_total',
    ['chain', 'from', 'to', 'cause'],
    'Requests of a chain that went on to a further model.',
  ),
  moved: counter(
    'triwire_moved_requests_total',
    ['model', 'reason'],
    'Requests of conversations that left the upstream account that has their prompt cache.',
  ),
  movedCredits: counter(
    'triwire_moved_credits_total',
    ['model'],
    'The most that those cost: their fresh input at the price of a cache read less.',
  ),
  losses: counter('triwire_losses_total', ['pair', 'field'], 'Fields of requests that were dropped or changed.'),
  doubts: counter(
    'triwire_usage_doubts_total',
    ['model', 'flag'],
    'Figures of models that were not taken at their word, and answers by another model than was asked for.',
  ),
  commit: histogram(
    'triwire_ledger_commit_seconds',
    [],
    commitBounds,
    'From handing a debit to the ledger until it was durable there.',
  ),
  writable: gauge('triwire_ledger_writable', [], '1 while the ledger takes debits; at 0 inference is refused.'),
  blocked: gauge(
    'triwire_ledger_blocked_accounts',
    [],
    'Accounts whose new inference is refused, since debits of theirs wait for too long.',
  ),
  waiting: gauge('triwire_ledger_waiting_debits', [], 'Debits on their way to the ledger.'),
  oldest: gauge('triwire_ledger_oldest_debit_seconds', [], 'How long the oldest debit has waited for the ledger.'),
  spooled: gauge('triwire_ledger_spooled_debits', [], 'Debits that are in the spool and not yet in the ledger.'),
  accountBalance: gauge(
    'triwire_account_balance_credits',
    ['account'],
    'What an account has left, with `metrics.accounts: true`; of 10,000 accounts at most.',
  ),
  keyBudget: gauge(
    'triwire_key_budget_used_ratio',
    ['account', 'key'],
    'The share of its budget that a key has spent, with `metrics.keys: true`; of 10,000 keys at most.',
  ),
  webhooks: counter(
    'triwire_webhook_deliveries_total',
    ['result'],
    'Tries to tell a webhook: `ok`, `redirected`, `refused` (4xx), `gone` (410), `failed` (5xx), `timeout`, `unreachable`.',
  ),
  telemetryExported: counter(
    'triwire_telemetry_exported_total',
    ['signal'],
    'Requests whose spans were sent, and figures that were, with `telemetry.otlp`.',
  ),
  telemetryDropped: counter(
    'triwire_telemetry_dropped_total',
    ['signal'],
    'What could not be sent and is lost, in the same counts.',
  ),
  build: gauge('triwire_build_info', ['version', 'node'], 'Always 1.'),
} as const satisfies Record<string, FamilyFacts>

/** Metrics of the process and of Node, under their usual names. */
export const processFamilies = {
  cpuUser: counter('process_cpu_user_seconds_total', [], 'User CPU time of all threads.'),
  cpuSystem: counter('process_cpu_system_seconds_total', [], 'System CPU time of all threads.'),
  cpu: counter('process_cpu_seconds_total', [], 'User and system CPU time of all threads.'),
  started: gauge('process_start_time_seconds', [], 'When the process started, in Unix time.'),
  resident: gauge('process_resident_memory_bytes', [], 'Resident memory.'),
  openFds: gauge('process_open_fds', [], 'Open file descriptors; where the system tells.'),
  maxFds: gauge('process_max_fds', [], 'How many there may be; where the system tells.'),
  lagMean: gauge(
    'nodejs_eventloop_lag_mean_seconds',
    [],
    'How late the event loop was in the last 30 to 60 s: the mean.',
  ),
  lagMax: gauge('nodejs_eventloop_lag_max_seconds', [], 'The most of the same time.'),
  lagP50: gauge('nodejs_eventloop_lag_p50_seconds', [], 'The median of the same time.'),
  lagP90: gauge('nodejs_eventloop_lag_p90_seconds', [], 'The 90th percentile of the same time.'),
  lagP99: gauge('nodejs_eventloop_lag_p99_seconds', [], 'The 99th percentile of the same time.'),
  heapTotal: gauge('nodejs_heap_size_total_bytes', [], 'The heap.'),
  heapUsed: gauge('nodejs_heap_size_used_bytes', [], 'Of it in use.'),
  external: gauge('nodejs_external_memory_bytes', [], 'What JavaScript holds beside the heap.'),
} as const satisfies Record<string, FamilyFacts>

function counter<const Name extends string>(name: Name, labels: readonly Label[], help: string) {
  return { name, type: 'counter', labels, help } as const
}

function gauge<const Name extends string>(name: Name, labels: readonly Label[], help: string) {
  return { name, type: 'gauge', labels, help } as const
}

function histogram<const Name extends string>(
  name: Name,
  labels: readonly Label[],
  bounds: readonly number[],
  help: string,
) {
  return { name, type: 'histogram', labels, help, bounds } as const
}
