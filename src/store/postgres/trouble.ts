import { StoreError, sayMoved } from '../files/store-error.ts'

/** The error code of a statement that would write to a store whose content is elsewhere; the message has the new place. */
export const movedCode = 'TR100'

/** SQLSTATE (https://www.postgresql.org/docs/current/errcodes-appendix.html), or Node's word for a failed connection. */
export function codeOf(error: unknown): string {
  return (error as { code?: string } | undefined)?.code ?? ''
}

/** Errors that no second try mends: the operator has to. The text of the server is added if it says more than ours. */
const cures = new Map<string, string>([
  ['28P01', 'refuses the password: check user and password of the store’s URL, or PGPASSWORD and PGPASSFILE'],
  ['28000', 'refuses the user: check the store’s URL, and what pg_hba.conf allows (perhaps only with TLS: sslmode)'],
  ['3D000', 'has no such database: create it, owned by the user of the store’s URL'],
  ['42501', 'gives the user too few rights: the user must own the database'],
  ['0A000', 'cannot do what a store needs: use PostgreSQL 14 or later'],
])

/**
 * The message for a failure that no second try mends.
 * @param shown the store's URL without its password (ruling X13).
 * @returns undefined for a passing failure: no connection, no answer, a restart, a full disk, a lock
 */
export function refusalOf(error: unknown, shown: string): StoreError | undefined {
  if (error instanceof StoreError) return error
  const { message } = error as Error
  if (codeOf(error) === movedCode) return new StoreError(sayMoved(shown, { to: message }), { cause: error })
  if (/does not support SSL/.test(message)) {
    return new StoreError(
      `${shown} speaks no TLS: leave sslmode out of the store's URL, or switch TLS on in PostgreSQL`,
      {
        cause: error,
      },
    )
  }
  // As the driver says that it has none, of this user and in that file.
  if (/^SASL: .*password must be/.test(message))
    return new StoreError(`${shown} asks for a password: set PGPASSWORD, or PGPASSFILE with a line for it`, {
      cause: error,
    })
  // As PgBouncer says it.
  if (/unsupported startup parameter/.test(message)) return new StoreError(sayPooler(shown), { cause: error })
  const cure = cures.get(codeOf(error))
  return cure === undefined ? undefined : new StoreError(`${shown} ${cure} (${message})`, { cause: error })
}

/** Settings, listening and the number of a session are the session's; a pooler lends it to others in between. */
export function sayPooler(shown: string): string {
  return `${shown} is a pooler's address: name PostgreSQL itself, for a server needs sessions of its own (docs/scaling.md)`
}

/**
 * The outcome of the statement is unknown. It was sent, and the server gave no answer, or one by which it ends itself (a
 * full or broken disk under its log). The entries that it had written down by then are found when it starts again.
 */
export function isUnknown(error: unknown): boolean {
  const { severity, syscall, message } = error as { severity?: string; syscall?: string; message: string }
  if (severity !== undefined) return /^(08|53|57P|58|XX)/.test(codeOf(error))
  // Of a connection that was never had: as the library says it, and its pool.
  return syscall !== 'connect' && !/^timeout (expired|exceeded when trying to connect)/.test(message)
}

/** The server refuses this statement, rather than all statements, and not only for a moment. */
export function isRefused(error: unknown): boolean {
  return (error as { severity?: string }).severity !== undefined && !isUnknown(error) && !isConflict(error)
}

/** The statement was refused and did nothing, and may be sent again: deadlocks, serialisation. */
export function isConflict(error: unknown): boolean {
  return ['40001', '40P01', '55P03'].includes(codeOf(error))
}

/** By the system's code or SQLSTATE, where no database answers: what is to be done about it. */
const unreachable: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there: start PostgreSQL, and check host and port of the URL and its listen_addresses',
  ENOTFOUND: 'there is no such host: check the URL',
  EAI_AGAIN: 'the name of the host could not be looked up: check the URL and the network',
  EHOSTUNREACH: 'there is no way to that host: check the URL and the network',
  ENETUNREACH: 'there is no way to that network: check the URL and the network',
  ETIMEDOUT: 'it does not answer: check the URL, the network and its firewall',
  ECONNRESET: 'it broke the connection off: see its log',
  ENOENT: 'there is no such socket: check the folder in the URL, and that PostgreSQL runs',
  '57P01': 'it is being shut down: try again when it runs',
  '57P02': 'it is restarting after a crash: try again in a moment',
  '57P03': 'it is starting or stopping: try again in a moment',
  '53300': 'it has no connection left: raise its max_connections, or run fewer clients',
  '53100': 'its disk is full: make room there',
  '25006': 'it takes no changes: it is a standby, name the server that it follows',
  '55P03': 'somebody keeps what is needed locked: see pg_stat_activity for old transactions, and try again',
}

/** As the driver says that nobody answered in time, or went away. */
const silences = /timeout expired|timeout exceeded|Query read timeout|Connection terminated|SSL|TLS|certificate/i

/**
 * A failure of the database in words for the person who runs a command. What nobody knows stays as it is.
 * @param shown the store's URL without its password.
 */
export function explainDatabase(error: unknown, shown: string): unknown {
  const refusal = refusalOf(error, shown)
  if (refusal) return refusal
  const { code = '', message } = innermost(error)
  const known = unreachable[code]
  if (known !== undefined) return new StoreError(`${shown} cannot be reached: ${known} (${code})`, { cause: error })
  if (!silences.test(message)) return error
  return new StoreError(`${shown} cannot be reached: ${message}; check the URL, the network and PostgreSQL's log`, {
    cause: error,
  })
}

/** Each address of a host with several has an error of its own. */
function innermost(error: unknown): { code?: string; message: string } {
  const { errors } = error as { errors?: readonly unknown[] }
  return (errors?.[0] ?? error) as { code?: string; message: string }
}
