import { hash } from 'node:crypto'
import { entryColumns } from '../../accounts/entry-row.ts'
import { isRecorded } from '../../accounts/usage/question.ts'
import { StoreError } from '../files/store-error.ts'
import { type Database, openDatabase, type Transaction } from '../postgres/database.ts'
import { entryIdOf } from '../postgres/entry-id.ts'
import { locks, makePartitions, migrate, refuseEmpty } from '../postgres/migrate.ts'
import { allowWriting, closeStore, readMoved, reopenStore } from '../postgres/moved.ts'
import { leaseMs } from '../postgres/replicas.ts'
import { dialect, run } from '../postgres/run.ts'
import { fixMoment } from '../postgres/verify.ts'
import { readUsageState, rezone } from '../sql/usage-keep.ts'
import {
  type ChangedRegisters,
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

/** Slices are made for less than a second; a machine that is busy has patience here. */
const patienceMs = 60_000

/** The registers are held while the other end takes them, and proves what it has. */
const settings = { idle_in_transaction_session_timeout: '0' }

/** Older entries than of these months have no partition of their own. */
const monthsBackMax = 120

const monthMs = 30 * 86_400_000

/** A replica counts as one that runs for so long where the table of who is present was lost with a crash, and was not told again yet. */
const tellingMs = 30_000

const types: Readonly<Record<string, string>> = {
  id: 'uuid',
  ...Object.fromEntries(entryColumns.map((column) => [column, 'text'])),
  ...Object.fromEntries(
    [
      ...['seq', 'amount', 'balance_after', 'input_tokens', 'cache_read_tokens', 'cache_write_tokens'],
      ...['cache_write_1h_tokens', 'output_tokens', 'reasoning_tokens', 'priced_calls', 'created_ms', 'posted_ms'],
    ].map((column) => [column, 'bigint']),
  ),
}

export type PostgresPlace = { url: string; shown: string }

/** @throws StoreError where it cannot be used, else what the driver throws. */
export async function openPostgresSource(place: PostgresPlace): Promise<CopySource> {
  const database = await open(place, refuseEmpty)
  return { ...readingEnd(database, place.shown), hold }

  async function hold<T>(work: (held: HeldSource) => Promise<T>): Promise<{ servers: string } | { result: T }> {
    const servers = await findServers(database)
    if (servers) return { servers }
    return database.transact(async (transaction) => {
      // What was broken off behind the move is closed already.
      await allowWriting(transaction)
      await transaction.query(
        `LOCK TABLE triwire.prices, triwire.balances, triwire.credits, triwire.entries, triwire.accounts, triwire.keys,
           triwire.head, triwire.replicas, triwire.operators, triwire.spends, triwire.outbox, triwire.made,
           triwire.audit IN SHARE ROW EXCLUSIVE MODE`,
      )
      const late = await findServers(transaction)
      if (late) return { servers: late }
      const held: HeldSource = {
        spooled: undefined,
        fixMoment: () => fixMoment(transaction),
        markMoved: (to) => closeStore(transaction, to),
      }
      return { result: await work(held) }
    })
  }
}

export async function openPostgresTarget(place: PostgresPlace): Promise<CopyTarget> {
  const database = await open(place)
  const { shown } = place
  return {
    ...readingEnd(database, shown),
    begin: (oldestMs) =>
      database.transact(async (transaction) => {
        await transaction.query('SELECT pg_advisory_xact_lock($1)', [locks.schema])
        const servers = await findServers(transaction)
        if (servers) throw new StoreError(`${servers} serve from ${shown}: stop them first, or name another database`)
        await closeStore(transaction, '')
        const months = Math.ceil((Date.now() - oldestMs) / monthMs) + 1
        await makePartitions(transaction, Math.max(1, Math.min(monthsBackMax, months)))
      }),
    addAccounts: (rows) =>
      writing(async ({ query }) => {
        await query(
          `WITH made AS (
             INSERT INTO triwire.accounts (id, name, state, revision, created_ms)
             SELECT a.id, ' ' || a.id, a.state, nextval('triwire.revisions'), a.created_ms
             FROM json_populate_recordset(NULL::triwire.accounts, $1) a ON CONFLICT (id) DO NOTHING RETURNING id)
           INSERT INTO triwire.balances (account_id) SELECT id FROM made`,
          [toJson(rows)],
        )
      }),
    addPrices: (rows) =>
      writing(async ({ query }) => {
        await query(
          `INSERT INTO triwire.prices SELECT p.* FROM json_populate_recordset(NULL::triwire.prices, $1) p
           ON CONFLICT (version) DO NOTHING`,
          [toJson(rows)],
        )
      }),
    addEntries: (rows) =>
      writing(async ({ query }) => {
        await query(addEntriesSql, [toJson(rows.map((row) => ({ ...row, id: idOf(row) })))])
      }),
    settle: async () => {
      await database.query('ANALYZE triwire.entries, triwire.balances, triwire.credits, triwire.accounts, triwire.keys')
    },
    write: (changed) => writing((transaction) => writeRegisters(transaction, changed)),
    setZone: (zone) => writing((transaction) => run(transaction, rezone(dialect, zone))),
    finish: () => database.transact(reopenStore),
  }

  function writing(work: (transaction: Transaction) => Promise<void>): Promise<void> {
    return database.transact(async (transaction) => {
      await allowWriting(transaction)
      await work(transaction)
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

function readingEnd(database: Database, shown: string): CopyEnd {
  return {
    shown,
    async readTails() {
      const rows = await database.query(
        'SELECT account_id, seq, balance, digest FROM triwire.balances ORDER BY account_id COLLATE "C"',
      )
      return rows.map(({ account_id, seq, balance, digest }) => ({
        accountId: account_id as string,
        seq: Number(seq),
        balanceNanos: balance as bigint,
        digest: digest as string | null,
      }))
    },
    readEntries: (ranges) => readEntries(database, ranges),
    readRegisters: () => readRegisters(database),
    async count() {
      const [row] = await database.query(
        `SELECT (SELECT count(*) FROM triwire.entries) AS entries, (SELECT sum(seq) FROM triwire.balances) AS numbered,
           (SELECT count(*) FROM triwire.credits) AS "references"`,
      )
      return {
        entries: Number(row!['entries']),
        numbered: Number(row!['numbered'] ?? 0),
        references: Number(row!['references']),
      }
    },
    async readOldestMs() {
      const [row] = await database.query('SELECT min(posted_ms) AS oldest FROM triwire.entries')
      return row!['oldest'] === null ? undefined : Number(row!['oldest'])
    },
    async readZone() {
      const state = await run(database, readUsageState(dialect))
      return isRecorded(state) ? state : undefined
    },
    readMoved: () => readMoved(database),
    close: () => database.close(),
  }
}

/** One look into the index for each range, whatever the planner knows of the table. */
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

async function readRegisters({ query }: Database): Promise<Registers> {
  const read = (name: keyof typeof registerColumns) =>
    query(`SELECT ${registerColumns[name].join(', ')} FROM triwire.${name}`)
  const [head] = await query('SELECT moment_ms FROM triwire.head')
  return {
    accounts: await read('accounts'),
    keys: await read('keys'),
    prices: await read('prices'),
    operators: await read('operators'),
    spends: await read('spends'),
    outbox: await read('outbox'),
    made: await read('made'),
    audit: await read('audit'),
    headMs: Number(head?.['moment_ms'] ?? 0),
  }
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
  UPDATE triwire.balances b SET balance = t.balance_after, seq = t.seq, posted_ms = t.posted_ms, digest = t.digest
    FROM (SELECT DISTINCT ON (account_id) account_id, balance_after, seq, posted_ms, digest FROM given
          ORDER BY account_id, seq DESC) t
    WHERE b.account_id = t.account_id`

async function writeRegisters(
  { query }: Transaction,
  { accounts, keys, operators, audit, headMs, ...whole }: ChangedRegisters,
): Promise<void> {
  const ids = accounts.map(({ id }) => id)
  // Names that were exchanged are in nobody's way: no name begins with a blank.
  await query(`UPDATE triwire.accounts SET name = ' ' || id WHERE id = ANY ($1::text[])`, [ids])
  await query(
    `UPDATE triwire.accounts a SET name = n.name, state = n.state, revision = nextval('triwire.revisions')
     FROM json_populate_recordset(NULL::triwire.accounts, $1) n WHERE a.id = n.id`,
    [toJson(accounts)],
  )
  await query(
    `INSERT INTO triwire.operators SELECT o.* FROM json_populate_recordset(NULL::triwire.operators, $1) o
     ON CONFLICT (id) DO UPDATE SET revoked_ms = excluded.revoked_ms`,
    [toJson(operators)],
  )
  await query(
    `INSERT INTO triwire.audit SELECT a.* FROM json_populate_recordset(NULL::triwire.audit, $1) a
     ON CONFLICT (seq) DO NOTHING`,
    [toJson(audit)],
  )
  await query(
    `INSERT INTO triwire.keys SELECT k.* FROM json_populate_recordset(NULL::triwire.keys, $1) k
     ON CONFLICT (id) DO UPDATE SET label = excluded.label, expires_ms = excluded.expires_ms,
       revoked_ms = excluded.revoked_ms, last_used_ms = excluded.last_used_ms, scope = excluded.scope,
       own_expires_ms = excluded.own_expires_ms, budget = excluded.budget, budget_per = excluded.budget_per,
       rpm = excluded.rpm, models = excluded.models`,
    [toJson(keys)],
  )
  for (const name of replacedRegisters) {
    await query(`DELETE FROM triwire.${name}`)
    await query(`INSERT INTO triwire.${name} SELECT r.* FROM json_populate_recordset(NULL::triwire.${name}, $1) r`, [
      toJson(whole[name]),
    ])
  }
  await query(
    `INSERT INTO triwire.head (moment_ms) VALUES ($1)
     ON CONFLICT (one) DO UPDATE SET moment_ms = greatest(head.moment_ms, excluded.moment_ms)`,
    [headMs],
  )
}

/** Those that are alive, by their names, in words; undefined where there are none. */
async function findServers({ query }: Pick<Database, 'query'>): Promise<string | undefined> {
  const rows = await query(
    `SELECT r.name FROM triwire.replicas r LEFT JOIN triwire.present p ON p.replica = r.id
     WHERE r.left_ms IS NULL AND CASE WHEN p.replica IS NULL THEN r.seen_ms > triwire.now_ms() - ${tellingMs}
       ELSE p.seen_ms > triwire.now_ms() - ${leaseMs} END ORDER BY r.id`,
  )
  return rows.length === 0 ? undefined : `the servers ${rows.map(({ name }) => name).join(', ')}`
}

/**
 * A credit has no request whose id it could have, and its id no meaning but the month: made of the reference, a second try
 * makes the same.
 */
function idOf(row: RegisterRow): string {
  if (row['kind'] === 'debit') return entryIdOf(row['request_id'] as string)
  const digest = hash('sha256', row['reference'] as string)
  const time = Number(row['posted_ms']).toString(16).padStart(12, '0')
  return `${time}7${digest.slice(0, 3)}8${digest.slice(3, 18)}`
}

/** Integers of 64 bits as texts, for no number of JSON holds them. */
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
