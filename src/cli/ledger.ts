import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Command, InvalidArgumentError } from 'commander'
import { formatCredits, parseCredits } from '../accounts/credit.ts'
import type { Entry, LogLine } from '../accounts/entries.ts'
import { formatFields, formatTable, formatTime, print } from './print.ts'
import { withStore } from './store.ts'

export function addLedgerCommands(program: Command): void {
  const ledger = program.command('ledger').description('what was paid for what: list, show, check and export entries')
  ledger
    .command('list')
    .description('list the newest entries')
    .option('--account <account>', 'only of this one, by name or id')
    .option('--limit <count>', 'how many at most', readCount, 50)
    .action(async ({ account, limit }: { account?: string; limit: number }, command: Command) => {
      const entries = await withStore(command, async (books) => {
        const accountId = account === undefined ? undefined : (await books.findAccount(account)).id
        return books.listEntries({ accountId, limit })
      })
      const rows = entries.map(toLine)
      print(command, rows, () => formatLines(rows))
    })
  ledger
    .command('show <request-id>')
    .description('show the debit of one request')
    .action(async (requestId: string, _options, command: Command) => {
      const entry = await withStore(command, (books) => books.findEntry(requestId))
      if (!entry) throw new Error(`There is no debit of request ${requestId}: refused and failed requests have none`)
      const data = toDebit(entry)
      print(command, data, () => formatFields(data))
    })
  ledger
    .command('verify')
    .description('do every sum again; fails on any finding')
    .option('--log <file...>', 'access log as JSON lines, as old as the ledger, to compare with it')
    .action(async ({ log }: { log?: string[] }, command: Command) => {
      const lines = log && (await readLogs(log))
      const { priceNanos } = await import('../catalog/model.ts')
      const findings = await withStore(command, (books) => books.verify({ priceNanos, log: lines }))
      print(command, { ok: !findings.length, findings }, () => findings.join('\n') || 'the ledger is right')
      if (findings.length) process.exitCode = 1
    })
  ledger
    .command('export')
    .description('write all entries, the oldest first')
    .requiredOption('--csv', 'as comma-separated values')
    .action((_options, command: Command) =>
      withStore(command, async (books) => {
        await pipeline(Readable.from(formatCsv(books.eachEntry())), process.stdout, { end: false })
      }),
    )
}

function readCount(text: string): number {
  if (!/^[1-9]\d{0,6}$/.test(text)) throw new InvalidArgumentError('It is a number from 1 to 9999999.')
  return Number(text)
}

/** The binding shape of a debit for programs. */
function toDebit({ accountId, amountNanos, createdMs, bill }: Entry) {
  const { requestId, model, usage, usageSource, outcome } = bill!
  return {
    request_id: requestId,
    account: accountId,
    model,
    amount: formatCredits(amountNanos),
    usage: {
      input_tokens: usage.inputTokens,
      cache_read_tokens: usage.cacheReadTokens,
      cache_write_tokens: usage.cacheWriteTokens,
      cache_write_1h_tokens: usage.cacheWrite1hTokens,
      output_tokens: usage.outputTokens,
      reasoning_tokens: usage.reasoningTokens,
    },
    usage_source: usageSource,
    outcome,
    created: formatTime(createdMs),
  }
}

/** Any entry, flat. */
function toLine({ accountId, seq, kind, amountNanos, balanceAfterNanos, reference, bill, createdMs }: Entry) {
  return {
    account: accountId,
    seq,
    kind,
    amount: formatCredits(amountNanos),
    balance_after: formatCredits(balanceAfterNanos),
    reference: reference ?? null,
    request_id: bill?.requestId ?? null,
    model: bill?.model ?? null,
    input_tokens: bill?.usage.inputTokens ?? null,
    cache_read_tokens: bill?.usage.cacheReadTokens ?? null,
    cache_write_tokens: bill?.usage.cacheWriteTokens ?? null,
    cache_write_1h_tokens: bill?.usage.cacheWrite1hTokens ?? null,
    output_tokens: bill?.usage.outputTokens ?? null,
    reasoning_tokens: bill?.usage.reasoningTokens ?? null,
    usage_source: bill?.usageSource ?? null,
    price_version: bill?.priceVersion ?? null,
    outcome: bill?.outcome ?? null,
    created: formatTime(createdMs),
  }
}

type Line = ReturnType<typeof toLine>

function formatLines(rows: Line[]): string {
  const cells = rows.map((row) => {
    const { created, account, kind, amount, balance_after, request_id, reference, model, outcome } = row
    return [
      created ?? '',
      account,
      kind,
      amount,
      balance_after,
      request_id ?? reference ?? '',
      model ?? '',
      outcome ?? '',
    ]
  })
  return formatTable(['created', 'account', 'kind', 'amount', 'balance_after', 'request', 'model', 'outcome'], cells)
}

const csvColumns = [
  'account',
  'seq',
  'kind',
  'amount',
  'balance_after',
  'reference',
  'request_id',
  'model',
  'input_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'cache_write_1h_tokens',
  'output_tokens',
  'reasoning_tokens',
  'usage_source',
  'price_version',
  'outcome',
  'created',
] as const satisfies (keyof Line)[]

async function* formatCsv(entries: AsyncIterable<Entry>): AsyncIterable<string> {
  yield `${csvColumns.join(',')}\r\n`
  for await (const entry of entries) {
    const line = toLine(entry)
    yield `${csvColumns.map((name) => formatCell(line[name])).join(',')}\r\n`
  }
}

function formatCell(value: string | number | null): string {
  const text = String(value ?? '')
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** The lines of billed requests: those with a cost. */
async function readLogs(files: readonly string[]): Promise<LogLine[]> {
  const lines: LogLine[] = []
  for (const file of files) {
    for await (const text of createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY })) {
      const line = readLogLine(text)
      if (line) lines.push(line)
    }
  }
  return lines
}

function readLogLine(text: string): LogLine | undefined {
  try {
    const { id, cost, outcome } = JSON.parse(text)
    if (typeof id !== 'string' || cost === undefined || cost === null) return undefined
    return { requestId: id, amountNanos: parseCredits(String(cost)), outcome: String(outcome) }
  } catch {
    // Not every line of a log is JSON: a crash may have torn one, and Node itself may have written another.
    return undefined
  }
}
