import type { CallRecord } from '../../gateway/record.ts'

/** The most losses that are kept of one request, because a client can cause any number of them. */
const lossesMax = 20

export function keep(record: CallRecord) {
  const { losses } = record
  return {
    id: record.id,
    trace: record.trace,
    startedMs: record.startedMs,
    beganMs: record.beganMs,
    method: record.method.length <= 16 ? record.method : '',
    // Nothing is kept of a path that is not served.
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

/** The facts of a request that are kept until its span is sent. Their size does not depend on the client. */
export type SpanSource = ReturnType<typeof keep>
