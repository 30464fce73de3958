import type { Choice } from '../upstream/pool.ts'
import type { Gateway } from './gateway.ts'
import type { CallRecord, Try } from './record.ts'

/** What the record of a request has of its attempts: where each went and why, how long it took and what it failed of. */
export class Tries {
  readonly #gateway: Pick<Gateway, 'clockMs' | 'tracing'>
  readonly #record: CallRecord
  /** The newest. */
  #tried: Try | undefined

  constructor(gateway: Pick<Gateway, 'clockMs' | 'tracing'>, record: CallRecord) {
    this.#gateway = gateway
    this.#record = record
  }

  /** @param number of the attempt, from 1 on. @returns what its upstream is told of the trace, if anything */
  begin({ target, why }: Choice, number: number): string | undefined {
    const record = this.#record
    const [upstream, account] = [target.upstream.name, target.account?.name]
    record.attempts = number
    record.upstream = upstream
    record.upstreamAccount = account
    record.why = why
    const startedMs = this.#gateway.clockMs()
    this.#tried = { upstream, account, why, startedMs, endMs: undefined, status: undefined, cause: undefined }
    if (record.tries) record.tries.push(this.#tried)
    else record.tries = [this.#tried]
    return this.#gateway.tracing?.enter(record, this.#tried)
  }

  /**
   * The first end of an attempt is its end.
   * @param status the upstream's, 0 where none came. @param cause what it failed of, if it did
   */
  end(status: number, cause: string | undefined): void {
    const tried = this.#tried
    if (tried === undefined || tried.endMs !== undefined) return
    tried.endMs = this.#gateway.clockMs()
    tried.status = status || undefined
    tried.cause = cause
  }
}
