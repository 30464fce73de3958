import pg from 'pg'
import type { Row } from '../sql/step.ts'
import { isUnknown } from './trouble.ts'

/** One connection inside a transaction. */
export type Transaction = {
  /** @param name of a statement that comes often: each connection has it read and planned once. */
  query(text: string, values?: readonly unknown[], name?: string): Promise<Row[]>
}

/** A few connections to the database, each opened when it is needed and thrown away after a failure. */
export type Database = Transaction & {
  /** Read committed. Rolled back where `work` throws. */
  transact<T>(work: (transaction: Transaction) => Promise<T>): Promise<T>
  close(): Promise<void>
}

export type DatabaseOptions = {
  url: string
  /** Connections at once. */
  max: number
  /** How long a connection may take to be made, and a statement to be answered, in ms. */
  patienceMs: number
  /** For those who look at the server's list of sessions. */
  purpose: string
  /** How long a statement may take where that is longer, in ms: what changes the schema. */
  statementMs?: number
  /** An idle connection is closed after so long, in ms; 0: never. Default: 10 s. */
  idleMs?: number
  /** A connection that nobody was using was lost. */
  onLost?: (error: Error) => void
  /** A connection was made, to this process of the server. */
  onConnect?: (pid: number) => void
  /** Settings of its sessions beside, or instead of, those that all of ours have. */
  settings?: Readonly<Record<string, string>>
}

/**
 * One connection, for who must know that it is the same one. One statement at a time: the others wait for it. It is closed
 * where nobody knows what became of one.
 */
export type DatabaseSession = Transaction & {
  /** The id of the server's process, as reported when the connection was made. */
  readonly pid: number
  /** Hears what is notified on a channel that it listens to. */
  onNotified: (channel: string, payload: string) => void
  isEnded: boolean
  /** Called once, when the connection is lost or closed. */
  onEnded: () => void
  /** Without a word to the server, which may not be there any more. */
  close(): void
}

/** A setting of ours, by which a session knows that what it says of itself was heard. */
export const marker = 'triwire.session'

/** As of `pg_type.oid`: int8, int8[]. */
const [int8, int8Array] = [20, 1016]

/**
 * The settings that a session makes itself, since the database's own defaults may be others. With `repeatable read` the
 * functions would judge by data from before they had the lock. A compiler for plans costs more than any statement of ours.
 * The server ends a statement a second after the client gave it up. A statement that waits for a lock fails before the
 * client gives it up.
 */
function sessionOptions(patienceMs: number, more: DatabaseOptions['settings']): string {
  const settings = {
    default_transaction_isolation: 'read\\ committed',
    default_transaction_read_only: 'off',
    synchronous_commit: 'on',
    jit: 'off',
    statement_timeout: patienceMs + 1_000,
    lock_timeout: Math.ceil(patienceMs * 0.75),
    idle_in_transaction_session_timeout: patienceMs + 1_000,
    client_min_messages: 'warning',
    [marker]: 'on',
    ...more,
  }
  return Object.entries(settings)
    .map(([name, value]) => `-c ${name}=${value}`)
    .join(' ')
}

type ConnectionOptions = Pick<DatabaseOptions, 'url' | 'patienceMs' | 'statementMs' | 'purpose' | 'settings'>

function clientConfig(options: ConnectionOptions): pg.ClientConfig {
  const { url, patienceMs, statementMs = patienceMs, purpose, settings } = options
  return {
    connectionString: withSpelledTls(url),
    connectionTimeoutMillis: patienceMs,
    query_timeout: statementMs,
    keepAlive: true,
    application_name: applicationOf(purpose),
    options: sessionOptions(statementMs, settings),
    types: { getTypeParser },
  }
}

/** The driver verifies the certificate with each of these words, and warns at length that it may not always. */
function withSpelledTls(url: string): string {
  return /[?&]uselibpqcompat=true/.test(url)
    ? url
    : url.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)\b/, '$1verify-full')
}

/** The name that sessions of a purpose have on the server. */
export function applicationOf(purpose: string): string {
  return `triwire ${purpose}`
}

/** @throws where no connection can be had in time. */
export async function openSession(options: ConnectionOptions): Promise<DatabaseSession> {
  const client = new pg.Client(clientConfig(options))
  // The library's types do not tell of it, and its own end waits for a server that may be frozen.
  const { connection } = client as unknown as { connection: { stream: { destroy(): void } } }
  let last: Promise<unknown> = Promise.resolve()
  const session: DatabaseSession = {
    query(...asked) {
      const turn = last.then(() => query(...asked))
      last = turn.catch(() => {})
      return turn
    },
    get pid() {
      return pidOf(client)
    },
    onNotified: () => {},
    isEnded: false,
    onEnded: () => {},
    close: () => connection.stream.destroy(),
  }
  const end = () => {
    if (session.isEnded) return
    session.isEnded = true
    session.onEnded()
  }
  client.on('error', end)
  client.on('end', end)
  client.on('notification', ({ channel, payload = '' }) => session.onNotified(channel, payload))
  try {
    await client.connect()
    return session
  } catch (error) {
    session.close()
    throw error
  }

  async function query(text: string, values: readonly unknown[] = [], name?: string): Promise<Row[]> {
    try {
      return (await client.query(statementOf(text, values, name))).rows
    } catch (error) {
      if (isUnknown(error)) session.close()
      throw error
    }
  }
}

export function openDatabase(options: DatabaseOptions): Database {
  const { max, idleMs = 10_000, onLost, onConnect } = options
  const pool = new pg.Pool({ ...clientConfig(options), max, idleTimeoutMillis: idleMs })
  // Without a listener the loss of an idle connection would end the process.
  pool.on('error', (error) => onLost?.(error))
  pool.on('connect', (client) => onConnect?.(pidOf(client)))
  return { query, transact, close: () => pool.end() }

  async function query(text: string, values: readonly unknown[] = [], name?: string): Promise<Row[]> {
    return (await pool.query(statementOf(text, values, name))).rows
  }

  async function transact<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    const client = await pool.connect()
    // The pool's own listener gets errors of idle connections only, and without one a loss would end the process. A query
    // that runs gets its own error.
    client.on('error', ignore)
    let [isBroken, isSilent] = [true, false]
    const query: Transaction['query'] = async (text, values = [], name) => {
      try {
        return (await client.query(statementOf(text, values, name))).rows
      } catch (error) {
        isSilent ||= isUnknown(error)
        throw error
      }
    }
    try {
      await query('BEGIN')
      const result = await work({ query })
      await query('COMMIT')
      isBroken = false
      return result
    } catch (error) {
      // A connection that does not answer is not asked again: that would take as long once more.
      isBroken =
        isSilent ||
        (await client.query('ROLLBACK').then(
          () => false,
          () => true,
        ))
      throw error
    } finally {
      client.off('error', ignore)
      client.release(isBroken)
    }
  }
}

function ignore(): void {}

/** The library's types do not tell of it. */
function pidOf(client: pg.ClientBase): number {
  return (client as unknown as { processID: number }).processID
}

function statementOf(text: string, values: readonly unknown[], name?: string): pg.QueryConfig {
  return { text, values: values as unknown[], ...(name !== undefined && { name }) }
}

/** The library's own would be texts for integers of 64 bits. */
// biome-ignore lint/suspicious/noExplicitAny: as the library declares it
function getTypeParser(oid: number, format?: any): any {
  if (format !== 'binary') {
    if (oid === int8) return BigInt
    if (oid === int8Array) {
      const texts = pg.types.getTypeParser(int8Array as number) as (text: string) => (string | null)[]
      return (text: string) => texts(text).map((digits) => (digits === null ? null : BigInt(digits)))
    }
  }
  return pg.types.getTypeParser(oid, format)
}
