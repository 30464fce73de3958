import type { CallRecord } from '../../gateway/record.ts'

/** Of one request; a conversation may lose as much as its client likes. */
const lossesMax = 20

export function keep(record: CallRecord) {
  const { losses } = record
  return {
    id: record.id,
    trace: record.trace,
    startedMs: record.startedMs,
    beganMs: record.beganMs,
    method: record.method.length <= 16 ? record.method : '',
    // Of a path that is not served nothing is kept.
    path: record.walk === undefined ? '' : record.path,
    walk: record.walk,
    accountId: record.accountId,
    keyId: record.keyId,
    wire: record.wire,
    model: record.model,
    alias: record.alias,
    modelWire: record.modelWire,
    stream: record.stream,
    outputTokensCap: record.outputTokensCap,
    holdNanos: record.holdNanos,
    upstream: record.upstream,
    attempts: record.attempts,
    tries: record.tries,
    status: record.status,
    code: record.code,
    cause: record.cause,
    firstByteMs: record.firstByteMs,
    endMs: record.endMs,
    usage: record.usage,
    usageSource: record.usageSource,
    costNanos: record.costNanos,
    outcome: record.outcome,
    finishReason: record.finishReason,
    lost: losses?.slice(0, lossesMax).map(({ field }) => field.slice(0, 64)),
  }
}

/** What is kept of a request until it is sent: nothing of a size that its client chooses. */
export type SpanSource = ReturnType<typeof keep>
