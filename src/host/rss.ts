let last = 0

/**
 * Resident memory, in bytes. Linux tells it by a file, and where there is no descriptor left for that (faults F-P11) it is
 * what it was when it was last asked.
 */
export function readRss(): number {
  try {
    last = process.memoryUsage.rss()
  } catch {
    // What was known goes on.
  }
  return last
}
