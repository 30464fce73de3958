/* A load that failed because the gateway could not answer is tried again by itself until it succeeds. */

/** Between two tries, in ms. */
const everyMs = 4_000

const failed = new Map<object, () => void>()
let timer: number | undefined

/**
 * Tries something again soon: every few seconds, and at once when the browser is online or the page is seen again.
 * @param owner has one try at a time; `stopRetrying` with it ends that
 */
export function retrySoon(owner: object, again: () => void): void {
  failed.set(owner, again)
  timer ??= window.setTimeout(tryAgain, everyMs)
}

export function stopRetrying(owner: object): void {
  failed.delete(owner)
}

/** Whether a status says that the gateway, or a proxy before it, could not answer; 0: there was no answer. */
export function mayPass(status: number): boolean {
  return status === 0 || status >= 500
}

/** A try that fails again comes back by `retrySoon`. */
export function tryAgain(): void {
  window.clearTimeout(timer)
  timer = undefined
  // A page that nobody sees waits until it is seen.
  if (document.hidden) return
  const waiting = [...failed.values()]
  failed.clear()
  for (const again of waiting) again()
}

/** Listens to the browser. */
export function startRecovery(): void {
  window.addEventListener('online', tryAgain)
  document.addEventListener('visibilitychange', tryAgain)
}
