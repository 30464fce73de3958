import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import type { Zone } from '../../accounts/calendar.ts'
import type { ChainedRow } from '../../accounts/chain.ts'
import { entryColumns, insertEntrySql, valuesOf } from '../../accounts/entry-row.ts'
import { isRecorded } from '../../accounts/usage/question.ts'
import { explainErrors } from '../files/cures.ts'
import { findHolder } from '../files/holder.ts'
import { lockStore, tryLockStore } from '../files/lock.ts'
import { realPath } from '../files/place.ts'
import type { Recovery } from '../files/spool.ts'
import { readUsageState, rezone } from '../sql/usage-keep.ts'
import { drainSpool } from '../sqlite/drain-spool.ts'
import { fixMoment } from '../sqlite/moment.ts'
import { readMoved } from '../sqlite/moved.ts'
import { openDatabase, transact } from '../sqlite/open.ts'
import { createDialect, createRun } from '../sqlite/run.ts'
import { openStore } from '../sqlite/store.ts'
import {
  type ChainEnd,
  type CopyEnd,
  type CopySource,
  type CopyTarget,
  type EntryRange,
  type HeldSource,
  type RegisterRow,
  type Registers,
  registerColumns,
  replacedRegisters,
} from './end.ts'

/** What may change of a key. */
const changing = [
  ...['label', 'expires_ms', 'revoked_ms', 'last_used_ms'],
  ...['scope', 'own_expires_ms', 'budget', 'budget_per', 'rpm', 'models'],
]

/** How long a statement waits for another process. */
const busyMs = 10_000

/** @throws StoreError where there is none. */
export function openSqliteSource(path: string): CopySource {
  const db = openDatabase(path, { busyMs, create: false, lock: lockStore })
  return { ...readingEnd(db, path), hold }

  async function hold<T>(work: (held: HeldSource) => Promise<T>): Promise<{ servers: string } | { result: T }> {
    const unlock = tryLockStore(path)
    if (!unlock) return { servers: sayServer(path) }
    try {
      const spooled = sayRecovery(postSpooled(path, recordedZone(db)))
      // Whoever writes by the command line waits, and finds it moved.
      db.exec('BEGIN IMMEDIATE')
      try {
        const result = await work({
          spooled,
          fixMoment: async () => fixMoment(db, Date.now()),
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

/** Made where there is none. */
export function openSqliteTarget(path: string): CopyTarget {
  const db = openDatabase(path, { busyMs, lock: lockStore })
  const insertEntry = db.prepare(insertEntrySql)
  const move = db.prepare('UPDATE accounts SET seq = ?, balance = ? WHERE id = ?')
  const insertAccount = inserting(db, 'accounts', 'revision', '(SELECT ifnull(max(revision), 0) + 1 FROM accounts)')
  const insertPrices = inserting(db, 'prices')
  const insertKey = inserting(db, 'keys')
  const insertOperator = inserting(db, 'operators')
  const insertAudit = inserting(db, 'audit')
  const replaces = replacedRegisters.map((name) => [name, inserting(db, name)] as const)
  const setRevoked = db.prepare('UPDATE operators SET revoked_ms = ? WHERE id = ?')
  const setName = db.prepare('UPDATE accounts SET name = ? WHERE id = ?')
  const setAccount = db.prepare(
    `UPDATE accounts SET name = ?, state = ?, revision = (SELECT max(revision) + 1 FROM accounts) WHERE id = ?`,
  )
  const setKey = db.prepare(
    `UPDATE keys SET ${changing.map((column) => `${column} = ?`).join(', ')} WHERE id = ? AND account_id = ? AND digest = ?`,
  )
  let unlock: (() => void) | undefined
  const reading = readingEnd(db, path)
  return {
    ...reading,
    async begin() {
      unlock = lockStore(path)
      setMoved(db, '')
    },
    async addAccounts(rows) {
      transact(db, () => {
        for (const row of rows) insertAccount({ ...row, name: ` ${row['id']}` })
      })
    },
    async addPrices(rows) {
      transact(db, () => {
        for (const row of rows) insertPrices(row)
      })
    },
    async addEntries(rows) {
      transact(db, () => {
        for (const [at, row] of rows.entries()) {
          insertEntry.run(...valuesOf(row as ChainedRow, row['digest'] as string))
          if (rows[at + 1]?.['account_id'] === row['account_id']) continue
          move.run(row['seq'] as bigint, row['balance_after'] as bigint, row['account_id'] as string)
        }
      })
    },
    async settle() {},
    async write({ accounts, keys, operators, audit, headMs, ...whole }) {
      transact(db, () => {
        // Names that were exchanged are in nobody's way: no name begins with a blank.
        for (const { id } of accounts) setName.run(` ${id}`, id as string)
        for (const { id, name, state } of accounts) setAccount.run(name as string, state as string, id as string)
        for (const key of keys) {
          insertKey(key)
          const values = [...changing, 'id', 'account_id', 'digest'].map((column) => key[column])
          setKey.run(...(values as SQLInputValue[]))
        }
        for (const operator of operators) {
          insertOperator(operator)
          setRevoked.run(operator['revoked_ms'] as SQLInputValue, operator['id'] as string)
        }
        for (const record of audit) insertAudit(record)
        for (const [name, insert] of replaces) {
          db.exec(`DELETE FROM ${name}`)
          for (const row of whole[name]) insert(row)
        }
        db.prepare('UPDATE head SET moment_ms = max(moment_ms, ?)').run(headMs)
      })
    },
    setZone: async (zone) => transact(db, () => createRun(db)(rezone(createDialect(), zone))),
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

function readingEnd(db: DatabaseSync, path: string): CopyEnd {
  const entriesOf = db.prepare(
    `SELECT ${entryColumns.join(', ')} FROM entries WHERE account_id = ? AND seq > ? AND seq <= ? ORDER BY seq`,
  )
  return {
    shown: path,
    readTails: async () => readTails(db),
    async readEntries(ranges: readonly EntryRange[]) {
      return explainErrors(path, () =>
        ranges.flatMap(({ accountId, after, upto }) => entriesOf.all(accountId, after, upto) as RegisterRow[]),
      )
    },
    readRegisters: async () => readRegisters(db),
    async count() {
      const { entries, numbered, references } = db
        .prepare(
          `SELECT (SELECT count(*) FROM entries) AS entries, (SELECT ifnull(sum(seq), 0) FROM accounts) AS numbered,
             (SELECT count(*) FROM entries WHERE reference IS NOT NULL) AS "references"`,
        )
        .get()!
      return { entries: Number(entries), numbered: Number(numbered), references: Number(references) }
    },
    async readOldestMs() {
      const { oldest } = db.prepare('SELECT min(posted_ms) AS oldest FROM entries').get()!
      return oldest === null ? undefined : Number(oldest)
    },
    readZone: async () => recordedZone(db),
    readMoved: async () => readMoved(db),
    close: async () => db.close(),
  }
}

function readTails(db: DatabaseSync): ChainEnd[] {
  const rows = db.prepare(
    `SELECT a.id, a.seq, a.balance, e.digest FROM accounts a
     LEFT JOIN entries e ON e.account_id = a.id AND e.seq = a.seq ORDER BY a.id`,
  )
  return rows.all().map(({ id, seq, balance, digest }) => ({
    accountId: id as string,
    seq: Number(seq),
    balanceNanos: balance as bigint,
    digest: digest as string | null,
  }))
}

function readRegisters(db: DatabaseSync): Registers {
  const read = (name: keyof typeof registerColumns) =>
    db.prepare(`SELECT ${registerColumns[name].join(', ')} FROM ${name}`).all() as RegisterRow[]
  const headMs = Number(db.prepare('SELECT moment_ms FROM head').get()?.moment_ms ?? 0)
  return {
    accounts: read('accounts'),
    keys: read('keys'),
    prices: read('prices'),
    operators: read('operators'),
    spends: read('spends'),
    outbox: read('outbox'),
    made: read('made'),
    audit: read('audit'),
    headMs,
  }
}

/** Of rows that are there nothing is changed. */
function inserting(
  db: DatabaseSync,
  table: keyof typeof registerColumns,
  more?: string,
  value?: string,
): (row: RegisterRow) => void {
  const columns: readonly string[] = registerColumns[table]
  const names = [...columns, ...(more ? [more] : [])].join(', ')
  const values = [...columns.map(() => '?'), ...(value ? [value] : [])].join(', ')
  const insert = db.prepare(`INSERT INTO ${table} (${names}) VALUES (${values}) ON CONFLICT DO NOTHING`)
  return (row) => void insert.run(...columns.map((column) => row[column] as SQLInputValue))
}

/** By its process, where that is on this machine and not hidden in a container. */
function sayServer(path: string): string {
  const pid = findHolder(path)
  return `the server that runs on ${path}${pid === undefined ? '' : ` (process ${pid})`}`
}

/** By who holds the lock, as a server does at its start. @param zone in whose days budgets are spent */
function postSpooled(path: string, zone: Zone | undefined): Recovery | undefined {
  const store = openStore(path, { busyMs, create: false, zone })
  try {
    return drainSpool(realPath(path), store, () => store.makeDurable())
  } finally {
    store.close()
  }
}

function recordedZone(db: DatabaseSync): Zone | undefined {
  const state = createRun(db)(readUsageState(createDialect()))
  return isRecorded(state) ? state : undefined
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
