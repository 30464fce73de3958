/*
 * The store's thread: everything that is said to PostgreSQL. Its parts are desks (desk.ts); here they are built, and what
 * the serving thread asks is brought to the one that answers for it.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { createSteadyClock } from '../files/steady-clock.ts'
import { ClockDesk } from './clock.ts'
import { Control } from './control.ts'
import { openDatabase } from './database.ts'
import { type Answers, carry, type Desk, type Heeded, type Say } from './desk.ts'
import { DirectoryDesk } from './directory-desk.ts'
import { migrate } from './migrate.ts'
import { postFunctions } from './post.ts'
import { PostingDesk } from './posting-desk.ts'
import type { ThreadMessage, ToThread } from './protocol.ts'
import { ReadingDesk } from './reading-desk.ts'
import { recoverSpools } from './recovery.ts'
import { sharingFunctions } from './sharing.ts'
import { SharingDesk } from './sharing-desk.ts'
import { SpendWindows } from './spend-windows.ts'
import type { ThreadOptions } from './thread-options.ts'
import { UsageDesk } from './usage-desk.ts'
import { refuseOtherZone, settleZone } from './usage-keep.ts'

const { url, shown, stateDir, spoolsDir, isSuccessor, accountsMax, patienceMs, introduction, reporting, offsetMs } =
  workerData as ThreadOptions
const port = parentPort!

/** The schema may take longer to change than a debit to be posted. */
const schemaMs = 60_000
/** The time in which the desks must end, in ms. */
const closeMs = 2_500

let unsaid: ThreadMessage[] = []

const say: Say = (news, value) => tell({ news, value } as ThreadMessage)
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

const answers: Partial<Answers> = {
  open: async () => ({ isReached: await control.first.catch(allowLater) }),
  close,
}
const heeded: Partial<Heeded> = {}
for (const desk of desks) {
  Object.assign(answers, desk.answers)
  Object.assign(heeded, desk.orders)
}

port.on('message', (message: ToThread) => {
  if ('order' in message) heed(message)
  else answer(message)
})

function heed({ order, value }: Extract<ToThread, { order: unknown }>): void {
  heeded[order]!(value as never)
}

function answer({ id, question, value }: Extract<ToThread, { question: unknown }>): void {
  answers[question]!(value as never).then(
    (answer) => tell({ id, value: answer }),
    (error) => tell({ id, error: carry(error) }),
  )
}

/** All of one turn in one message: each costs the serving thread about as much as a debit. */
function tell(said: ThreadMessage): void {
  if (unsaid.length === 0) queueMicrotask(flush)
  unsaid.push(said)
}

function flush(): void {
  port.postMessage(unsaid)
  unsaid = []
}

async function prepare(): Promise<void> {
  const database = openDatabase({ url, max: 1, patienceMs, statementMs: schemaMs, purpose: 'schema' })
  try {
    await migrate(database, shown, [...postFunctions, ...sharingFunctions])
    if (!isZoneSettled) await settleZone(database, reporting, shown)
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
