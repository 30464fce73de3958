/*
 * The store's thread: everything that is said to PostgreSQL. Its parts are desks (control.ts), which are built here.
 */
import { workerData } from 'node:worker_threads'
import type { Introduction } from '../../accounts/server-store.ts'
import type { Reporting } from '../../accounts/usage/reporting.ts'
import { createSteadyClock } from '../files/steady-clock.ts'
import { openThreadEnd } from '../serving/thread.ts'
import { countMissed } from '../sql/spends.ts'
import { ClockDesk, Control, type Desk } from './control.ts'
import { openDatabase } from './database.ts'
import { DirectoryDesk, ReadingDesk } from './directory-desk.ts'
import { migrate } from './migrate.ts'
import { postFunctions } from './post.ts'
import { PostingDesk } from './posting-desk.ts'
import { recoverSpools } from './recovery.ts'
import { dialect, run } from './run.ts'
import { SharingDesk, sharingFunctions } from './sharing-desk.ts'
import { SpendWindows } from './spend-windows.ts'
import { refuseOtherZone, settleZone, UsageDesk } from './usage-desk.ts'

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

const { url, shown, stateDir, spoolsDir, isSuccessor, accountsMax, patienceMs, introduction, reporting, offsetMs } =
  workerData as ThreadOptions
const { say, serve, flush } = openThreadEnd()

/** The schema may take longer to change than a debit to be posted. */
const schemaMs = 60_000
/** The time in which the desks must end, in ms. */
const closeMs = 2_500

const clockMs = () => performance.now()
const lookUps = openDatabase({ url, max: 2, patienceMs, purpose: 'look-ups' })
const clock = new ClockDesk(say, createSteadyClock(), offsetMs)
const windows = new SpendWindows(reporting, Date.now, clock.watch)
const posting = new PostingDesk({ url, patienceMs, say, clockMs, isSuccessor, windows })
let { isRecovered } = workerData as ThreadOptions
/** Whose days they are: who has served once goes on, whatever becomes of its thread or of the database (ruling X12). */
let isZoneSettled = isRecovered

/** The order in which the desks hear of the database: the ledger takes debits after all else. */
const desks: readonly Desk[] = [
  new SharingDesk({ url, patienceMs, introduction, clockMs, say }),
  { onReached: settleZoneOnce },
  new DirectoryDesk({ database: lookUps, accountsMax, say }),
  new ReadingDesk(lookUps),
  clock,
  { onReached: recoverOnce },
  posting,
  new UsageDesk({ url, patienceMs, reporting, say, clock: clock.watch }),
]
const control = new Control({ url, shown, patienceMs, beatMs: 1_000, desks, prepare, say })

serve({ answers: { open: async () => ({ isReached: await control.first.catch(allowLater) }), close } }, ...desks)

async function prepare(): Promise<void> {
  const database = openDatabase({ url, max: 1, patienceMs, statementMs: schemaMs, purpose: 'schema' })
  try {
    await migrate(database, shown, [...postFunctions, ...sharingFunctions])
    if (!isZoneSettled) await settleZone(database, reporting, shown)
    await run(database, countMissed(dialect))
  } finally {
    void database.close()
  }
}

/** Settles the zone once more now that a server that changes it sees this one. */
async function settleZoneOnce(): Promise<void> {
  if (isZoneSettled) return
  await refuseOtherZone(lookUps, reporting.timeZone, shown)
  isZoneSettled = true
}

async function recoverOnce(): Promise<void> {
  if (isRecovered) return
  // An account that is locked meanwhile is found so by the next try, and waited for no longer.
  const settings = { lock_timeout: `${patienceMs}` }
  const database = openDatabase({ url, max: 1, patienceMs, statementMs: schemaMs, purpose: 'recovery', settings })
  try {
    await recoverSpools(database, { stateDir, spoolsDir, say, windows })
    isRecovered = true
  } finally {
    void database.close()
  }
}

/** A server that runs already goes on trying. */
function allowLater(refusal: Error): boolean {
  if (isSuccessor) return false
  throw refusal
}

async function close(): Promise<undefined> {
  const late = setTimeout(end, closeMs)
  await Promise.allSettled(desks.map((desk) => desk.close?.()))
  clearTimeout(late)
  end()
}

function end(): void {
  control.close()
  flush()
  process.exit()
}
