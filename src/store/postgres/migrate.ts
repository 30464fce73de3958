import { sha256Hex } from '../../ids.ts'
import { StoreError } from '../files/store-error.ts'
import { type Database, marker, type Transaction } from './database.ts'
import { migrations, type PostgresMigration } from './schema.ts'
import { sayPooler } from './trouble.ts'

/**
 * The numbers of our advisory locks. They lock the schema, operators' changes, and the posting of entries (ruling C15).
 */
export const locks = { schema: 7_411_001, operators: 7_411_002, head: 7_411_003, copy: 7_411_004 } as const

/** The `server_version_num` of the oldest supported PostgreSQL. */
const oldestServer = 140_000

/** How many months ahead to create partitions. */
const monthsAhead = 3

/**
 * How long a migration (`lockMs`) and the creation of partitions wait for a lock on a table in use, in ms. During the
 * wait, all later statements on the table wait too, even debits. A dump or a forgotten transaction may keep a lock for
 * hours.
 */
const [lockMs, partitionLockMs] = [1_000, 200]

/**
 * Upgrades the schema and installs the functions. If two servers start at the same time, one waits for the other.
 * @param shown the store's URL without its password
 * @throws StoreError if the database cannot be used; anything else if it cannot be reached
 */
export async function migrate(
  database: Database,
  shown: string,
  functions: readonly SqlFunction[],
  steps: readonly PostgresMigration[] = migrations,
): Promise<void> {
  await refuseServer(database, shown)
  await database.transact(async (transaction) => {
    const { query } = transaction
    await query('SELECT pg_advisory_xact_lock($1)', [locks.schema])
    await query('CREATE SCHEMA IF NOT EXISTS triwire')
    await query('CREATE TABLE IF NOT EXISTS triwire.schema (version integer NOT NULL, oldest integer NOT NULL)')
    const [row] = await query('SELECT version, oldest FROM triwire.schema')
    const { version, oldest } = (row as { version: number; oldest: number } | undefined) ?? { version: 0, oldest: 0 }
    if (oldest > steps.length) {
      throw new StoreError(
        `${shown} has schema version ${version}, which needs a triwire that knows version ${oldest} or later, and this one knows ${steps.length}: run the newer triwire`,
      )
    }
    if (version < steps.length) {
      await query(`SELECT set_config('lock_timeout', '${lockMs}', true)`)
      await climb(transaction, steps, { version, oldest })
    }
    await makePartitions(transaction)
    await installFunctions(transaction, functions)
  })
}

async function climb(
  { query }: Transaction,
  steps: readonly PostgresMigration[],
  { version, oldest }: { version: number; oldest: number },
): Promise<void> {
  for (const { sql } of steps.slice(version)) await query(sql)
  await query('DELETE FROM triwire.schema')
  await query('INSERT INTO triwire.schema (version, oldest) VALUES ($1, $2)', [
    steps.length,
    // `oldest` is never lowered. It is higher already if the ledger has entries of form 3, which older versions cannot
    // read.
    Math.max(oldest, ...steps.map((step) => step.oldest)),
  ])
}

/**
 * Creates partitions for the coming months of the ledger. It is called at the start, and regularly by a running server.
 * The caller holds the lock of the schema.
 *
 * If a wrong clock has put entries of a month into the default partition, that month stays there, which does no harm.
 * If a long statement reads the ledger, this call creates no partitions, and the next call tries again.
 * @param monthsBack the number of past months that also get a partition
 */
export async function makePartitions({ query }: Transaction, monthsBack = 1): Promise<void> {
  await query(`
    DO $$
    DECLARE month timestamp; name text;
    BEGIN
      PERFORM set_config('lock_timeout', '${partitionLockMs}', true);
      FOR n IN ${-Math.trunc(monthsBack)} .. ${monthsAhead} LOOP
        month := date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC') + make_interval(months => n);
        name := 'entries_' || to_char(month, 'YYYY_MM');
        CONTINUE WHEN to_regclass('triwire.' || name) IS NOT NULL;
        BEGIN
          EXECUTE format('CREATE TABLE triwire.%I PARTITION OF triwire.entries FOR VALUES FROM (%L) TO (%L)', name,
            triwire.uuid_floor(month AT TIME ZONE 'UTC'), triwire.uuid_floor((month + interval '1 month') AT TIME ZONE 'UTC'));
          EXECUTE format('CREATE TRIGGER entries_are_not_emptied BEFORE TRUNCATE ON triwire.%I
            FOR EACH STATEMENT EXECUTE FUNCTION triwire.refuse_change(%L)', name, 'ledger entries');
        EXCEPTION
          WHEN check_violation THEN NULL;
          WHEN lock_not_available THEN EXIT;
        END;
      END LOOP;
    END $$`)
}

/** Throws if the database has no store. @throws StoreError */
export async function refuseEmpty({ query }: Database, shown: string): Promise<void> {
  const [row] = await query(`SELECT to_regclass('triwire.schema') IS NOT NULL AS is_there`)
  if (!row!.is_there)
    throw new StoreError(`There is no store in ${shown}: name the right database, or create an account`)
}

async function refuseServer({ query }: Database, shown: string): Promise<void> {
  const [row] = await query(
    `SELECT current_setting('server_version_num')::int AS number, current_setting('server_version') AS version,
            current_setting('server_encoding') AS encoding, current_setting('${marker}', true) AS heard`,
  )
  const { number, version, encoding, heard } = row as Record<'version' | 'encoding', string> & {
    number: number
    heard: string | null
  }
  if (number < oldestServer) throw new StoreError(`${shown} is PostgreSQL ${version}: use version 14 or later`)
  if (encoding !== 'UTF8')
    throw new StoreError(
      `${shown} stores text in ${encoding}: use a database made with ENCODING 'UTF8' (createdb -E UTF8 -T template0 …)`,
    )
  if (heard !== 'on') throw new StoreError(sayPooler(shown))
}

/**
 * A function in the database. Its name contains the digest of its text, so two versions of the program can run side by
 * side.
 */
export type SqlFunction = {
  /** The name with the schema, as calls use it. */
  name: string
  create: string
}

/** Defines a function. @param parts the text of CREATE FUNCTION after the name: parameters, result, language, body */
export function defineFunction(name: string, parts: string): SqlFunction {
  const unique = `triwire.${name}_${sha256Hex(parts).slice(0, 10)}`
  return { name: unique, create: `CREATE FUNCTION ${unique}${parts}` }
}

/** Calls a function. Each connection parses and plans the call only once. @returns the function's result */
export async function call<T>(
  { query }: Pick<Transaction, 'query'>,
  { name }: SqlFunction,
  values: readonly unknown[],
): Promise<T> {
  const places = values.map((_, at) => `$${at + 1}`)
  const [row] = await query(`SELECT ${name}(${places.join(', ')}) AS result`, values, name)
  return row!['result'] as T
}

/** Creates missing functions. The caller holds the lock of the schema, so two sessions never create the same one. */
export async function installFunctions({ query }: Transaction, functions: readonly SqlFunction[]): Promise<void> {
  const rows = await query(
    `SELECT 'triwire.' || proname AS name FROM pg_proc WHERE pronamespace = 'triwire'::regnamespace`,
  )
  const there = new Set(rows.map(({ name }) => name))
  for (const { name, create } of functions) if (!there.has(name)) await query(create)
}
