import { getTestContext } from 'node:test'

/**
 * Calls when the running test is over, passed or failed; what `before` of a file opens, when the file is. So nobody can
 * forget to close. Outside of tests whoever opens closes.
 */
export function atEnd(close: () => unknown): void {
  const context = getTestContext()
  if (context && 'after' in context) context.after(async () => void (await close()))
}
