/**
 * What to say of a file that was named and could not be read.
 * @param cure what to do about it, e.g. `check --log`
 * @returns the same error where it is not the system's
 */
export function unreadable(file: string, error: unknown, cure: string): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException
  return syscall === undefined ? error : new Error(`cannot read ${file} (${code}): ${cure}`)
}
