import type { Introduction } from '../../accounts/server-store.ts'
import type { Reporting } from '../../accounts/usage/reporting.ts'

/** The options with which the store's thread is started. */
export type ThreadOptions = {
  url: string
  /** The same without its password (ruling X13). */
  shown: string
  /** The folder of this server's spool and lock. */
  stateDir: string
  /** Spools below it that no server has are posted too (ruling X13). */
  spoolsDir: string
  introduction: Introduction
  /** Whose days figures for reports are kept by. */
  reporting: Reporting
  /** A thread before it has died; what that one was given comes again. */
  isSuccessor: boolean
  /** The spools of earlier runs were posted, by a thread before this one. */
  isRecovered: boolean
  /** So many accounts are kept in memory. */
  accountsMax: number
  /** By which the thread before it believed the clock of the database (ruling Y15). */
  offsetMs: number | undefined
  /** How long a statement, or a connection, is waited for, in ms. */
  patienceMs: number
}
