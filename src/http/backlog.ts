import type { Socket } from 'node:net'

/** What a socket was given and the system has not taken yet: what a client that reads makes less, however slowly. */
export class Backlog {
  readonly #socket: Socket
  #given: number
  #leaving: number

  constructor(socket: Socket) {
    this.#socket = socket
    this.#given = socket.writableLength
    this.#leaving = leavingOf(socket)
  }

  /** Whether any of it was taken since this was last asked, or since it was made. */
  hasShrunk(): boolean {
    const { writableLength } = this.#socket
    const leaving = leavingOf(this.#socket)
    const hasShrunk = writableLength < this.#given || leaving < this.#leaving
    this.#given = writableLength
    this.#leaving = leaving
    return hasShrunk
  }
}

/**
 * Of the write that is under way, which counts in `writableLength` until all of it is taken; all, where it has not begun. Node's
 * own timers go by the same.
 */
function leavingOf(socket: Socket): number {
  const { _handle: handle } = socket as unknown as { _handle?: { writeQueueSize: number } | null }
  return handle?.writeQueueSize || socket.writableLength
}
