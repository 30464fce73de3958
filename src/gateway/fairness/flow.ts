/** Bytes that all streams together may bring in one turn of the ticker. With four turns a second this is 8 MiB a second. */
const turnBytes = 2 * 1_048_576

/** Bytes that every stream may bring in a turn, however many run: twice what the fastest models write. */
const shareMin = 16_384

/** A stream that is paused because it brought more than its share. */
export interface Held {
  /** Asks in the next turn whether the stream may go on. @returns false if it stays paused */
  letOn(): boolean
}

/**
 * Shares out the work on streams. A stream that arrives as fast as the network allows would keep the event loop to itself,
 * and delay everybody (B10). So each stream may bring a share in one turn of the ticker. A stream that brings more waits
 * until enough turns have passed. What a model normally writes is far below the share.
 */
export type Flow = {
  /** The number of the current turn. */
  readonly turn: number
  /** Bytes that one stream may bring in this turn. */
  readonly share: number
  /** Keeps a paused stream. Each turn asks it whether it may go on. */
  hold(stream: Held): void
  /** Begins the next turn. @param streams the number under way */
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
      // A stream that goes on may bring too much at once and be held again during this loop.
      const before = held
      held = []
      for (const stream of before) if (!stream.letOn()) held.push(stream)
    },
  }
}
