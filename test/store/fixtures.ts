import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { Debit } from '../../src/accounts/ledger.ts'
import { priceNanos } from '../../src/catalog/model.ts'
import { readKeptList } from '../../src/config/list-text.ts'
import { type LedgerOptions, type OpenLedger, openLedger } from '../../src/store/sqlite/ledger-client.ts'
import { copyEmptyStore } from '../support/empty-store.ts'
import { testFolder } from '../support/folder.ts'
import { until } from '../support/waiting.ts'

export { until }

/** The path of a store that does not exist yet. Its folder stays: what is in it is looked through after the run. */
export function createPath(_t?: TestContext): string {
  return join(testFolder('store'), 'triwire.db')
}

export const prices = {
  inputNanos: 3_000_000_000n,
  cacheReadNanos: 300_000_000n,
  cacheWriteNanos: 3_750_000_000n,
  cacheWrite1hNanos: 6_000_000_000n,
  outputNanos: 15_000_000_000n,
}

export const usage = {
  inputTokens: 100,
  cacheReadTokens: 10,
  cacheWriteTokens: 6,
  cacheWrite1hTokens: 2,
  outputTokens: 20,
  reasoningTokens: 5,
  estimated: false,
}

/** What `usage` costs at `prices`: 300,000 + 3,000 + 15,000 + 12,000 + 300,000. */
export const costNanos = 630_000n

/** The origin of a debit whose key does not matter to the test. */
export const origin = {
  keyId: undefined,
  clientWire: 'chat',
  model: 'm-large',
  modelWire: 'messages',
  upstream: 'm-upstream',
  upstreamAccount: 'm-one',
} as const

export function createDebit(requestId: string, account: { id: string }): Debit {
  return createDebitRow(requestId, account.id)
}

export function createDebitRow(requestId: string, accountId: string): Debit {
  return {
    requestId,
    ...origin,
    amountNanos: costNanos,
    usage,
    usageSource: 'final',
    pricedCalls: 0,
    calls: undefined,
    priceVersion: 'v1',
    prices,
    outcome: 'ok',
    createdMs: 1_700_000_000_000,
    accountId,
  }
}

export const verifyOptions = { priceNanos, readList: readKeptList }

export type LogLine = { level: string; event: string; fields: Record<string, unknown> }

/**
 * A ledger as a server has it, closed after the test, with what it logged and how it was lost.
 * @param options `isStuck`: its first commit is not waited for beyond the settle deadline, which may be short here
 */
export async function open(
  t: TestContext,
  path: string,
  { isStuck = false, ...options }: Partial<LedgerOptions> & { isStuck?: boolean } = {},
): Promise<OpenLedger & { lines: LogLine[]; fatals: Error[] }> {
  const lines: LogLine[] = []
  const fatals: Error[] = []
  copyEmptyStore(path)
  const opened = await openLedger({
    path,
    settleDeadlineMs: 5_000,
    clockMs: () => performance.now(),
    onFatal: (error) => fatals.push(error),
    log: (level, event, fields) => lines.push({ level, event, fields }),
    pollMs: 20,
    ...options,
  })
  let closing: Promise<void> | undefined
  const close = () => (closing ??= opened.close())
  t.after(close)
  if (!isStuck) await until(() => opened.ledger.whyBlocked() === undefined)
  return { ...opened, close, lines, fatals }
}

/** What the next file will be opened as: the system gives the lowest number, so it grows with what stays open. */
export function freeDescriptor(): number {
  const file = openSync(import.meta.filename, 'r')
  closeSync(file)
  return file
}
