import { getTestContext } from 'node:test'

/**
 * Calls `close` when the running test is over, passed or failed. Called from `before` of a file, it closes at the end
 * of the file. So no test can forget to close. Outside of tests the caller must close itself.
 */
export function atEnd(close: () => unknown): void {
  const context = getTestContext()
  if (context && 'after' in context) context.after(async () => void (await close()))
}
