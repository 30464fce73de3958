import type { Connection } from './connection.ts'

/** An entry in the list of connections: a connection for requests, or with TLS one in its handshake. */
export type Guest = Pick<Connection, 'isIdle' | 'isAnswered' | 'destroy'>

/**
 * Limits the connections of a listener (faults F-C49). If a new one would be too many, one without an open request closes:
 * - first, one whose request was refused before all of it had arrived
 * - then the oldest one that never sent a request, as in a flood of connections
 * - then the one with the oldest last answer, because clients use recent ones for their next request
 *
 * Without the first rule, a client without a place in its window could take all connections by sending megabytes anyway.
 * An idle connection is read once more before it closes. Its request may have arrived while the event loop was busy, and
 * closing would lose that with a reset. With TLS a connection counts from its first byte.
 */
export class Guests {
  readonly #max: number
  readonly #silent = new Set<Guest>()
  /** In the order of their last answers. */
  readonly #known = new Set<Guest>()
  /** Idle connections that close soon, unless a request of theirs is read first. They are at most as many as two turns accept. */
  readonly #leaving = new Set<Guest>()

  constructor(max: number) {
    this.#max = max
  }

  /** @returns false if all connections are in use */
  enter(guest: Guest): boolean {
    if (this.#silent.size + this.#known.size >= this.#max && !this.#makeRoom()) return false
    this.#silent.add(guest)
    return true
  }

  /** Replaces the entry of a TLS handshake by that of its connection. */
  replace(before: Guest, guest: Guest): void {
    this.leave(before)
    this.#silent.add(guest)
  }

  noteRequest(guest: Guest): void {
    if (this.#silent.delete(guest) || this.#leaving.delete(guest)) this.#known.add(guest)
  }

  /** The connection has its answer, which makes it the most recent one. */
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

  /** @returns false if all connections are in use. */
  #makeRoom(): boolean {
    const answered = this.#known.values().find((guest) => guest.isAnswered)
    const isIdle = (guest: Guest) => guest.isIdle
    const spare = answered ?? this.#silent.values().find(isIdle) ?? this.#known.values().find(isIdle)
    if (!spare) return false
    this.leave(spare)
    if (answered) answered.destroy()
    else {
      this.#leaving.add(spare)
      // The connection may be new in this turn. By the end of the next turn, a request on it has been read.
      setImmediate(() => setImmediate(() => this.#closeUnread(spare)))
    }
    return true
  }

  /** Closes an idle connection. If it has sent a request meanwhile, another one is closed. */
  #closeUnread(idle: Guest): void {
    if (this.#leaving.delete(idle)) idle.destroy()
    else if (this.#silent.size + this.#known.size > this.#max) this.#makeRoom()
  }
}
