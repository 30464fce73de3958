import { getTestContext } from 'node:test'

/**
 * Calls `close` at the end of the running test, passed or failed. If it is called in `before` of a file, it does so at
 * the end of the file. Outside of tests it does nothing, and the caller must close.
 */
export function atEnd(close: () => unknown): void {
  const context = getTestContext()
  if (context && 'after' in context) context.after(async () => void (await close()))
}
