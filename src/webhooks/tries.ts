import { warningKeptMs } from '../accounts/warnings.ts'

/*
 * The state of a message so far. It is kept with the message, in the store or in memory. So the next process that sends it
 * knows the receivers that are left.
 */

/** Times are Unix milliseconds by the clock of the process that sent it. Another server's may differ by some seconds. */
export type Tries = {
  /** Names of the receivers that have had it, or will not. */
  readonly over: readonly string[]
  /** For each other receiver, how often sending failed, and when it is tried again. */
  readonly left: Readonly<Record<string, Left>>
}

type Left = { count: number; dueMs: number }

/** @property afterMs the time until it is sent to any receiver again, in ms */
export type Next = { tries: Tries; afterMs: number }

/** Between tries of a receiver, in ms; the last one again and again. */
const pausesMs = [5_000, 30_000, 120_000, 300_000, 900_000, 1_800_000, 3_600_000] as const

export const untried: Tries = { over: [], left: {} }

export function readTries(text: string | undefined): Tries {
  return { ...untried, ...(text === undefined ? {} : (JSON.parse(text) as Partial<Tries>)) }
}

/** @param count how often it was tried before */
export function pauseMs(count: number): number {
  return pausesMs[Math.min(count, pausesMs.length - 1)]!
}

/**
 * The time until a message is looked at again that has no receiver on this server but may have one on another. The time is short
 * while the message is new, and grows with its age. A message without any receiver is looked at some seventy times.
 * @returns undefined if it is too old to be sent
 */
export function lookAgainMs(ageMs: number): number | undefined {
  return ageMs > warningKeptMs ? undefined : Math.max(pausesMs[0], ageMs / 8)
}

/** A time further ahead than any pause comes from a wrong clock, and is due. */
export function isDue(dueMs: number, nowMs: number): boolean {
  return dueMs <= nowMs || dueMs > nowMs + pausesMs.at(-1)!
}

/** One message while it is sent to its receivers. */
export class Telling {
  readonly atMs: number
  readonly #over: string[]
  readonly #left: Record<string, Left>

  constructor(atMs: number, { over, left }: Tries) {
    this.atMs = atMs
    this.#over = [...over]
    this.#left = { ...left }
  }

  get tries(): Tries {
    return { over: [...this.#over], left: { ...this.#left } }
  }

  leftOf(name: string): Left {
    return this.#left[name] ?? { count: 0, dueMs: 0 }
  }

  isOver(name: string): boolean {
    return this.#over.includes(name)
  }

  /** The receiver has had it, or does not want it, or does not want it any more. */
  end(name: string): void {
    this.#over.push(name)
    delete this.#left[name]
  }

  /** The message is sent to the receiver again: as the next try, or as the same one if it was not sent. */
  postpone(name: string, left: Left): void {
    this.#left[name] = left
  }

  /** @returns undefined where it is over with all of them */
  nextOf(names: readonly string[], nowMs: number): Next | undefined {
    const waiting = names.filter((name) => !this.isOver(name))
    if (waiting.length === 0) return undefined
    const dueMs = Math.min(...waiting.map((name) => this.leftOf(name).dueMs))
    return { tries: this.tries, afterMs: Math.max(0, dueMs - nowMs) }
  }
}
