/**
 * Makes the error for a file that could not be read.
 * @param cure what to do about it, e.g. `check --log`
 * @returns the same error if it does not come from the system
 */
export function unreadable(file: string, error: unknown, cure: string): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException
  return syscall === undefined ? error : new Error(`cannot read ${file} (${code}): ${cure}`)
}
