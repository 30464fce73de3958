/* A load that failed for a reason that passes (`mayPass`) is repeated until it succeeds. */

/** The time between two tries, in ms. */
const everyMs = 4_000

const failed = new Map<object, () => void>()
let timer: number | undefined

/**
 * Tries something again soon: after a few seconds, or at once when the browser is online or the page is visible again.
 * @param owner identifies the try; it has one try at a time, which `stopRetrying` cancels
 */
export function retrySoon(owner: object, again: () => void): void {
  failed.set(owner, again)
  timer ??= window.setTimeout(tryAgain, everyMs)
}

export function stopRetrying(owner: object): void {
  failed.delete(owner)
}

/** Runs all tries. One that fails again calls `retrySoon` again. */
export function tryAgain(): void {
  window.clearTimeout(timer)
  timer = undefined
  // A hidden page waits until it is visible.
  if (document.hidden) return
  const waiting = [...failed.values()]
  failed.clear()
  for (const again of waiting) again()
}

/** Runs the tries when the browser is online or the page is visible again. */
export function startRecovery(): void {
  window.addEventListener('online', tryAgain)
  document.addEventListener('visibilitychange', tryAgain)
}
