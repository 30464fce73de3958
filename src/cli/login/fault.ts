/**
 * The reason why there is no token. `exitCode` tells programs what to do: after 1 a retry may succeed; after 3 a person
 * must act, for example sign in again. The message is one line without secrets.
 */
export class SignInFault extends Error {
  readonly exitCode: 1 | 3

  constructor(exitCode: 1 | 3, message: string) {
    super(message)
    this.exitCode = exitCode
  }
}

/** The meaning of error codes of the file system, in words for people. */
const meanings: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota of this user is used up',
  EROFS: 'the file system is read-only',
  EACCES: 'this user has no right to it',
  EPERM: 'this user has no right to it',
  ENOTDIR: 'a part of the path is no folder',
  EISDIR: 'it is a folder',
  EMFILE: 'too many files are open',
}

/** Makes the fault for a file that cannot be read or written. @param doing `read` or `write` */
export function fileFault(doing: string, path: string, error: unknown): SignInFault {
  const { code = '', message } = error as NodeJS.ErrnoException
  const why = meanings[code]
  return new SignInFault(1, `cannot ${doing} ${path}: ${why ? `${why} (${code})` : code || message}`)
}
