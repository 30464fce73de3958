import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { type Books, createBooks } from '../../../src/accounts/books.ts'
import type { ServerStore } from '../../../src/accounts/server-store.ts'
import { openPostgresBooks } from '../../../src/store/postgres/books.ts'
import { type Database, openDatabase } from '../../../src/store/postgres/database.ts'
import { openPostgresStore, type PostgresOptions } from '../../../src/store/postgres/open.ts'
import { atEnd } from '../../support/at-end.ts'
import { testFolder } from '../../support/folder.ts'
import { listen } from '../../support/listen.ts'
import type { Postgres } from '../../support/postgres.ts'
import { until } from '../../support/waiting.ts'
import type { LogLine } from '../fixtures.ts'

export type OpenedStore = ServerStore & {
  lines: LogLine[]
  /** Of one event, what was logged with it. */
  told(event: string): Record<string, unknown>[]
  fatals: Error[]
  stateDir: string
  spool: string
  /** Its threads, as they started. */
  workers: Worker[]
}

/**
 * A store as a server has it, closed after the test, with what it logged and how it was lost.
 * @param options `isStuck`: it is not waited for until it is ready
 */
export async function openStore(
  url: string,
  { isStuck = false, ...options }: Partial<PostgresOptions> & { isStuck?: boolean } = {},
): Promise<OpenedStore> {
  const lines: LogLine[] = []
  const fatals: Error[] = []
  const workers: Worker[] = []
  const note = (worker: Worker) => void workers.push(worker)
  process.on('worker', note)
  atEnd(() => process.off('worker', note))
  const stateDir = options.stateDir ?? join(testFolder('state'), 'a')
  const opened = await openPostgresStore({
    url,
    shown: url,
    stateDir,
    introduction: { name: 'a', version: '0', configDigest: 'c', sealFingerprint: 's' },
    settleDeadlineMs: 5_000,
    clockMs: () => performance.now(),
    onFatal: (error) => fatals.push(error),
    log: (level, event, fields) => lines.push({ level, event, fields }),
    // Who looks a key up waits longer than a gateway lets him, so that a busy machine changes no verdict.
    lookMs: 20_000,
    ...options,
  })
  let closing: Promise<void> | undefined
  const close = () => (closing ??= opened.close())
  atEnd(close)
  if (!isStuck) await until(() => opened.ledger.whyBlocked() === undefined, 'the store is ready')
  const told = (event: string) => lines.filter((line) => line.event === event).map(({ fields }) => fields)
  return { ...opened, close, lines, told, fatals, stateDir, spool: join(stateDir, 'replica.spool'), workers }
}

/** What operators do beside it, and a look into the tables. */
export async function openOperator(url: string): Promise<Books & { database: Database }> {
  const store = await openPostgresBooks(url, { shown: url })
  const database = openDatabase({ url, max: 4, patienceMs: 20_000, purpose: 'test' })
  atEnd(() => Promise.all([store.close(), database.close()]))
  return { ...createBooks(store, Date.now), database }
}

/** Stops all processes of a server, as a machine that hangs. @returns lets them go on. */
export function freeze(postgres: Postgres): () => void {
  const stopped = new Set<number>()
  const signal = (pid: number, name: NodeJS.Signals) => {
    try {
      process.kill(pid, name)
    } catch {
      // It has ended.
    }
  }
  // What is started meanwhile is found by the second look.
  for (let look = 0; look < 2; look++) {
    for (const pid of postgres.pids()) {
      stopped.add(pid)
      signal(pid, 'SIGSTOP')
    }
  }
  const thaw = () => {
    for (const pid of stopped) signal(pid, 'SIGCONT')
    stopped.clear()
  }
  atEnd(thaw)
  return thaw
}

/** Stands between a store and its database, and can keep the answers back. */
export async function openMute(postgres: Postgres, url: string) {
  let isMute = false
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(postgres.port, '127.0.0.1')
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        client.destroy()
        upstream.destroy()
      })
    }
    client.pipe(upstream)
    upstream.on('data', (chunk) => void (isMute || client.write(chunk)))
  })
  const port = await listen(server)
  atEnd(() => {
    for (const socket of sockets) socket.destroy()
  })
  return {
    url: url.replace(`:${postgres.port}/`, `:${port}/`),
    /** What is asked arrives, what is answered does not. */
    mute() {
      isMute = true
    },
    /** Connections made from now on are as without it; the others were cut. */
    speak() {
      isMute = false
      for (const socket of sockets) socket.destroy()
      sockets.clear()
    },
  }
}
