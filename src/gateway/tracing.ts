import type { CallRecord, Trace, Try } from './record.ts'

/** What traces ask of a request while it runs, which is little: nothing is told before it is over. */
export interface Tracing {
  /** A request begins. @param traceparent what its caller says @returns undefined where there is nothing to be kept */
  begin(traceparent: string | string[] | undefined): Trace | undefined
  /** A try begins. @returns the `traceparent` that its upstream is told, where it is to be told one */
  enter(record: CallRecord, tried: Try): string | undefined
}
