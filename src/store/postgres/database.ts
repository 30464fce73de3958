import pg from 'pg'
import type { Row } from '../sql/step.ts'
import { readPassword } from './password-file.ts'
import { isUnknown } from './trouble.ts'

/** Runs statements on one connection, inside a transaction. */
export type Transaction = {
  /** @param name a name for a frequent statement, which each connection then parses and plans only once */
  query(text: string, values?: readonly unknown[], name?: string): Promise<Row[]>
}

/** A pool of connections. A connection is opened when it is needed, and closed after a failure. */
export type Database = Transaction & {
  /** Runs `work` in a transaction with isolation level "read committed". It is rolled back if `work` throws. */
  transact<T>(work: (transaction: Transaction) => Promise<T>): Promise<T>
  /** Calls `hear` whenever a connection was made, with the id of the process in the database that serves it. */
  onConnect(hear: (pid: number) => void): void
  close(): Promise<void>
}

export type DatabaseOptions = {
  url: string
  /** The most connections at once. */
  max: number
  /** The longest time to make a connection, and to answer a statement, in ms. */
  patienceMs: number
  /** The name in the server's list of sessions. */
  purpose: string
  /** The longest time of a statement, in ms, if it differs from `patienceMs`. Changes of the schema need more time. */
  statementMs?: number
  /** An idle connection is closed after this time, in ms; 0: never. Default: 10 s. */
  idleMs?: number
  /** Called when an idle connection was lost. */
  onLost?: (error: Error) => void
  /** Settings of the sessions. They are added to the usual settings, and replace usual settings with the same name. */
  settings?: Readonly<Record<string, string>>
}

/**
 * A single connection, for callers that need the same connection for all their statements. Statements run one after the
 * other. If the outcome of a statement is unknown, the connection is closed.
 */
export type DatabaseSession = Transaction & {
  /** The id of the server's process, as reported when the connection was made. */
  readonly pid: number
  /** Called with each notice on a channel that the session listens to. */
  onNotified: (channel: string, payload: string) => void
  isEnded: boolean
  /** Called once, when the connection is lost or closed. */
  onEnded: () => void
  /** Closes the connection without a message to the server, which may not answer. */
  close(): void
}

/** A setting of our own, sent with the other settings. If it can be read, the session has applied the others too. */
export const marker = 'triwire.session'

/** Values of `pg_type.oid`: int8, int8[]. */
const [int8, int8Array] = [20, 1016]

/**
 * The settings of each session, because the database may have other defaults.
 *
 * - With `repeatable read` the functions would use data from before they had the lock.
 * - JIT compilation of plans costs more time than any of our statements.
 * - The database ends a statement a second after the client stopped waiting for it.
 * - A statement that waits for a lock fails before the client stops waiting for it.
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

/** Replaces TLS modes that the driver treats as `verify-full`, because the driver writes long warnings about them. */
function withSpelledTls(url: string): string {
  return /[?&]uselibpqcompat=true/.test(url)
    ? url
    : url.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)\b/, '$1verify-full')
}

/** Returns the name that the database lists for sessions with this purpose. */
export function applicationOf(purpose: string): string {
  return `triwire ${purpose}`
}

/** A client of the driver that reads the password file, if neither the URL nor `PGPASSWORD` has a password. */
class Client extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config)
    // The library's types lack that a password may be a function.
    if (!this.password) Object.assign(this, { password: readPassword })
  }
}

/** Opens a single connection. @throws what the driver throws if no connection is made in time */
export async function openSession(options: ConnectionOptions): Promise<DatabaseSession> {
  const client = new Client(clientConfig(options))
  // The library's types lack `connection`. The client's method `end` would wait for a server that may be frozen.
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
  const { max, idleMs = 10_000, onLost } = options
  const pool = new pg.Pool({ ...clientConfig(options), Client, max, idleTimeoutMillis: idleMs })
  // Without a listener, the loss of an idle connection would end the process.
  pool.on('error', (error) => onLost?.(error))
  const onConnect: Database['onConnect'] = (hear) => void pool.on('connect', (client) => hear(pidOf(client)))
  return { query, transact, onConnect, close: () => pool.end() }

  async function query(text: string, values: readonly unknown[] = [], name?: string): Promise<Row[]> {
    return (await pool.query(statementOf(text, values, name))).rows
  }

  async function transact<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    const client = await pool.connect()
    // The pool handles errors only of idle connections. Without this listener, the loss of a connection in use would
    // end the process. A running query gets its own error.
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
      // A connection that did not answer is closed without a ROLLBACK, which would get no answer either.
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

/** The id of the server's process that serves a connection. The library's types lack `processID`. */
function pidOf(client: pg.ClientBase): number {
  return (client as unknown as { processID: number }).processID
}

function statementOf(text: string, values: readonly unknown[], name?: string): pg.QueryConfig {
  return { text, values: values as unknown[], ...(name !== undefined && { name }) }
}

/** Reads 64-bit integers as bigint. The library's own parsers return them as strings. */
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
