import type { CallRecord, Trace, Try } from './record.ts'

/** The calls into tracing while a request runs. Spans are exported only when it is over. */
export interface Tracing {
  /** A request begins. @param traceparent the caller's header @returns undefined if nothing is to be kept */
  begin(traceparent: string | string[] | undefined): Trace | undefined
  /** A try begins. @returns the `traceparent` for its upstream, if that is to get one */
  enter(record: CallRecord, tried: Try): string | undefined
}
