import { hash } from 'node:crypto'
import { entryKinds, formOf } from '../../accounts/chain.ts'
import { entryColumns, fieldColumns } from '../../accounts/entry-row.ts'
import { StoreError } from '../files/store-error.ts'
import {
  type Database,
  type DatabaseSession,
  openDatabase,
  openSession,
  type Transaction,
} from '../postgres/database.ts'
import { locks, makePartitions, migrate, refuseEmpty } from '../postgres/migrate.ts'
import { allowWriting, closeStore, reopenStore } from '../postgres/moved.ts'
import { leaseMs } from '../postgres/replicas.ts'
import { dialect, entryIdOf, run } from '../postgres/run.ts'
import { beginDetails } from '../postgres/schema.ts'
import { fixMoment } from '../sql/moments.ts'
import { wasSeen } from '../sql/spends.ts'
import { answering, promising } from '../sql/step.ts'
import type { CopyEnd, CopySource, CopyTarget, EntryRange, HeldSource, RegisterRow } from './end.ts'
import { createCopyQuestions } from './questions.ts'

/** The longest time of a statement, in ms. A slice normally takes less than a second, but the machine may be busy. */
const patienceMs = 60_000

/** The transaction idles while the other end writes and verifies, so its idle time is not limited. */
const settings = { idle_in_transaction_session_timeout: '0' }

/** Entries get a partition for their month only if they are at most this many months old. */
const monthsBackMax = 120

const monthMs = 30 * 86_400_000

/**
 * A crash of the database may empty the table of present replicas. After that, a replica counts as running if it was
 * seen within this time, in ms.
 */
const tellingMs = 30_000

const types: Readonly<Record<string, string>> = {
  id: 'uuid',
  ...Object.fromEntries(fieldColumns.map((name) => [name, entryKinds[name] === 'text' ? 'text' : 'bigint'])),
  digest: 'text',
}

type PostgresPlace = { url: string; shown: string }

/** Opens the source. @throws StoreError if the database cannot be used; otherwise what the driver throws */
export async function openPostgresSource(place: PostgresPlace): Promise<CopySource> {
  const database = await open(place, refuseEmpty)
  return { ...readingEnd(database, place.shown), hold }

  async function hold<T>(work: (held: HeldSource) => Promise<T>): Promise<{ servers: string } | { result: T }> {
    const servers = await findServers(database)
    if (servers) return { servers }
    return database.transact(async (transaction) => {
      // An earlier try may have been interrupted after it closed the store for writing.
      await allowWriting(transaction)
      // Changes of operators take this lock first. So none of them keeps locks for which the copy would wait.
      await transaction.query('SELECT pg_advisory_xact_lock($1)', [locks.operators])
      await transaction.query(
        `LOCK TABLE triwire.prices, triwire.lists, triwire.shifted, triwire.balances, triwire.credits, triwire.entries, triwire.accounts, triwire.keys,
           triwire.sign_ins, triwire.head, triwire.replicas, triwire.operators, triwire.spends, triwire.outbox, triwire.needs, triwire.made,
           triwire.audit, triwire.statements, triwire.statement_people IN SHARE ROW EXCLUSIVE MODE`,
      )
      const late = await findServers(transaction)
      if (late) return { servers: late }
      const held: HeldSource = {
        spooled: undefined,
        fixMoment: () => run(transaction, fixMoment(dialect)),
        markMoved: (to) => closeStore(transaction, to),
      }
      return { result: await work(held) }
    })
  }
}

export async function openPostgresTarget(place: PostgresPlace): Promise<CopyTarget> {
  const database = await open(place)
  const { shown, url } = place
  const reading = readingEnd(database, shown)
  let session: DatabaseSession | undefined
  return {
    ...promising(answering(questions, (step) => writing((transaction) => run(transaction, step)))),
    ...reading,
    async begin(oldestMs) {
      // Only one copy at a time may fill a database. The lock ends with its session.
      session = await openSession({ url, patienceMs, purpose: 'copy' })
      const [free] = await session.query(`SELECT 1 WHERE pg_try_advisory_lock(${locks.copy})`)
      if (!free) throw new StoreError(`another triwire store copy fills ${shown}: wait until it has ended`)
      await database.transact(async (transaction) => {
        await transaction.query('SELECT pg_advisory_xact_lock($1)', [locks.schema])
        const servers = await findServers(transaction)
        if (servers)
          throw new StoreError(`${servers} are running on ${shown}: stop them first, or name another database`)
        await closeStore(transaction, '')
        const months = Math.ceil((Date.now() - oldestMs) / monthMs) + 1
        await makePartitions(transaction, Math.max(1, Math.min(monthsBackMax, months)))
      })
    },
    addEntries: (rows) =>
      writing(async ({ query }) => {
        if (rows.some((row) => formOf(row) === '3')) await query(beginDetails)
        await query(addEntriesSql, [toJson(rows.map((row) => ({ ...row, id: idOf(row) })))])
      }),
    settle: async () => {
      await database.query('ANALYZE triwire.entries, triwire.balances, triwire.credits, triwire.accounts, triwire.keys')
    },
    finish: () => database.transact(reopenStore),
    async close() {
      session?.close()
      await reading.close()
    },
  }

  function writing<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    return database.transact(async (transaction) => {
      await allowWriting(transaction)
      return work(transaction)
    })
  }
}

async function open(
  { url, shown }: PostgresPlace,
  check?: (database: Database, shown: string) => Promise<void>,
): Promise<Database> {
  const database = openDatabase({ url, max: 3, patienceMs, purpose: 'copy', settings })
  try {
    await check?.(database, shown)
    await migrate(database, shown, [])
    return database
  } catch (error) {
    await database.close()
    throw error
  }
}

const questions = createCopyQuestions(
  dialect,
  'SELECT account_id, seq, balance, digest FROM triwire.balances ORDER BY account_id COLLATE "C"',
  "nextval('triwire.revisions')",
)

function readingEnd(database: Database, shown: string): CopyEnd {
  const { addAccounts: _a, addPrices: _p, write: _w, setZone: _z, ...reads } = questions
  return {
    shown,
    ...promising(answering(reads, (step) => run(database, step))),
    readEntries: (ranges) => readEntries(database, ranges),
    close: () => database.close(),
  }
}

/** Reads the ranges with one index lookup each, even if the planner has no statistics of the table. */
async function readEntries({ query }: Database, ranges: readonly EntryRange[]): Promise<RegisterRow[]> {
  return query(
    `SELECT e.* FROM unnest($1::text[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS r(account_id, after, upto, at)
     CROSS JOIN LATERAL (
       SELECT ${entryColumns.join(', ')} FROM triwire.entries e
       WHERE e.account_id = r.account_id AND e.seq > r.after AND e.seq <= r.upto ORDER BY e.seq LIMIT r.upto - r.after
     ) e ORDER BY r.at, e.seq`,
    [
      ranges.map(({ accountId }) => accountId),
      ranges.map(({ after }) => String(after)),
      ranges.map(({ upto }) => String(upto)),
    ],
  )
}

const addEntriesSql = `
  WITH given AS MATERIALIZED (
    SELECT * FROM json_to_recordset($1) AS e(${Object.entries(types)
      .map(([column, type]) => `${column} ${type}`)
      .join(', ')})
  ), booked AS (
    INSERT INTO triwire.entries (${Object.keys(types).join(', ')}) SELECT ${Object.keys(types).join(', ')} FROM given
  ), referenced AS (
    INSERT INTO triwire.credits (reference, entry_id, account_id, amount)
      SELECT reference, id, account_id, amount FROM given WHERE kind = 'credit'
  )
  UPDATE triwire.balances b SET balance = t.balance_after, seq = t.seq, posted_ms = t.floor_ms, digest = t.digest
    FROM (SELECT DISTINCT ON (account_id) account_id, balance_after, seq, digest,
            CASE WHEN kind = 'credit' AND effective IS NOT NULL THEN created_ms ELSE posted_ms END AS floor_ms FROM given
          ORDER BY account_id, seq DESC) t
    WHERE b.account_id = t.account_id`

/** Returns the names of the running servers in words; undefined if none runs. */
async function findServers({ query }: Pick<Database, 'query'>): Promise<string | undefined> {
  const rows = await query(
    `SELECT r.name FROM triwire.replicas r LEFT JOIN triwire.present p ON p.replica = r.id
     WHERE r.left_ms IS NULL AND CASE WHEN p.replica IS NULL THEN ${wasSeen('r.seen_ms', tellingMs)}
       ELSE ${wasSeen('p.seen_ms', leaseMs)} END ORDER BY r.id`,
  )
  return rows.length === 0 ? undefined : `the servers ${rows.map(({ name }) => name).join(', ')}`
}

/**
 * Makes the id of an entry. The id of a debit is made from its request. The id of a credit is made from its time, which
 * decides its partition, and from a digest of its reference. So a second try makes the same id.
 */
function idOf(row: RegisterRow): string {
  if (row['kind'] === 'debit') return entryIdOf(row['request_id'] as string)
  const digest = hash('sha256', row['reference'] as string)
  const time = Number(row['posted_ms']).toString(16).padStart(12, '0')
  return `${time}7${digest.slice(0, 3)}8${digest.slice(3, 18)}`
}

/** Writes 64-bit integers as strings, because readers of JSON round large numbers. */
function toJson(rows: readonly RegisterRow[]): string {
  const texts = rows.map((row) => {
    const values: Record<string, unknown> = {}
    for (const column in row) {
      const value = row[column]
      if (value !== null && value !== undefined) values[column] = typeof value === 'bigint' ? String(value) : value
    }
    return JSON.stringify(values)
  })
  return `[${texts.join()}]`
}
