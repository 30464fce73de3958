import { write } from 'node:fs'
import { formatCredits } from '../accounts/credit.ts'
import type { Config } from '../config/config.ts'
import type { CallRecord } from '../gateway/record.ts'
import { jsonLine, jsonLineOfNames, loggablePath, replaceBigint, textLine } from './loggable.ts'

/** The most characters of a method in the log; a longer one is cut. */
const methodCharactersMax = 20

export type Log = {
  /** Writes the line of a request. @param error an exception that is a bug of ours, written as a second line */
  access(record: CallRecord, error?: unknown): void
  /** Writes a line about the process itself, not about a request. */
  event(level: 'info' | 'error', event: string, fields?: Record<string, unknown>): void
  /** Writes a line that another process made. Only this process writes to the descriptor, so that lines never mix. */
  pass(line: string): void
  /** Resolves when all lines are written, or after `withinMs`. So a blocked descriptor does not delay the exit. */
  flush(withinMs?: number): Promise<void>
}

type LogOptions = {
  level: 'info' | 'error'
  /** Whether to write lines for people instead of JSON. */
  isPretty: boolean
  /** The file descriptor to write to; stderr by default (ruling X4). */
  descriptor?: number
  nowMs: () => number
}

/** Returns whether to write lines for people instead of JSON. With `auto`, it returns true if stderr is a terminal. */
export function isPrettyOn(format: Config['log']['format']): boolean {
  return format === 'pretty' || (format === 'auto' && process.stderr.isTTY === true)
}

/**
 * Creates the log. It must never contain keys, digests, prompts or answers (ruling U5). A record has no fields for such
 * texts. But a client could send them in other fields, so every line is cleaned here. Writing never blocks a request.
 */
export function createLog({ level, isPretty, descriptor = 2, nowMs }: LogOptions): Log {
  const sink = createLogSink(descriptor, (lines) => lineOf('error', 'log_dropped', { lines }))

  return { access, event, pass: sink.put, flush: sink.flush }

  function access(record: CallRecord, error?: unknown): void {
    const isBad = error !== undefined || (record.status ?? 0) >= 500
    if (level === 'error' && !isBad) return
    sink.put(isPretty ? textLine(prettyAccess(record)) : jsonLineOfNames(accessFields(record)))
    if (error !== undefined)
      event('error', 'bug', { id: record.id, error: error instanceof Error ? error.stack : String(error) })
  }

  function event(eventLevel: 'info' | 'error', name: string, fields: Record<string, unknown> = {}): void {
    if (level === 'error' && eventLevel === 'info') return
    sink.put(lineOf(eventLevel, name, fields))
  }

  function lineOf(eventLevel: 'info' | 'error', name: string, fields: Record<string, unknown>): string {
    const time = new Date(nowMs()).toISOString()
    if (!isPretty) return jsonLine({ time, level: eventLevel, event: name, ...fields })
    const told = Object.entries(fields).map(([key, value]) => `${key}=${show(value)}`)
    return textLine(`${time.slice(11, 23)} ${name} ${told.join(' ')}`)
  }
}

/** The fields of an access line: names, counts and times (docs/operating.md lists them). */
function accessFields(record: CallRecord): Record<string, unknown> {
  const { usage } = record
  return {
    time: timeOf(record.startedMs),
    id: record.id,
    method: record.method.slice(0, methodCharactersMax),
    path: loggablePath(record.path),
    ip: record.ip,
    account: record.account,
    account_id: record.accountId,
    key: record.keyPrefix,
    key_id: record.keyId,
    person: record.personId,
    labels: record.labels,
    wire: record.wire,
    model: record.model,
    alias: record.alias,
    fell_back: record.hops?.length ? record.hops : undefined,
    model_wire: record.modelWire,
    stream: record.stream,
    upstream: record.upstream,
    upstream_account: record.upstreamAccount,
    attempts: record.attempts,
    // If there was only one account to choose, no reason is logged.
    why: record.why === 'only' ? undefined : record.why,
    moved: record.moved,
    status: record.status,
    code: record.code,
    cause: record.cause,
    content_type: record.contentType === undefined ? undefined : shortType(record.contentType),
    first_byte_ms: record.firstByteMs === undefined ? undefined : Math.round(record.firstByteMs),
    end_ms: record.endMs === undefined ? undefined : Math.round(record.endMs),
    usage: usage && {
      input: usage.inputTokens,
      cache_read: usage.cacheReadTokens,
      cache_write: usage.cacheWriteTokens,
      cache_write_1h: usage.cacheWrite1hTokens,
      output: usage.outputTokens,
      reasoning: usage.reasoningTokens,
    },
    usage_source: record.usageSource,
    calls: record.calls,
    cost: record.costNanos === undefined ? undefined : formatCredits(record.costNanos),
    losses: record.losses?.map(({ field }) => field),
    flags: record.flags,
    outcome: record.outcome ?? 'ok',
  }
}

let [second, timeOfSecond] = [Number.NaN, '']

/**
 * Returns a time in ISO 8601 with milliseconds. A busy server writes many lines a second, so all but the milliseconds
 * is formatted once a second. `join` is used because JSON.stringify is slower for a string made by `+`.
 */
function timeOf(ms: number): string {
  const now = Math.floor(ms / 1_000)
  if (now !== second) [second, timeOfSecond] = [now, new Date(now * 1_000).toISOString().slice(0, -4)]
  return [timeOfSecond, `${Math.floor(ms - now * 1_000)}Z`.padStart(4, '0')].join('')
}

/**
 * Returns the content type if it is a plain media type, or else `none` or `other`, because no other text may be logged.
 */
function shortType(contentType: string): string {
  return /^[\w.+-]{1,64}\/[\w.+-]{1,64}$/.test(contentType) ? contentType : contentType === '' ? 'none' : 'other'
}

function prettyAccess(record: CallRecord): string {
  const time = new Date(record.startedMs).toISOString().slice(11, 23)
  const took = record.endMs === undefined ? '' : ` ${Math.round(record.endMs)}ms`
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
  return `${time} ${record.status ?? '---'} ${record.method.slice(0, methodCharactersMax)} ${loggablePath(record.path)}${who}${model}${tokens}${cost}${took}${why} ${record.id}`
}

function show(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, replaceBigint)
}

/** How long lines are collected before they are written together, in ms. */
const gatherMs = 25

/** The most characters that wait while the descriptor is slow. Further lines are dropped and counted (F-P12). */
const waitingMax = 1_048_576

type LogSink = {
  /** Takes a line, without its line end. */
  put(line: string): void
  /**
   * Resolves when all lines are written or lost, or after `withinMs`. So a blocked descriptor does not delay the exit.
   */
  flush(withinMs?: number): Promise<void>
}

/**
 * Writes lines to a descriptor without blocking the caller. One write is under way at a time, and further lines wait in
 * memory. Lines are dropped if too many wait, or if a write fails. Their number is logged after the next lines that can
 * be written.
 */
function createLogSink(descriptor: number, sayDropped: (lines: number) => string): LogSink {
  let waiting = ''
  /** Whether a write is under way or scheduled. */
  let isWriting = false
  let dropped = 0
  /**
   * Whether the last write failed. If so, the notice of dropped lines is not written alone, because it would be lost
   * too. The notice waits for the next line.
   */
  let isFailing = false
  /** Whether the end of the last written line is missing, because the write failed in the middle of it. */
  let isTorn = false
  const whenFlushed: (() => void)[] = []

  return { put, flush }

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
    if (waiting === '' && (dropped === 0 || isFailing)) {
      for (const resolve of whenFlushed.splice(0)) resolve()
      return
    }
    isWriting = true
    const end = isTorn ? '\n' : ''
    const notice = dropped > 0 ? `${sayDropped(dropped)}\n` : ''
    const told = dropped
    dropped = 0
    const bytes = Buffer.from(end + waiting + notice)
    waiting = ''
    writeAll(bytes, 0, (written) => {
      isFailing = written < bytes.length
      if (isFailing) {
        // The last line of `bytes` is the notice of dropped lines. It is lost too, but it does not count as a dropped
        // line.
        dropped += told + countLines(bytes, Math.max(written, end.length)) - (told > 0 ? 1 : 0)
        if (written > 0) isTorn = bytes[written - 1] !== lineEnd
      } else isTorn = false
      if (waiting !== '' && whenFlushed.length === 0) setTimeout(drain, gatherMs)
      else drain()
    })
  }

  /** @param then receives the number of bytes that were written: all bytes, or those before a failure */
  function writeAll(bytes: Buffer, from: number, then: (written: number) => void): void {
    write(descriptor, bytes, from, bytes.length - from, null, (error, written) => {
      if (error?.code === 'EAGAIN') setTimeout(writeAll, 10, bytes, from, then).unref()
      else if (!error && from + written < bytes.length) writeAll(bytes, from + written, then)
      else then(error ? from : bytes.length)
    })
  }

  function flush(withinMs = 2_000): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, withinMs)
      whenFlushed.push(() => {
        clearTimeout(timer)
        resolve()
      })
      if (isWriting) return
      // Before the exit all waiting lines are tried once more, because the descriptor may work again.
      isFailing = false
      drain()
    })
  }
}

const lineEnd = 10

function countLines(bytes: Buffer, from: number): number {
  let lines = 0
  for (let at = bytes.indexOf(lineEnd, from); at >= 0; at = bytes.indexOf(lineEnd, at + 1)) lines++
  return lines
}
