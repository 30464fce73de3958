/*
 * The store's thread, which does all communication with PostgreSQL. Its parts are desks (control.ts), which are created
 * here.
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
  /** The URL without its password (ruling X13). */
  shown: string
  /** The folder of this server's spool and lock. */
  stateDir: string
  /** The spools below this folder are posted too, except spools that a server uses (ruling X13). */
  spoolsDir: string
  introduction: Introduction
  /** The zone whose days reports use, and for how many months figures for reports are kept. */
  reporting: Reporting
  /** Whether an earlier thread has died. Its unanswered debits are sent again. */
  isSuccessor: boolean
  /** Whether an earlier thread has already posted the spools of earlier runs. */
  isRecovered: boolean
  /** The most accounts to keep in memory. */
  accountsMax: number
  /**
   * How far the wall clock and the steady clock were apart when an earlier thread accepted the wall clock (ruling Y15).
   */
  offsetMs: number | undefined
  /** The longest wait for a statement or a connection, in ms. */
  patienceMs: number
}

const { url, shown, stateDir, spoolsDir, isSuccessor, accountsMax, patienceMs, introduction, reporting, offsetMs } =
  workerData as ThreadOptions
const { say, serve, flush } = openThreadEnd()

/** The time limit of one statement of a migration, in ms. */
const schemaMs = 60_000
/** The longest time that the desks may take to end, in ms. */
const closeMs = 2_500

const clockMs = () => performance.now()
const lookUps = openDatabase({ url, max: 2, patienceMs, purpose: 'look-ups' })
const clock = new ClockDesk(say, createSteadyClock(), offsetMs)
const windows = new SpendWindows(reporting, Date.now, clock.watch)
const posting = new PostingDesk({ url, patienceMs, say, clockMs, isSuccessor, windows })
let { isRecovered } = workerData as ThreadOptions
/**
 * Whether the database has accepted this server's time zone. If so, the zone stays accepted when the thread is
 * restarted (ruling X12).
 */
let isZoneSettled = isRecovered

/** The desks in the order in which they are called when the database is reached. Debits are posted after all checks. */
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

/**
 * Checks the zone again. Other commands can no longer change it, because they find this server registered and refuse.
 */
async function settleZoneOnce(): Promise<void> {
  if (isZoneSettled) return
  await refuseOtherZone(lookUps, reporting.timeZone, shown)
  isZoneSettled = true
}

async function recoverOnce(): Promise<void> {
  if (isRecovered) return
  // If a debit's account is locked already, the debit stays in its spool. If the account is locked later, this call
  // fails.
  const settings = { lock_timeout: `${patienceMs}` }
  const database = openDatabase({ url, max: 1, patienceMs, statementMs: schemaMs, purpose: 'recovery', settings })
  try {
    await recoverSpools(database, { stateDir, spoolsDir, say, windows, remember: posting.remember })
    isRecovered = true
  } finally {
    void database.close()
  }
}

/**
 * Handles the refusal of a check at the start. If this thread replaces a dead one, the server runs already, so the
 * thread keeps trying.
 * @returns false, because the database was not reached
 * @throws the refusal, if this is the first thread
 */
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
