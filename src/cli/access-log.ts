import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { parseCredits } from '../accounts/credit.ts'
import type { LogLine } from '../accounts/entries.ts'
import { unreadable } from './print.ts'

/** Reads log files line by line, because they can be large. @throws Error that names an unreadable file */
export async function* eachLogLine(files: readonly string[]): AsyncIterable<string> {
  for (const file of files) {
    try {
      yield* createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY })
    } catch (error) {
      throw unreadable(file, error, 'name files of the log with --log')
    }
  }
}

/** Reads the log lines that `ledger verify` compares with entries. @throws Error that names an unreadable file */
export async function readLogs(files: readonly string[]): Promise<LogLine[]> {
  const lines: LogLine[] = []
  for await (const text of eachLogLine(files)) {
    const line = readLogLine(text)
    if (line) lines.push(line)
  }
  return lines
}

/** Reads a log line. Returns undefined if it has neither a cost nor the outcome `internal_error`. */
export function readLogLine(text: string): LogLine | undefined {
  try {
    const { id, cost, outcome, usage, ...rest } = JSON.parse(text)
    const isBilled = cost !== undefined && cost !== null
    if (typeof id !== 'string' || !(isBilled || outcome === 'internal_error')) return undefined
    return {
      requestId: id,
      outcome: String(outcome),
      cause: textOf(rest.cause),
      amountNanos: isBilled ? parseCredits(String(cost)) : undefined,
      accountId: textOf(rest.account_id),
      accountName: textOf(rest.account),
      keyId: textOf(rest.key_id),
      keyPrefix: textOf(rest.key),
      upstream: textOf(rest.upstream),
      upstreamAccount: textOf(rest.upstream_account),
      usage: {
        inputTokens: countOf(usage?.input),
        cacheReadTokens: countOf(usage?.cache_read),
        cacheWriteTokens: countOf(usage?.cache_write),
        cacheWrite1hTokens: countOf(usage?.cache_write_1h),
        outputTokens: countOf(usage?.output),
        reasoningTokens: countOf(usage?.reasoning),
      },
    }
  } catch {
    // Some lines are not JSON, because a crash cut them off or Node itself wrote them.
    return undefined
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function countOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}
