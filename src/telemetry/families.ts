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
  wire: "the client's wire (API format). It is empty if the request did not ask a model",
  model: 'the id of the model in the catalog. It is empty if the request ended before the model was known',
  outcome: 'how the request ended, with the values of the log (docs/operating.md)',
  code: 'the code of the error that the client got',
  reason: 'a more exact reason: see below. It is empty if the code is exact enough',
  kind: '`input`, `cache_read`, `cache_write`, `cache_write_1h`, `output`. No token is counted in two kinds',
  upstream: 'the name of the upstream in the configuration',
  upstream_account: 'the name of the upstream account in the configuration',
  result: 'the result of the attempt: see below. For webhooks, the result of the delivery',
  cause:
    'why the account was paused: the same values as `result`. For a chain: `capacity`, `unavailable`, `over_long`, `budget` or `fit`',
  chain: 'the id of the chain',
  from: 'the id of the model that could not answer',
  to: 'the id of the model that was tried next',
  pair: "the client's wire and the model's wire, such as `messages-to-chat`",
  field: 'the name of the field, as in docs/translation',
  flag: 'what was wrong, with the values of `flags` in the log',
  account: 'the name of the account',
  key: 'the label of the key, with the first characters of the key',
  version: 'the version of triwire',
  node: 'the version of Node',
  signal: '`traces` or `metrics`',
} as const
type Label = keyof typeof labelSources

/**
 * Bucket bounds in seconds. No model answers faster than 50 ms, and a JSON answer may take up to ten minutes (ruling
 * U6).
 */
const answerBounds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600]
/**
 * Bucket bounds for the times of commits, in seconds. A healthy disk syncs in less than a millisecond. With a busy
 * disk, a commit can take as long as a debit may wait, by default five seconds.
 */
const commitBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

/** All our metrics. A metric that is not in this table is not written. docs/metrics.md is generated from the table. */
export const families = {
  requests: counter('triwire_requests_total', ['wire', 'model', 'outcome'], 'Requests that have ended.'),
  refusals: counter('triwire_refusals_total', ['code', 'reason'], 'Requests that were answered with an error.'),
  tokens: counter('triwire_tokens_total', ['model', 'kind'], 'Billed tokens, by kind.'),
  reasoningTokens: counter('triwire_reasoning_tokens_total', ['model'], 'Billed output tokens that were reasoning.'),
  credits: counter(
    'triwire_credits_debited_total',
    ['model'],
    'Credits that were billed. The exact amounts are in the ledger.',
  ),
  duration: histogram(
    'triwire_request_duration_seconds',
    ['wire', 'model'],
    answerBounds,
    'Time from the header of a request to the end of its answer. Only answers with status 200 count.',
  ),
  firstByte: histogram(
    'triwire_first_byte_seconds',
    ['wire', 'model'],
    answerBounds,
    'Time from the header of a request to the first byte of its answer. Only answers with status 200 count.',
  ),
  requestsActive: gauge('triwire_requests_active', [], 'Running requests for which credit is reserved.'),
  streamsActive: gauge('triwire_streams_active', [], 'Running requests whose answer is streamed.'),
  held: gauge('triwire_held_credits', [], 'Credits that are reserved for running requests of this process.'),
  attempts: counter(
    'triwire_upstream_attempts_total',
    ['upstream', 'result'],
    'Attempts at upstream accounts, counted when the request has ended.',
  ),
  cooling: gauge(
    'triwire_upstream_cooling',
    ['upstream', 'cause'],
    'Pairs of a model and an upstream account that are paused now.',
  ),
  onTrial: gauge(
    'triwire_upstream_on_trial',
    ['upstream', 'cause'],
    'Pairs of a model and an upstream account that get only one request at a time, after a pause or because requests hang.',
  ),
  cooldowns: counter(
    'triwire_upstream_cooldowns_total',
    ['upstream', 'cause'],
    'How often this process began or prolonged a pause, or began to send only one request at a time.',
  ),
  unasked: counter(
    'triwire_upstream_unasked_total',
    ['upstream'],
    'Cases in which an upstream sent bytes without a request.',
  ),
  credential: gauge(
    'triwire_credential_expires_seconds',
    ['upstream', 'upstream_account'],
    'Time until the credential of an account at a cloud expires. 0 means that there is no credential. A credential that does not expire has no series.',
  ),
  available: gauge(
    'triwire_model_upstreams_available',
    ['model'],
    'Upstream accounts that can be used for the model now.',
  ),
  failing: gauge(
    'triwire_model_failing',
    ['model'],
    '1 while at least half of the last 20 answers of the model failed, with at least 5 answers.',
  ),
  fallbacks: counter(
    'triwire_fallbacks_total',
    ['chain', 'from', 'to', 'cause'],
    'Steps of requests to the next model of a chain.',
  ),
  moved: counter(
    'triwire_moved_requests_total',
    ['model', 'reason'],
    'Requests that were sent to another upstream account than the one with the prompt cache of their conversation.',
  ),
  movedCredits: counter(
    'triwire_moved_credits_total',
    ['model'],
    'The most that the lost caches of these requests cost: the price of their uncached input, minus its price as cache reads.',
  ),
  losses: counter(
    'triwire_losses_total',
    ['pair', 'field'],
    'Fields of requests that the translation dropped or changed.',
  ),
  doubts: counter(
    'triwire_usage_doubts_total',
    ['model', 'flag'],
    'Reported usage that was corrected or estimated, and answers that name another model than the requested one.',
  ),
  commit: histogram(
    'triwire_ledger_commit_seconds',
    [],
    commitBounds,
    'Time from the posting of a debit until it is durable in the ledger.',
  ),
  writable: gauge(
    'triwire_ledger_writable',
    [],
    '1 while the ledger accepts debits. At 0, requests to models of all accounts, or of two or more accounts, get 500.',
  ),
  blocked: gauge(
    'triwire_ledger_blocked_accounts',
    [],
    'Accounts whose new requests get 500, because their debits have waited too long for the ledger.',
  ),
  waiting: gauge('triwire_ledger_waiting_debits', [], 'Debits that wait for the ledger.'),
  oldest: gauge('triwire_ledger_oldest_debit_seconds', [], 'How long the oldest debit has waited for the ledger.'),
  spooled: gauge(
    'triwire_ledger_spooled_debits',
    [],
    'Debits in the spool, a file for debits that the ledger does not have yet.',
  ),
  accountBalance: gauge(
    'triwire_account_balance_credits',
    ['account'],
    'The balance of an account, for at most 10,000 accounts. Only with `metrics.accounts: true`.',
  ),
  keyBudget: gauge(
    'triwire_key_budget_used_ratio',
    ['account', 'key'],
    'The spent part of the budget of a key, for at most 10,000 keys. It is above 1 if the key has exceeded its budget. Only with `metrics.keys: true`.',
  ),
  webhooks: counter(
    'triwire_webhook_deliveries_total',
    ['result'],
    'Deliveries to webhooks: `ok`, `redirected`, `refused` (4xx), `gone` (410), `failed` (5xx), `timeout`, `unreachable`.',
  ),
  telemetryExported: counter(
    'triwire_telemetry_exported_total',
    ['signal'],
    'For `traces`, requests whose spans were sent to a collector. For `metrics`, metrics that were sent.',
  ),
  telemetryDropped: counter(
    'triwire_telemetry_dropped_total',
    ['signal'],
    'Requests and metrics that could not be sent to a collector and are lost, counted in the same way.',
  ),
  build: gauge('triwire_build_info', ['version', 'node'], 'Always 1.'),
} as const satisfies Record<string, FamilyFacts>

/** Metrics of the process and of Node, under their usual names. */
export const processFamilies = {
  cpuUser: counter('process_cpu_user_seconds_total', [], 'User CPU time of all threads.'),
  cpuSystem: counter('process_cpu_system_seconds_total', [], 'System CPU time of all threads.'),
  cpu: counter('process_cpu_seconds_total', [], 'User and system CPU time of all threads.'),
  started: gauge('process_start_time_seconds', [], 'Unix time at which the process started.'),
  resident: gauge('process_resident_memory_bytes', [], 'Resident memory of the process.'),
  openFds: gauge('process_open_fds', [], 'Open file descriptors, if the system reports them.'),
  maxFds: gauge('process_max_fds', [], 'Limit of open file descriptors, if the system reports it.'),
  lagMean: gauge('nodejs_eventloop_lag_mean_seconds', [], 'Mean delay of the event loop in the last 30 to 60 s.'),
  lagMax: gauge('nodejs_eventloop_lag_max_seconds', [], 'Largest delay of the event loop in the same time.'),
  lagP50: gauge('nodejs_eventloop_lag_p50_seconds', [], 'Median delay of the event loop in the same time.'),
  lagP90: gauge('nodejs_eventloop_lag_p90_seconds', [], '90th percentile of the delay in the same time.'),
  lagP99: gauge('nodejs_eventloop_lag_p99_seconds', [], '99th percentile of the delay in the same time.'),
  heapTotal: gauge('nodejs_heap_size_total_bytes', [], 'Size of the JavaScript heap.'),
  heapUsed: gauge('nodejs_heap_size_used_bytes', [], 'Used part of the JavaScript heap.'),
  external: gauge('nodejs_external_memory_bytes', [], 'Memory that JavaScript objects use outside the heap.'),
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
