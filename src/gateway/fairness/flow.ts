/** What all streams together may bring in one turn of the ticker, in bytes: at four turns a second 8 MiB a second. */
const turnBytes = 2 * 1_048_576

/** A stream may always bring so much in a turn: twice what the fastest models write. */
const shareMin = 16_384

/** A stream that is held back until it has brought no more than its share. */
export interface Held {
  /** The next turn. @returns false where it is to be held on */
  letOn(): boolean
}

/**
 * Shares the work on streams out. A stream that comes as fast as the network brings it keeps the loop to itself, and a few
 * of them keep everybody waiting (B10): in one turn of the ticker each may bring its share of what can be done, and one
 * that brings more waits as many turns as that is. What a model writes is far below.
 */
export type Flow = {
  /** Counts the turns. */
  readonly turn: number
  /** In bytes: what one stream may bring in this turn. */
  readonly share: number
  /** It is asked in each turn whether it may go on. */
  hold(stream: Held): void
  /** The next turn. @param streams that are under way */
  tick(streams: number): void
}

export function createFlow(): Flow {
  let held: Held[] = []
  let turn = 0
  let share = turnBytes
  return {
    get turn() {
      return turn
    },
    get share() {
      return share
    },
    hold(stream) {
      held.push(stream)
    },
    tick(streams) {
      turn++
      share = Math.max(shareMin, Math.floor(turnBytes / Math.max(1, streams)))
      // One that goes on may bring too much at once, and is held anew.
      const before = held
      held = []
      for (const stream of before) if (!stream.letOn()) held.push(stream)
    },
  }
}
