import type { Tracing } from '../gateway/tracing.ts'
import { readTraceparent, writeTraceparent } from './trace-context.ts'

/** Where nothing is sent to a collector and upstreams are told the trace: they are told their client's, and we are not in it. */
export const passOn: Tracing = {
  begin(traceparent) {
    const parent = traceparent === undefined ? undefined : readTraceparent(traceparent)
    return parent && { id: parent.traceId, parentId: parent.spanId, isSampled: parent.isSampled }
  },
  enter({ trace }) {
    if (trace?.parentId === undefined) return undefined
    return writeTraceparent({ traceId: trace.id, spanId: trace.parentId, isSampled: trace.isSampled })
  },
}
