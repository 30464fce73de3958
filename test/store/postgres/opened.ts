import { join } from 'node:path'
import type { ServerStore } from '../../../src/accounts/server-store.ts'
import { type Database, openDatabase } from '../../../src/store/postgres/database.ts'
import { openPostgresStore, type PostgresOptions } from '../../../src/store/postgres/open.ts'
import { atEnd } from '../../support/at-end.ts'
import { testFolder } from '../../support/folder.ts'
import { until } from '../../support/waiting.ts'
import type { LogLine } from '../fixtures.ts'

export type OpenedStore = ServerStore & {
  lines: LogLine[]
  fatals: Error[]
  stateDir: string
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
    ...options,
  })
  let closing: Promise<void> | undefined
  const close = () => (closing ??= opened.close())
  atEnd(close)
  if (!isStuck) await until(() => opened.isReady(), 'the store is ready')
  return { ...opened, close, lines, fatals, stateDir }
}

/** What operators do, as the books do it (src/store/postgres/books.ts). */
export function openOperator(url: string): Database {
  const database = openDatabase({ url, max: 2, patienceMs: 10_000, purpose: 'test' })
  atEnd(() => database.close())
  return database
}
