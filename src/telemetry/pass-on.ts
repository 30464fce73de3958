import type { Tracing } from '../gateway/tracing.ts'
import { readTraceparent, writeTraceparent } from './trace-context.ts'

/** Tracing without a collector, if upstreams get the trace header. They get the client's, and we add no span. */
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
