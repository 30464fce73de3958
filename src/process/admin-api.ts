import type { Books } from '../accounts/books.ts'
import { createThrottle, createWindows } from '../accounts/limits.ts'
import type { Config } from '../config/config.ts'
import type { AdminOperations } from '../http/admin.ts'
import { createApi } from '../http/api.ts'
import { createPeerReader } from '../http/peer.ts'
import { type OpenBooks, openServingBooks } from '../store/open-books.ts'
import { version } from './version.ts'

type Parts = {
  config: Config
  operations: AdminOperations
  /** Unix milliseconds. */
  nowMs: () => number
  /** Monotonic. */
  clockMs: () => number
  /** Of the process that has started this one. */
  parentDigest?: string | undefined
}

/** Wrong tokens of an address, questions of an operator, and of an owner, in a minute. */
const [failuresMax, questionsMax, ownersMax] = [5, 600, 60]

/** The admin API around what is known of the running gateway. The books are opened when somebody first asks for them. */
export function createAdminApi({ config, operations, nowMs, clockMs, parentDigest }: Parts) {
  let opened: Promise<OpenBooks> | undefined
  const minute = { windowMs: 60_000, clockMs, tableMax: 10_000 }
  const api = createApi({
    books,
    running: operations,
    reportBug: operations.reportBug,
    throttle: createThrottle({ limit: failuresMax, ...minute }),
    rates: createWindows({ limit: questionsMax, ...minute }),
    ownerRates: createWindows({ limit: ownersMax, ...minute }),
    nowMs,
    peerOf: createPeerReader(config.trustedProxies),
    version,
    publicUrl: config.adminUrl === undefined ? undefined : new URL(config.adminUrl),
    parentDigest,
  })
  return { api, close }

  async function books(): Promise<Books> {
    opened ??= openServingBooks(config.store, nowMs)
    try {
      return (await opened).books
    } catch (error) {
      opened = undefined
      throw error
    }
  }

  async function close(): Promise<void> {
    await (await opened?.catch(() => undefined))?.close()
  }
}
