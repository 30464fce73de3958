import type { Socket } from 'node:net'

/** The bytes that a socket was given and the system has not taken yet. They shrink if the client reads, however slowly. */
export class Backlog {
  readonly #socket: Socket
  #waiting: readonly number[]

  constructor(socket: Socket) {
    this.#socket = socket
    this.#waiting = waitingIn(socket)
  }

  /** Whether the system has taken any of them since the last call, or since this object was made. */
  hasShrunk(): boolean {
    const before = this.#waiting
    this.#waiting = waitingIn(this.#socket)
    return this.#waiting.some((bytes, at) => bytes < before[at]!)
  }
}

/** An internal part of `net` by which Node's own timers work. For TLS, `_parent` is the handle that really writes. */
type Handle = { writeQueueSize: number; _parent?: Handle }

/**
 * Returns two counts: all waiting bytes, and those of the write under way, which count in full until all of it is taken.
 * Each can shrink without the other. Their sum may not, so they are compared one by one.
 */
function waitingIn(socket: Socket): number[] {
  const { writableLength } = socket
  const { _handle: handle } = socket as unknown as { _handle?: Handle | null }
  return [writableLength, (handle?._parent ?? handle)?.writeQueueSize || writableLength]
}
