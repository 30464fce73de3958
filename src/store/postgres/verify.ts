import type { Audited, VerifyOptions } from '../../accounts/entries.ts'
import { isAwaySql } from '../sql/archives.ts'
import type { SliceSizes } from '../sql/listing.ts'
import { checkMoment, takeMoment } from '../sql/moments.ts'
import type { Row } from '../sql/step.ts'
import { type VerifyDialect, verifyLedger } from '../sql/verify.ts'
import type { Database } from './database.ts'
import { locks } from './migrate.ts'
import { dialect, entryIdOf, run } from './run.ts'
import { findForeignSchema } from './verify-schema.ts'

/** The name of the ledger's place, for people. */
const place = 'the database'

/** The most rows of the default partition (entries of months without a partition) that are counted. */
const countMax = 10_000

/** SQL: whether the entry that `e`, a row of the table `credits`, points to is in a detached archive. */
const isArchivedAway = `EXISTS (SELECT FROM triwire.archived i JOIN triwire.archives x ON x.month = i.month AND ${isAwaySql}
  WHERE i.id = e.entry_id)`

const verified: Omit<VerifyDialect, 'pageMax'> = {
  lowestId: '00000000-0000-0000-0000-000000000000',
  ends: {
    columns: 'b.balance AS end_balance, b.seq AS end_seq, b.digest AS end_digest, c.entry_id AS referred_id',
    joins: `LEFT JOIN triwire.balances b ON b.account_id = e.account_id
      LEFT JOIN triwire.credits c ON c.reference = e.reference`,
  },
  references: {
    table: 'triwire.credits',
    columns: `e.reference AS noted, e.entry_id, entry.*, ${isArchivedAway} AS archived`,
    joins: 'LEFT JOIN triwire.entries entry ON entry.id = e.entry_id',
    order: ['reference'],
  },
  archived: {
    table: { table: 'triwire.archived', columns: 'e.*', order: ['id'] },
    first: ['00000000-0000-0000-0000-000000000000'],
  },
  accounts: {
    table: 'triwire.accounts',
    columns: 'e.id, b.balance, b.seq',
    joins: 'LEFT JOIN triwire.balances b ON b.account_id = e.id',
    order: ['id'],
  },
  findWrong: findRepeatable,
}

/**
 * Verifies the ledger, and makes a head: a digest that proves all entries up to a moment. Posts share a lock. The
 * moment is taken while this transaction holds the lock alone, so that no post runs. Later entries are posted after the
 * moment.
 */
export async function audit(database: Database, options: VerifyOptions, sizes: SliceSizes): Promise<Audited> {
  const { findings, momentMs } = await database.transact(async (transaction) => {
    await transaction.query('SELECT pg_advisory_xact_lock($1)', [locks.head])
    const findings = await run(transaction, checkMoment(dialect, place))
    return { findings, momentMs: await run(transaction, takeMoment(dialect)) }
  })
  return readLedger(database, options, sizes, findings, momentMs)
}

/** Verifies the ledger. @returns the findings as sentences */
export async function verify(database: Database, options: VerifyOptions, sizes: SliceSizes): Promise<string[]> {
  return (await readLedger(database, options, sizes, await run(database, checkMoment(dialect, place)))).findings
}

async function readLedger(
  database: Database,
  options: VerifyOptions,
  { verifyMax: pageMax }: SliceSizes,
  findings: string[],
  momentMs?: number,
): Promise<Audited> {
  findings.push(...(await findForeignSchema(database, place)))
  const ledger = { options, findings, momentMs }
  const audited = await run(database, verifyLedger(dialect, { ...verified, pageMax }, ledger))
  const notes = await findUndated(database)
  return notes.length > 0 ? { ...audited, notes } : audited
}

/** Finds damage that would allow the same debit or credit to be posted again. */
function* findRepeatable(row: Row): Iterable<string> {
  const { id, kind, request_id, reference, referred_id } = row
  if (kind === 'debit' && (id as string).replaceAll('-', '') !== entryIdOf(String(request_id)))
    yield `request ${request_id}: has not the id of its request, and may be booked more than once`
  if (kind === 'credit' && referred_id !== id)
    yield `reference ${reference}: ${referred_id ? 'is booked more than once' : 'is not noted as booked'}`
}

/**
 * Finds entries of months without a partition. They are in the default partition, and neither lost nor forged. But an
 * operator who removes the partitions of old months should know that these entries stay.
 * @returns at most one sentence
 */
async function findUndated({ query }: Database): Promise<string[]> {
  const [row] = await query(
    `SELECT count(*) AS n, min(request_id) AS first FROM
       (SELECT request_id FROM triwire.entries_default WHERE id < 'f0000000-0000-0000-0000-000000000000' LIMIT ${countMax}) e`,
  )
  const { n, first } = row as { n: bigint; first: string | null }
  if (n === 0n) return []
  const count = n === BigInt(countMax) ? `${n} or more` : `${n}`
  return [
    `${count} entries are in the default partition${first === null ? '' : `, ${first} among them`}: the clock of who made their ids was months from ours`,
  ]
}
