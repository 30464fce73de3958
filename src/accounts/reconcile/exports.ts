/*
 * Usage exports of providers. All days and hours in them are UTC. The formats are documented in these sources:
 *
 *     openai      types of the SDK `openai` 6 (admin/organization/usage): input includes tokens read from and written to a cache.
 *                 The costs of GET /v1/organization/costs are lines such as "gpt-6, input", by day
 *     anthropic   GET /v1/organizations/analytics/usage by the types of the SDK `@anthropic-ai/sdk` 1.12.0: rows with `group` and
 *                 `usage`. Also the older GET /v1/organizations/usage_report/messages, whose buckets have `results`, as the vendor's
 *                 claude-cookbooks reads them (observability/usage_cost_api.ipynb), both read on 2026-11-28. Windows are RFC 3339.
 *                 Costs are those of analytics/cost and cost_report: decimal texts, in cents
 *     aws         "Understanding your Amazon Bedrock Cost and Usage Report data" of the Bedrock user guide, read on 2026-11-27
 *     openrouter  ActivityItem of its SDK's documentation, read on 2026-11-27: days, and one count for the whole prompt
 */

export const exportProviders = ['openai', 'anthropic', 'aws', 'openrouter'] as const

export type ExportProvider = (typeof exportProviders)[number]

export const tokenKinds = ['input', 'cache_read', 'cache_write', 'output'] as const

/**
 * Token counts by kind. If an export has only one count for the whole prompt, `input` is that count. It is then
 * compared with the sum of the ledger's prompt counts.
 */
export type KindCounts = Record<(typeof tokenKinds)[number], number>

/** One row of an export: the usage of a model in a window. Refunds have negative counts. */
export type ExportRow = {
  fromMs: number
  untilMs: number
  model: string
  /** The key, project, workspace or user in the row. */
  owners: readonly string[]
  tokens: KindCounts
  /** The number of requests; undefined if the export does not count them. */
  requests: number | undefined
  /** The provider's charge, in 10⁻⁹ of its currency; undefined if the export has no money. */
  chargeNanos?: bigint | undefined
  /** Set for a row of a cost report, which has a charge and no tokens. */
  isCharge?: true
}

/** Whether a row is a refund. In such a row the provider subtracts usage that it counted in another row. */
export function isRefund({ tokens, requests = 0 }: ExportRow): boolean {
  return requests < 0 || tokenKinds.some((kind) => tokens[kind] < 0)
}

type ExportFormat = {
  /** Whether the export's count of prompt tokens includes the tokens that were read from or written to a cache. */
  isWhole: boolean
  /** Reads the text of an export. @throws Error with a message for the person whose file it is */
  read(text: string): ExportRow[]
}

type ExportObject = Record<string, unknown>

export const exportFormats: Record<ExportProvider, ExportFormat> = {
  openai: {
    isWhole: false,
    read: (text) =>
      eachResult(text).map(({ bucket, row }) => {
        const [read, write] = [count(row['input_cached_tokens']), count(row['input_cache_write_tokens'])]
        const input = count(row['input_tokens']) - read - write
        const span = { fromMs: 1_000 * count(bucket['start_time']), untilMs: 1_000 * count(bucket['end_time']) }
        const { value } = (row['amount'] ?? {}) as ExportObject
        if (value !== undefined) return { ...span, ...charged({ ...row, model: modelOfLine(row['line_item']) }, value) }
        return { ...span, ...sharedBy(row, input, read, write), requests: count(row['num_model_requests']) }
      }),
  },
  anthropic: {
    isWhole: false,
    read: (text) =>
      eachResult(text).flatMap(({ bucket, row }) => {
        const isOfTokens = (row['cost_type'] ?? 'tokens') === 'tokens'
        if (!isOfTokens) return []
        const writes = Object.values((row['cache_creation'] as ExportObject | undefined) ?? {})
        const write = writes.reduce<number>((sum, tokens) => sum + count(tokens), 0)
        const counts = [count(row['uncached_input_tokens']), count(row['cache_read_input_tokens']), write] as const
        const span = { fromMs: moment(bucket['starting_at']), untilMs: moment(bucket['ending_at']) }
        if (row['amount'] !== undefined) return { ...span, ...charged(row, row['amount'], centNanos) }
        // Anthropic's older report does not count requests.
        const requests = typeof row['requests'] === 'number' ? count(row['requests']) : undefined
        return { ...span, ...sharedBy(row, ...counts), requests }
      }),
  },
  aws: { isWhole: false, read: readCostAndUsage },
  openrouter: {
    isWhole: true,
    read: (text) =>
      pagesOf(text)
        .flatMap(({ data }) => list(data))
        .map((row) => {
          const fromMs = moment(`${row['date']}`.slice(0, 10))
          const counts = { output: count(row['completion_tokens']), cache_read: 0, cache_write: 0 }
          const tokens = { input: count(row['prompt_tokens']), ...counts }
          const span = { fromMs, untilMs: fromMs + 86_400_000 }
          return {
            ...{ ...span, ...naming(row), tokens, requests: count(row['requests']) },
            chargeNanos: nanosOf(row['usage']),
          }
        }),
  },
}

/**
 * Returns the rows of all pages, each with its bucket. A bucket has a list of rows (`results`), or is one row itself.
 * Such a row has the members of the bucket's `usage` or `cost`, and those of its `group`.
 */
function eachResult(text: string): { bucket: ExportObject; row: ExportObject }[] {
  const rowsOf = ({ group, usage, cost = usage, results }: ExportObject): ExportObject[] =>
    cost === undefined ? list(results) : [{ ...(group as ExportObject), ...(cost as ExportObject) }]
  return pagesOf(text).flatMap(({ data }) =>
    list(data).flatMap((bucket) => rowsOf(bucket).map((row) => ({ bucket, row }))),
  )
}

/** Parses a file with one page of an API, a list of pages, or a page on each line. */
function pagesOf(text: string): ExportObject[] {
  const read = (part: string): unknown => {
    try {
      return JSON.parse(part)
    } catch {
      throw new Error('The file is neither JSON nor JSON lines: export it as the API answers it')
    }
  }
  const isLines = /^\s*\{.*\}\s*\n\s*\{/.test(text)
  const pages = isLines
    ? text
        .split('\n')
        .filter((line) => line.trim())
        .map(read)
    : [read(text)].flat()
  for (const page of pages)
    if (!Array.isArray((page as ExportObject | null)?.['data']))
      throw new Error('A page of the file has no list `data`')
  return pages as ExportObject[]
}

function list(value: unknown): ExportObject[] {
  if (!Array.isArray(value)) throw new Error('The file lacks a list `data` or `results`')
  return value as ExportObject[]
}

function sharedBy(row: ExportObject, input: number, read: number, write: number) {
  return {
    ...naming(row),
    tokens: { input, cache_read: read, cache_write: write, output: count(row['output_tokens']) },
  }
}

/** Reads the model and the owners in a row. @throws Error for a row without a model, which cannot be compared */
function naming(row: ExportObject): Pick<ExportRow, 'model' | 'owners'> {
  if (typeof row['model'] !== 'string') throw new Error('A row has no `model`: export it grouped by model')
  const owners = ['api_key_id', 'project_id', 'workspace_id', 'user_id'].map((name) => row[name])
  return { model: row['model'], owners: owners.filter((owner) => typeof owner === 'string') }
}

/** OpenAI's line items consist of the model and a kind of tokens. */
function modelOfLine(line: unknown): string {
  if (typeof line !== 'string') throw new Error('A row of costs has no `line_item`: export them grouped by line_item')
  return line.split(',')[0]!.trim()
}

const centNanos = 1e7

function charged(row: ExportObject, amount: unknown, unitNanos?: number) {
  const tokens = { input: 0, cache_read: 0, cache_write: 0, output: 0 }
  const chargeNanos = nanosOf(amount, unitNanos)
  return { ...naming(row), tokens, requests: undefined, chargeNanos, isCharge: true as const }
}

/** Converts an amount of money to 10⁻⁹ of the currency. The amount is a number or a decimal text. */
function nanosOf(amount: unknown, unitNanos = 1e9): bigint | undefined {
  if (amount === undefined || amount === null || amount === '') return undefined
  const nanos = Math.round(Number(amount) * unitNanos)
  if (!Number.isFinite(nanos)) throw new Error(`An amount of the file is no number: ${JSON.stringify(amount)}`)
  return BigInt(nanos)
}

function count(value: unknown): number {
  if (value === undefined || value === null) return 0
  if (typeof value !== 'number' || !Number.isSafeInteger(value))
    throw new Error(`A count of the file is no whole number: ${JSON.stringify(value)}`)
  return value
}

function moment(value: unknown): number {
  const ms = Date.parse(String(value))
  if (Number.isNaN(ms)) throw new Error(`A time of the file cannot be read: ${JSON.stringify(value)}`)
  return ms
}

/** In AWS's reports, a usage type consists of a region, a model, and the kind of tokens. */
const usageType =
  /^(?:[A-Z]{2,4}\d?-)?(?:MP:)?(.+?)-(?:mantle-)?(cache-read-input-token-count|cache-write-input-token-count|input-tokens|output-tokens)(?:-|$)/
const kindOfType: Readonly<Record<string, keyof KindCounts>> = {
  'input-tokens': 'input',
  'output-tokens': 'output',
  'cache-read-input-token-count': 'cache_read',
  'cache-write-input-token-count': 'cache_write',
}

/**
 * Reads a Cost and Usage Report of AWS (CUR 2.0) as CSV. Amounts are thousands of tokens, unless `pricing_unit` says
 * millions or single tokens.
 */
function readCostAndUsage(text: string): ExportRow[] {
  const [head = [], ...rows] = readCsv(text)
  const at = (name: string) => head.indexOf(name)
  const needed = [
    'line_item_usage_start_date',
    'line_item_usage_end_date',
    'line_item_usage_type',
    'line_item_usage_amount',
  ]
  for (const name of needed) if (at(name) < 0) throw new Error(`The file has no column ${name}: export CUR 2.0 as CSV`)
  return rows.flatMap((row) => {
    const cell = (name: string) => row[at(name)] ?? ''
    const [, model, type] = usageType.exec(cell('line_item_usage_type')) ?? []
    if (!model || !type) return []
    const unit = /1m\b/i.test(cell('pricing_unit')) ? 1e6 : /^tokens?$/i.test(cell('pricing_unit')) ? 1 : 1e3
    const amount = Math.round(Number(cell('line_item_usage_amount')) * unit)
    const tokens = { input: 0, cache_read: 0, cache_write: 0, output: 0, [kindOfType[type]!]: count(amount) }
    const span = {
      fromMs: moment(`${cell('line_item_usage_start_date')}`),
      untilMs: moment(cell('line_item_usage_end_date')),
    }
    const owners = [cell('line_item_iam_principal')].filter(Boolean)
    const chargeNanos = nanosOf(cell('line_item_unblended_cost'))
    return [{ ...span, model, owners, tokens, requests: undefined, chargeNanos }]
  })
}

/** Reads the cells of a CSV file by RFC 4180. */
function readCsv(text: string): string[][] {
  const rows: string[][] = [[]]
  for (const [, quoted, plain = '', end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/g)) {
    rows.at(-1)!.push(quoted?.replaceAll('""', '"') ?? plain)
    if (end === '') break
    if (end !== ',') rows.push([])
  }
  return rows.filter((row) => row.length > 1)
}
