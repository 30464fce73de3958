/** The longest pause after a call, in ms. */
const pauseMsMax = 50

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

type AlternateOptions = { clockMs?: () => number; pause?: (ms: number) => Promise<unknown> }

/**
 * Runs calls one after the other. After each call that wrote, it pauses as long as the call took. SQLite's write lock is
 * not fair, because a thread that waits for it looks only from time to time. Without the pauses, many changes in a row,
 * such as sign-ins that anybody can begin, would hold up the ledger's thread.
 */
export function createAlternation({ clockMs = () => performance.now(), pause = sleep }: AlternateOptions = {}) {
  let last: Promise<unknown> = Promise.resolve()
  let hasWritten = false
  return {
    /** Notes that the running call writes. */
    noteWrite(): void {
      hasWritten = true
    },
    run(call: () => Promise<void>): void {
      last = last.then(async () => {
        hasWritten = false
        const beganMs = clockMs()
        await call()
        if (hasWritten) await pause(Math.min(pauseMsMax, clockMs() - beganMs))
      })
    },
  }
}
