import { BookError } from '../../accounts/book-error.ts'
import { StoreError, sayMoved } from '../files/store-error.ts'

/** The SQLSTATE of a write to a store that was moved. The message contains the new place. */
export const movedCode = 'TR100'

/**
 * Returns the SQLSTATE of an error (https://www.postgresql.org/docs/current/errcodes-appendix.html). For a failed
 * connection, returns Node's code. Returns '' if the error has no code.
 */
export function codeOf(error: unknown): string {
  return (error as { code?: string } | undefined)?.code ?? ''
}

/** Errors that a second try cannot cure, with the operator's remedy. The server's message follows in parentheses. */
const cures = new Map<string, string>([
  ['28P01', 'refuses the password: check user and password of the store’s URL, or PGPASSWORD and PGPASSFILE'],
  ['28000', 'refuses the user: check the store’s URL, and what pg_hba.conf allows (perhaps only with TLS: sslmode)'],
  ['3D000', 'has no such database: create it, owned by the user of the store’s URL'],
  ['42501', 'gives the user too few rights: the user must own the database'],
  ['0A000', 'cannot do what a store needs: use PostgreSQL 14 or later'],
])

/**
 * Makes the message for a failure that a second try cannot cure.
 * @param shown the store's URL without its password (ruling X13)
 * @returns undefined for a temporary failure: no connection, no answer, a restart, a full disk, a lock
 */
export function refusalOf(error: unknown, shown: string): StoreError | undefined {
  if (error instanceof StoreError) return error
  const { message } = error as Error
  if (codeOf(error) === movedCode) return new StoreError(sayMoved(shown, { to: message }), { cause: error })
  if (/does not support SSL/.test(message)) {
    return new StoreError(
      `${shown} does not support TLS: leave sslmode out of the store's URL, or switch TLS on in PostgreSQL`,
      {
        cause: error,
      },
    )
  }
  // The driver reports this if it finds no password for the user.
  if (/^SASL: .*password must be/.test(message))
    return new StoreError(`${shown} asks for a password: set PGPASSWORD, or PGPASSFILE with a line for it`, {
      cause: error,
    })
  // The driver reads these files before it connects.
  if ((error as NodeJS.ErrnoException).syscall === 'open' || codeOf(error) === 'EISDIR') {
    const cure = "check sslrootcert, sslcert and sslkey in the store's URL"
    return new StoreError(`${shown} names a file that cannot be read (${message}): ${cure}`, { cause: error })
  }
  // PgBouncer, a pooler, reports this.
  if (/unsupported startup parameter/.test(message)) return new StoreError(sayPooler(shown), { cause: error })
  const cure = cures.get(codeOf(error))
  return cure === undefined ? undefined : new StoreError(`${shown} ${cure} (${message})`, { cause: error })
}

/** The error for a pooler. Poolers are not supported: settings, LISTEN and the process id belong to one session. */
export function sayPooler(shown: string): string {
  return `${shown} is a pooler's address: name PostgreSQL itself, for a server needs sessions of its own (docs/scaling.md)`
}

/**
 * Whether the outcome of a statement is unknown. The server gave no answer, or reported that it stops, for example
 * because its disk is full. The statement may have taken effect.
 */
export function isUnknown(error: unknown): boolean {
  const { severity, syscall, message } = error as { severity?: string; syscall?: string; message: string }
  if (severity !== undefined) return /^(08|53|57P|58|XX)/.test(codeOf(error))
  // Without a connection, no statement was sent. The pattern matches the messages of the driver and of its pool.
  return syscall !== 'connect' && !/^timeout (expired|exceeded when trying to connect)/.test(message)
}

/** Whether the server refuses this statement permanently, while it may accept others. */
export function isRefused(error: unknown): boolean {
  return (error as { severity?: string }).severity !== undefined && !isUnknown(error) && !isConflict(error)
}

/** Whether the statement had no effect and may be repeated, because of a conflict or a lock timeout. */
export function isConflict(error: unknown): boolean {
  return ['40001', '40P01', '55P03'].includes(codeOf(error))
}

/** For each error code of the system, and each SQLSTATE: why the database cannot be reached, and the cure. */
const unreachable: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there: start PostgreSQL, and check host and port of the URL and its listen_addresses',
  ENOTFOUND: 'there is no such host: check the URL',
  EAI_AGAIN: 'the name of the host could not be looked up: check the URL and the network',
  EHOSTUNREACH: 'there is no route to that host: check the URL and the network',
  ENETUNREACH: 'there is no route to that network: check the URL and the network',
  ETIMEDOUT: 'it does not answer: check the URL, the network and its firewall',
  ECONNRESET: 'it closed the connection: see its log',
  ENOENT: 'there is no such socket: check the folder in the URL, and that PostgreSQL runs',
  '57P01': 'it is being shut down: try again when it runs',
  '57P02': 'it is restarting after a crash: try again in a moment',
  '57P03': 'it is starting or stopping: try again in a moment',
  '53300': 'it has no connection left: raise its max_connections, or run fewer clients',
  '53100': 'its disk is full: make room there',
  '25006': 'it is a read-only standby: name the server that it follows',
  '57014': 'a statement took too long: see in pg_stat_activity what else keeps it busy, and try again',
  '55P03': 'another transaction holds the lock: look for old transactions in pg_stat_activity, and try again',
}

/** Matches the driver's messages for a server that did not answer in time or closed the connection. */
const silences = /timeout expired|timeout exceeded|Query read timeout|Connection terminated|SSL|TLS|certificate/i

/**
 * Makes an error with a message for the person who runs a command. An unknown error is returned as it is.
 * @param shown the store's URL without its password
 */
export function explainDatabase(error: unknown, shown: string): unknown {
  // The message of a broken rule has names, which may contain words of `silences`.
  if (error instanceof BookError) return error
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

/** Returns the first of an error's inner errors. A host with several addresses causes an inner error for each. */
function innermost(error: unknown): { code?: string; message: string } {
  const { errors } = error as { errors?: readonly unknown[] }
  return (errors?.[0] ?? error) as { code?: string; message: string }
}
