import { write } from 'node:fs'
import { formatCredits } from '../accounts/credit.ts'
import type { CallRecord } from '../gateway/record.ts'

/** Lines of so long share one write. */
const gatherMs = 5

/** At most so many characters wait for a sink that does not take them; beyond it lines are dropped and counted (F-P12). */
const waitingMax = 1_048_576

export type Log = {
  /** One line per request. */
  access(record: CallRecord, error?: unknown): void
  /** What happens to the process itself. */
  event(level: 'info' | 'error', event: string, fields?: Record<string, unknown>): void
  /** Resolves when all that was taken is written, or after so long: a blocked sink keeps nobody from leaving. */
  flush(withinMs?: number): Promise<void>
}

export type LogOptions = {
  level: 'info' | 'error'
  /** Lines for people instead of JSON. */
  isPretty: boolean
  /** The file descriptor; stderr (ruling X4). */
  descriptor?: number
  nowMs: () => number
}

/**
 * The log. What may never be in it: keys, digests, prompts, answers (ruling U5): a record has no field for them. Writing
 * never blocks a request: one write is under way, the rest waits in memory.
 */
export function createLog({ level, isPretty, descriptor = 2, nowMs }: LogOptions): Log {
  let waiting = ''
  /** A write is under way, or about to be. */
  let isWriting = false
  let dropped = 0
  const whenFlushed: (() => void)[] = []

  return { access, event, flush }

  function access(record: CallRecord, error?: unknown): void {
    const isBad = error !== undefined || (record.status ?? 0) >= 500
    if (level === 'error' && !isBad) return
    put(isPretty ? prettyAccess(record) : JSON.stringify(accessFields(record)))
    if (error !== undefined)
      event('error', 'bug', { id: record.id, error: error instanceof Error ? error.stack : String(error) })
  }

  function event(eventLevel: 'info' | 'error', name: string, fields: Record<string, unknown> = {}): void {
    if (level === 'error' && eventLevel === 'info') return
    const time = new Date(nowMs()).toISOString()
    if (isPretty)
      put(
        `${time.slice(11, 23)} ${name} ${Object.entries(fields)
          .map(([key, value]) => `${key}=${show(value)}`)
          .join(' ')}`,
      )
    else put(JSON.stringify({ time, level: eventLevel, event: name, ...fields }, replaceBigint))
  }

  function put(line: string): void {
    if (waiting.length > waitingMax) {
      dropped++
      return
    }
    waiting += `${line}\n`
    if (isWriting) return
    isWriting = true
    setTimeout(drain, gatherMs)
  }

  function drain(): void {
    isWriting = false
    if (waiting === '') {
      for (const resolve of whenFlushed.splice(0)) resolve()
      return
    }
    isWriting = true
    const bytes = Buffer.from(waiting)
    waiting = ''
    if (dropped > 0) {
      waiting = `${JSON.stringify({ time: new Date(nowMs()).toISOString(), level: 'error', event: 'log_dropped', lines: dropped })}\n`
      dropped = 0
    }
    writeAll(bytes, 0)
  }

  function writeAll(bytes: Buffer, from: number): void {
    write(descriptor, bytes, from, bytes.length - from, null, (error, written) => {
      if (error?.code === 'EAGAIN') {
        setTimeout(writeAll, 10, bytes, from).unref()
        return
      }
      if (!error && from + written < bytes.length) {
        writeAll(bytes, from + written)
        return
      }
      if (waiting !== '' && whenFlushed.length === 0) setTimeout(drain, gatherMs)
      else drain()
    })
  }

  function flush(withinMs = 2_000): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, withinMs)
      whenFlushed.push(() => {
        clearTimeout(timer)
        resolve()
      })
      if (!isWriting) drain()
    })
  }
}

/** The fields of an access line: names, counts and times (docs/operating.md lists them). */
function accessFields(record: CallRecord): Record<string, unknown> {
  const { usage } = record
  return {
    time: new Date(record.startedMs).toISOString(),
    id: record.id,
    method: record.method,
    path: record.path,
    ip: record.ip,
    account: record.account,
    account_id: record.accountId,
    key: record.keyPrefix,
    key_id: record.keyId,
    wire: record.wire,
    model: record.model,
    model_wire: record.modelWire,
    stream: record.stream,
    upstream: record.upstream,
    upstream_account: record.upstreamAccount,
    attempts: record.attempts,
    status: record.status,
    code: record.code,
    cause: record.cause,
    first_byte_ms: record.firstByteMs === undefined ? undefined : Math.round(record.firstByteMs - record.startedMs),
    end_ms: record.endMs === undefined ? undefined : Math.round(record.endMs - record.startedMs),
    usage: usage && {
      input: usage.inputTokens,
      cache_read: usage.cacheReadTokens,
      cache_write: usage.cacheWriteTokens,
      cache_write_1h: usage.cacheWrite1hTokens,
      output: usage.outputTokens,
      reasoning: usage.reasoningTokens,
    },
    usage_source: record.usageSource,
    cost: record.costNanos === undefined ? undefined : formatCredits(record.costNanos),
    losses: record.losses?.map(({ field }) => field),
    flags: record.flags,
    outcome: record.outcome ?? 'ok',
  }
}

function prettyAccess(record: CallRecord): string {
  const time = new Date(record.startedMs).toISOString().slice(11, 23)
  const took = record.endMs === undefined ? '' : ` ${Math.round(record.endMs - record.startedMs)}ms`
  const cost = record.costNanos === undefined ? '' : ` ${formatCredits(record.costNanos)}cr`
  const tokens = record.usage
    ? ` ${record.usage.inputTokens}+${record.usage.cacheReadTokens}c→${record.usage.outputTokens}t`
    : ''
  const why =
    record.outcome === undefined || record.outcome === 'ok'
      ? ''
      : ` ${[record.outcome, record.code, record.cause].filter(Boolean).join('/')}`
  const who = record.account ? ` ${record.account}` : ''
  const model = record.model ? ` ${record.model}` : ''
  return `${time} ${record.status ?? '---'} ${record.method} ${record.path}${who}${model}${tokens}${cost}${took}${why} ${record.id}`
}

function replaceBigint(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value
}

function show(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, replaceBigint)
}
