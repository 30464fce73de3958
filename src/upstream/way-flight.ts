import type { Flight, TransportFault, UpstreamListener } from './upstreams.ts'

/** The calls of a flight on its connection. */
export interface Carrier {
  /** Whether the connection is, or was, ready for a request. */
  readonly isOpen: boolean
  readonly isSent: boolean
  pause(): void
  resume(): void
  destroy(): void
}

/** A request on its way, while its connection is being opened and on it. */
export class WayFlight implements Flight {
  isPaused = false
  /** Undefined before one is being opened. */
  connection: Carrier | undefined
  /** Gets the answer, until that is over or given up. */
  listener: UpstreamListener | undefined

  constructor(listener: UpstreamListener) {
    this.listener = listener
  }

  get isOver(): boolean {
    return this.listener === undefined
  }

  abort(): void {
    if (this.isOver) return
    this.listener = undefined
    this.connection?.destroy()
  }

  pause(): void {
    this.isPaused = true
    if (!this.isOver) this.connection?.pause()
  }

  resume(): void {
    this.isPaused = false
    if (!this.isOver) this.connection?.resume()
  }

  isSent(): boolean {
    return this.connection?.isSent === true
  }

  wasWritten(): boolean {
    return this.connection?.isOpen === true
  }

  /** Ends it. The listener gets the fault and the error that it was judged by. */
  fail(fault: TransportFault, error: Error): void {
    const { listener } = this
    this.listener = undefined
    listener?.onError(fault, error)
  }

  end(): void {
    const { listener } = this
    this.listener = undefined
    listener?.onEnd()
  }
}
