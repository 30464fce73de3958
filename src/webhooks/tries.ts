import { warningKeptMs, warningPauseMs } from '../accounts/warnings.ts'

/*
 * The progress of a message to its receivers. It is kept with the message, in the store or in memory. So the next
 * process that sends the message knows which receivers still need it.
 */

/** Times are Unix milliseconds by the clock of the process that sent the message. Clocks may differ by some seconds. */
export type Tries = {
  /** Names of the receivers that need no further try. They have the message, or will not get it any more. */
  readonly over: readonly string[]
  /**
   * For each receiver with failed tries that needs another try: the number of failed tries, and the time of the next
   * try.
   */
  readonly left: Readonly<Record<string, Left>>
}

type Left = { count: number; dueMs: number }

/** The state of a message after tries. @property afterMs the time until the earliest next try, in ms */
export type Next = { tries: Tries; afterMs: number }

/** Pauses between tries at a receiver, in ms. The last pause repeats. */
const pausesMs = [5_000, 30_000, 120_000, 300_000, 900_000, 1_800_000, 3_600_000] as const

export const untried: Tries = { over: [], left: {} }

export function readTries(text: string | undefined): Tries {
  return { ...untried, ...(text === undefined ? {} : (JSON.parse(text) as Partial<Tries>)) }
}

/** Returns the pause before the next try at a receiver. @param count the number of failed tries so far */
export function pauseMs(count: number): number {
  return pausesMs[Math.min(count, pausesMs.length - 1)]!
}

/**
 * Returns the time in ms until this server looks again at a message for which it has no receiver. Other servers may
 * have receivers for the message. The time grows with the message's age, so the server looks some seventy times.
 * @returns undefined if the message is too old to be sent
 */
export function lookAgainMs(ageMs: number): number | undefined {
  return ageMs > warningKeptMs ? undefined : Math.max(pausesMs[0], ageMs * (warningPauseMs / warningKeptMs))
}

/** Whether a time has come. A time that is further ahead than any pause was set by a wrong clock, so it is due too. */
export function isDue(dueMs: number, nowMs: number): boolean {
  return dueMs <= nowMs || dueMs > nowMs + pausesMs.at(-1)!
}

/** A message that is being sent to its receivers, with its progress. */
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

  /** Notes that a receiver has the message, has refused it, or will not get it any more. */
  end(name: string): void {
    this.#over.push(name)
    delete this.#left[name]
  }

  /** Plans another try for a receiver. @param left the number of failed tries so far, and the time of the next try */
  postpone(name: string, left: Left): void {
    this.#left[name] = left
  }

  /** Returns the progress, and the time until the next try at one of these receivers. Undefined if none needs a try. */
  nextOf(names: readonly string[], nowMs: number): Next | undefined {
    const waiting = names.filter((name) => !this.isOver(name))
    if (waiting.length === 0) return undefined
    const dueMs = Math.min(...waiting.map((name) => this.leftOf(name).dueMs))
    return { tries: this.tries, afterMs: Math.max(0, dueMs - nowMs) }
  }
}
