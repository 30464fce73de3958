let last = 0

/**
 * Resident memory, in bytes. Linux reports it in a file. If no descriptor is left to read it (faults F-P11), the value of the
 * last call is returned.
 */
export function readRss(): number {
  try {
    last = process.memoryUsage.rss()
  } catch {
    // The last value is kept.
  }
  return last
}
