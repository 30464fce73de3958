import type { Socket } from 'node:net'

/** What a socket was given and the system has not taken yet: what a client that reads makes less, however slowly. */
export class Backlog {
  readonly #socket: Socket
  #waiting: readonly number[]

  constructor(socket: Socket) {
    this.#socket = socket
    this.#waiting = waitingIn(socket)
  }

  /** Whether any of it was taken since this was last asked, or since it was made. */
  hasShrunk(): boolean {
    const before = this.#waiting
    this.#waiting = waitingIn(this.#socket)
    return this.#waiting.some((bytes, at) => bytes < before[at]!)
  }
}

/** A part of `net` that Node's own timers go by; of TLS the handle beneath it is where anything moves. */
type Handle = { writeQueueSize: number; _parent?: Handle }

/**
 * In all, and of the write that is under way, which counts in full until all of it is taken: each grows less by itself, and not
 * their sum. What has not begun to leave waits in full.
 */
function waitingIn(socket: Socket): number[] {
  const { writableLength } = socket
  const { _handle: handle } = socket as unknown as { _handle?: Handle | null }
  return [writableLength, (handle?._parent ?? handle)?.writeQueueSize || writableLength]
}
