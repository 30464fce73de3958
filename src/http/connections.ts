import type { Connection } from './connection.ts'

/** What takes a place among the connections: one on which requests come, or with TLS one that is still in its handshake. */
export type Guest = Pick<Connection, 'isIdle' | 'isAnswered' | 'destroy'>

/**
 * The connections of a listener, of which there are no more than so many (faults F-C49): beyond that one is closed that nobody waits
 * for. First goes one whose request was refused before it had come in whole: a client that has no place in its window and sends
 * megabytes anyway would take all connections else. Then the oldest of those that never asked, then the one whose last
 * answer is the longest ago: a flood of connections takes those of the flood, and not what clients keep for their next
 * request. An idle one is read once more before: while the loop was busy its request may have come, and closing would
 * throw that away with a reset. With TLS a connection counts from its first byte on.
 */
export class Guests {
  readonly #max: number
  readonly #silent = new Set<Guest>()
  /** In the order of their last answers. */
  readonly #known = new Set<Guest>()
  /** Idle ones that make room, unless a request of theirs is still read; there are as many as are accepted in two turns. */
  readonly #leaving = new Set<Guest>()

  constructor(max: number) {
    this.#max = max
  }

  /** @returns false where all connections are in use */
  enter(guest: Guest): boolean {
    if (this.#silent.size + this.#known.size >= this.#max && !this.#makeRoom()) return false
    this.#silent.add(guest)
    return true
  }

  /** The handshake is over: one stands for the other. */
  replace(before: Guest, guest: Guest): void {
    this.leave(before)
    this.#silent.add(guest)
  }

  /** It has sent a request. */
  noteRequest(guest: Guest): void {
    if (this.#silent.delete(guest) || this.#leaving.delete(guest)) this.#known.add(guest)
  }

  /** It has its answer: among the others it is the newest again. */
  noteAnswer(guest: Guest): void {
    if (this.#known.delete(guest)) this.#known.add(guest)
  }

  leave(guest: Guest): void {
    this.#silent.delete(guest)
    this.#known.delete(guest)
    this.#leaving.delete(guest)
  }

  closeIdle(): void {
    for (const guest of this.#all()) if (guest.isIdle) guest.destroy()
  }

  closeAll(): void {
    for (const guest of this.#all()) guest.destroy()
  }

  #all(): Guest[] {
    return [...this.#silent, ...this.#known, ...this.#leaving]
  }

  /** @returns false where all connections are in use. */
  #makeRoom(): boolean {
    const answered = find(this.#known, (guest) => guest.isAnswered)
    const isIdle = (guest: Guest) => guest.isIdle
    const spare = answered ?? find(this.#silent, isIdle) ?? find(this.#known, isIdle)
    if (!spare) return false
    this.leave(spare)
    if (answered) answered.destroy()
    else {
      this.#leaving.add(spare)
      // The first turn is this one, in which it may have been accepted; by the end of the second it was read.
      setImmediate(() => setImmediate(() => this.#closeUnread(spare)))
    }
    return true
  }

  /** Where it has asked meanwhile somebody else is to go. */
  #closeUnread(idle: Guest): void {
    if (this.#leaving.delete(idle)) idle.destroy()
    else if (this.#silent.size + this.#known.size > this.#max) this.#makeRoom()
  }
}

function find(guests: Set<Guest>, isSpare: (guest: Guest) => boolean): Guest | undefined {
  for (const guest of guests) if (isSpare(guest)) return guest
  return undefined
}
