import type { DatabaseSync } from 'node:sqlite'
import type { Zone } from '../../accounts/calendar.ts'
import { formOf } from '../../accounts/chain.ts'
import { clockAtRest, isPastRest } from '../../accounts/clock.ts'
import { createInsert, entryColumns, valuesOf } from '../../accounts/entry-row.ts'
import { findHolder } from '../files/holder.ts'
import { lockStore, tryLockStore } from '../files/lock.ts'
import { realPath } from '../files/place.ts'
import type { Recovery } from '../files/spool.ts'
import { StoreError } from '../files/store-error.ts'
import { fixMoment } from '../sql/moments.ts'
import { answering, promising } from '../sql/step.ts'
import { beginDetails, openDatabase, transact } from '../sqlite/open.ts'
import { createDialect, createRun } from '../sqlite/run.ts'
import { drainSpool, openStore } from '../sqlite/store.ts'
import type { CopyEnd, CopySource, CopyTarget, EntryRange, HeldSource, RegisterRow } from './end.ts'
import { createCopyQuestions } from './questions.ts'

/** How long a statement waits for another process, in ms. */
const busyMs = 10_000

/** Opens the source. @throws StoreError if the file does not exist or cannot be used */
export function openSqliteSource(path: string): CopySource {
  const db = openDatabase(path, { busyMs, create: false, lock: lockStore })
  return { ...readingEnd(db, path), hold }

  async function hold<T>(work: (held: HeldSource) => Promise<T>): Promise<{ servers: string } | { result: T }> {
    const unlock = tryLockStore(path)
    if (!unlock) return { servers: sayServer(path) }
    try {
      const spooled = sayRecovery(postSpooled(path, createRun(db)(questions.readZone())))
      // A command that wants to write waits until the commit, and then finds the store moved.
      db.exec('BEGIN IMMEDIATE')
      try {
        const result = await work({
          spooled,
          fixMoment: async () => createRun(db)(fixMoment(createDialect())),
          markMoved: async (to) => setMoved(db, to),
        })
        db.exec('COMMIT')
        return { result }
      } catch (error) {
        if (db.isTransaction) db.exec('ROLLBACK')
        throw error
      }
    } finally {
      unlock()
    }
  }
}

/** Opens the target of a copy. A missing file is created. @throws StoreError */
export function openSqliteTarget(path: string): CopyTarget {
  const db = openDatabase(path, { busyMs, lock: lockStore })
  const insertEntry = createInsert((sql) => db.prepare(sql))
  const move = db.prepare('UPDATE accounts SET seq = ?, balance = ? WHERE id = ?')
  let unlock: (() => void) | undefined
  const reading = readingEnd(db, path)
  const run = createRun(db)
  return {
    ...promising(answering(questions, (step) => transact(db, () => run(step)))),
    ...reading,
    async begin() {
      unlock = lockStore(path)
      setMoved(db, '')
    },
    async addEntries(rows) {
      transact(db, () => {
        if (rows.some((row) => formOf(row) === '3')) beginDetails(db)
        for (const [at, row] of rows.entries()) {
          insertEntry(valuesOf(row), row['digest'] as string)
          if (rows[at + 1]?.['account_id'] === row['account_id']) continue
          move.run(row['seq'] as bigint, row['balance_after'] as bigint, row['account_id'] as string)
        }
      })
    },
    async settle() {},
    async finish() {
      db.exec('DELETE FROM moved')
      unlock?.()
      unlock = undefined
    },
    async close() {
      unlock?.()
      await reading.close()
    },
  }
}

const questions = createCopyQuestions(
  createDialect(),
  `SELECT a.id AS account_id, a.seq, a.balance, e.digest FROM accounts a
   LEFT JOIN entries e ON e.account_id = a.id AND e.seq = a.seq ORDER BY a.id`,
  '(SELECT max(revision) + 1 FROM main.accounts)',
)

function readingEnd(db: DatabaseSync, path: string): CopyEnd {
  const entriesOf = db.prepare(
    `SELECT ${entryColumns.join(', ')} FROM entries WHERE account_id = ? AND seq > ? AND seq <= ? ORDER BY seq`,
  )
  const { addAccounts: _a, addPrices: _p, write: _w, setZone: _z, ...reads } = questions
  return {
    shown: path,
    ...promising(answering(reads, createRun(db))),
    async readEntries(ranges: readonly EntryRange[]) {
      return ranges.flatMap(({ accountId, after, upto }) => entriesOf.all(accountId, after, upto) as RegisterRow[])
    },
    close: async () => db.close(),
  }
}

/** Names the server, with its process id if it runs on this machine and in this container. */
function sayServer(path: string): string {
  const pid = findHolder(path)
  return `the server that runs on ${path}${pid === undefined ? '' : ` (process ${pid})`}`
}

/**
 * Posts the spool, as a server does at its start. The caller holds the lock.
 * @param zone the zone of budget periods
 * @throws StoreError if the spool has debits and the clock that would date them is in doubt (ruling Y15)
 */
function postSpooled(path: string, zone: Zone | undefined): Recovery | undefined {
  const store = openStore(path, { busyMs, create: false, zone })
  try {
    return drainSpool(realPath(path), store, () => {
      if (isPastRest(store.readClock())) throw new StoreError(`${path} has debits in its spool, and ${clockAtRest}`)
      store.makeDurable()
    })
  } finally {
    store.close()
  }
}

function sayRecovery(recovery: Recovery | undefined): string | undefined {
  if (!recovery) return undefined
  const { posted, aside } = recovery
  const bad = aside === undefined ? '' : `; what could not be booked or read is in ${aside}`
  return `${posted} debits that waited in the spool were booked${bad}`
}

function setMoved(db: DatabaseSync, to: string): void {
  db.prepare('INSERT OR REPLACE INTO moved (id, to_store, moved_ms) VALUES (1, ?, ?)').run(to, Date.now())
}
