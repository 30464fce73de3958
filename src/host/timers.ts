/** Resolves with the result of `work`, or after `ms` without one. @throws the error of `work` if it fails before that */
export async function within<T>(work: Promise<T>, ms: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Calls `tick` repeatedly, which keeps no process alive. @returns a function that stops it */
export function every(ms: number, tick: () => void): () => void {
  const timer = setInterval(tick, ms)
  timer.unref()
  return () => clearInterval(timer)
}
