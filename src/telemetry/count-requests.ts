import { missNanos } from '../catalog/model.ts'
import type { CallRecord } from '../gateway/record.ts'
import type { Usage } from '../inference/usage.ts'
import { resultOf } from './attempt-results.ts'
import { families } from './families.ts'
import { Counter, type Family, Histogram, withFourth } from './instruments.ts'

/** Metrics of requests. Each request is counted when it ends. */
type RequestFigures = { note(record: CallRecord): void; families: readonly Family[] }

/** Counts requests from their records. Running requests and stream events therefore cost nothing. */
export function createRequestFigures(): RequestFigures {
  const requests = new Counter(families.requests)
  const refusals = new Counter(families.refusals)
  const tokens = new Counter(families.tokens)
  const reasoningTokens = new Counter(families.reasoningTokens)
  const credits = new Counter(families.credits)
  const duration = new Histogram(families.duration)
  const firstByte = new Histogram(families.firstByte)
  const attempts = new Counter(families.attempts)
  const losses = new Counter(families.losses)
  const [fallbacks, doubts] = [new Counter(families.fallbacks), new Counter(families.doubts)]
  const [moved, movedCredits] = [new Counter(families.moved), new Counter(families.movedCredits)]
  const answers = { tokens, reasoningTokens, credits, duration, firstByte }
  const all = { requests, refusals, ...answers, attempts, fallbacks, moved, movedCredits, losses, doubts }
  return { note, families: Object.values(all) }

  function note(record: CallRecord): void {
    const { walk, model = '', outcome = 'ok', code } = record
    const wire = walk === 'infer' ? record.wire! : ''
    requests.add(1, wire, model, outcome)
    if (code !== undefined) refusals.add(1, code, reasonOf(record))
    if (walk !== 'infer') return
    if (record.status === 200) noteAnswer(record, wire, model)
    if (record.tries) for (const { upstream, cause, status } of record.tries) noteTry(upstream, cause, status)
    if (record.hops)
      for (const { from, to, cause } of record.hops) fallbacks.add(1, record.alias, from, withFourth(to, cause))
    if (record.moved) noteMove(record, record.moved, model)
    if (record.losses) for (const { field } of record.losses) losses.add(1, pairOf(record), nameOf(field))
    if (record.flags) for (const flag of record.flags) doubts.add(1, model, flag)
    // If the debit was refused, no money was booked.
    if (record.usage && record.settled !== 'refused') noteBill(record, record.usage, model)
  }

  function noteAnswer({ firstByteMs, endMs }: CallRecord, wire: string, model: string): void {
    if (firstByteMs !== undefined) firstByte.observe(firstByteMs / 1_000, wire, model)
    if (endMs !== undefined) duration.observe(endMs / 1_000, wire, model)
  }

  function noteTry(upstream: string, cause: string | undefined, status: number | undefined): void {
    const result = cause !== undefined ? resultOf(cause) : status === undefined ? 'abandoned' : 'ok'
    attempts.add(1, upstream, result)
  }

  function noteBill({ costNanos = 0n }: CallRecord, usage: Usage, model: string): void {
    addTokens(usage.inputTokens, model, 'input')
    addTokens(usage.cacheReadTokens, model, 'cache_read')
    addTokens(usage.cacheWriteTokens - usage.cacheWrite1hTokens, model, 'cache_write')
    addTokens(usage.cacheWrite1hTokens, model, 'cache_write_1h')
    addTokens(usage.outputTokens, model, 'output')
    if (usage.reasoningTokens > 0) reasoningTokens.add(usage.reasoningTokens, model)
    credits.add(Number(costNanos) / 1e9, model)
  }

  function noteMove({ usage, prices }: CallRecord, why: string, model: string): void {
    moved.add(1, model, why)
    if (usage && prices) movedCredits.add(Number(missNanos(prices, usage)) / 1e9, model)
  }

  function addTokens(count: number, model: string, kind: string): void {
    if (count > 0) tokens.add(count, model, kind)
  }
}

/** Returns a fixed word for the reason. Upstream causes are grouped. */
function reasonOf({ reason, cause }: CallRecord): string {
  if (reason !== undefined) return reason
  if (cause === undefined) return ''
  return cause.startsWith('upstream_') ? resultOf(cause) : cause
}

const pairs = new Map<string, Map<string, string>>()

/**
 * Returns the pair of wires as a label. The same string is reused, because a new one would be hashed at each lookup.
 */
function pairOf(record: CallRecord): string {
  const [wire, modelWire] = [record.wire!, record.modelWire!]
  const ofWire = pairs.get(wire) ?? new Map<string, string>()
  const pair = ofWire.get(modelWire) ?? `${wire}-to-${modelWire}`
  pairs.set(wire, ofWire.set(modelWire, pair))
  return pair
}

/** The longest name of a field, in characters. A longer name is counted as `other`. */
const fieldCharactersMax = 64

function nameOf(field: string): string {
  return field.length <= fieldCharactersMax ? field : 'other'
}
