import { StoreError } from '../files/store-error.ts'
import { refusalOf } from './trouble.ts'

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
