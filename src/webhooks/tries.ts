import { warningKeptMs } from '../accounts/warnings.ts'

/*
 * What has become of a message so far: kept with it, in the store or in memory, so that whoever tells it next knows whom.
 */

/** Times are Unix milliseconds by the clock of who has told it: another server's may differ by some seconds. */
export type Tries = {
  /** Names of the receivers that have had it, or will not. */
  readonly over: readonly string[]
  /** Of the others how often they were told in vain, and when they are told again. */
  readonly left: Readonly<Record<string, Left>>
}

type Left = { count: number; dueMs: number }

/** @property afterMs when it is told to somebody again, in ms */
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
 * Until somebody looks again at what a server has nobody to tell, while another may: soon while it is new, and so much later
 * by and by that what nobody wants at all is looked at some seventy times.
 * @returns undefined where it is as old as anything is told
 */
export function lookAgainMs(ageMs: number): number | undefined {
  return ageMs > warningKeptMs ? undefined : Math.max(pausesMs[0], ageMs / 8)
}

/** What is further ahead than any pause was written by a clock gone mad. */
export function isDue(dueMs: number, nowMs: number): boolean {
  return dueMs <= nowMs || dueMs > nowMs + pausesMs.at(-1)!
}

/** One message while its receivers are told it. */
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

  /** He has had it, or does not want it, or wants it no more. */
  end(name: string): void {
    this.#over.push(name)
    delete this.#left[name]
  }

  /** It is told to him again, as the next try or, where it was not told, as the same one. */
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
