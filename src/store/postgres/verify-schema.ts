import { randomText } from '../../ids.ts'
import { readMoved } from '../sql/moments.ts'
import type { Database, Transaction } from './database.ts'
import { closeStore } from './moved.ts'
import { postFunctions } from './post.ts'
import { dialect, run } from './run.ts'
import { archiveGuards, migrations } from './schema.ts'

/**
 * Checks that the guards of the ledger exist unchanged (ruling C15). Guards are the tables with their constraints and
 * partitions, the enabled triggers, and the functions that these triggers call. A foreign trigger or rule is a finding,
 * because it may change rows. Additional indexes, views, tables and functions are allowed.
 * @param place the name of the ledger in the findings
 * @returns the findings as sentences
 */
export async function findForeignSchema(database: Database, place: string): Promise<string[]> {
  const [row] = await database.query('SELECT version FROM triwire.schema')
  const version = row?.version as number | undefined
  if (version === undefined || version > migrations.length)
    return [
      `${place}: its schema has version ${version ?? 'none'}, which cannot be compared here: run the newer triwire`,
    ]
  const theirs = new Map(await database.transact((transaction) => readSchema(transaction, 'triwire')))
  const isMoved = (await run(database, readMoved(dialect))) !== undefined
  const isArchived =
    (await database.query('SELECT FROM triwire.archives LIMIT 1')).length > 0 || theirs.has(archiveGuard)
  const ours = await readOurSchema(database, { isMoved, isArchived })
  const findings: string[] = []
  for (const [name, definition] of withMonths(ours, theirs)) {
    const found = theirs.get(name)
    if (found === undefined) findings.push(`${place}: ${name} is missing`)
    else if (found !== definition) findings.push(`${place}: ${name} is not as triwire made it`)
    theirs.delete(name)
  }
  for (const name of theirs.keys())
    if (/^(trigger|rule) /.test(name)) findings.push(`${place}: ${name} is not triwire's`)
  return findings
}

/** The trigger that a ledger gets with its first archive. */
const archiveGuard = 'trigger archived_entries_are_not_repeated on entries'

/** The SQL definition of each object of a schema. A key is the kind and the name of the object. */
type MadeObjects = ReadonlyMap<string, string>

const defaultMonth = 'entries_default'

/**
 * Adds the objects that each monthly partition of the store must have. They are copies of the default partition's
 * objects.
 */
function withMonths(ours: MadeObjects, theirs: MadeObjects): MadeObjects {
  const all = new Map(ours)
  const months = [...theirs.keys()].flatMap((name) => /^table (entries_\d{4}_\d\d)$/.exec(name)?.[1] ?? [])
  for (const month of months)
    for (const [name, definition] of ours)
      if (name.endsWith(` ${defaultMonth}`))
        all.set(name.replace(defaultMonth, month), definition.replaceAll(defaultMonth, month))
  return all
}

/** The schemas that triwire makes, by database version and state of the store. Definitions differ in each version. */
const ourSchemas = new Map<string, MadeObjects>()

/** Facts that change the schema of a store. @property isArchived whether a month was ever detached as an archive */
type StoreLife = { isMoved: boolean; isArchived: boolean }

/** Returns our schema. It is kept for each server version and state, since making it takes a hundred statements. */
async function readOurSchema(database: Database, life: StoreLife): Promise<MadeObjects> {
  const [row] = await database.query('SHOW server_version')
  const key = JSON.stringify([row, life])
  const schema = ourSchemas.get(key) ?? (await makeOurSchema(database, life))
  ourSchemas.set(key, schema)
  return schema
}

/** Makes our schema by running the migrations under another schema name, in a transaction that is rolled back. */
async function makeOurSchema(database: Database, { isMoved, isArchived }: StoreLife): Promise<MadeObjects> {
  const name = `triwire_${randomText(10).toLowerCase()}`
  let schema: MadeObjects = new Map()
  const undo = new Error('this schema was only to be looked at')
  await database
    .transact(async (transaction) => {
      await transaction.query(`CREATE SCHEMA ${name}`)
      for (const { sql } of migrations) await transaction.query(sql.replace(/\btriwire\b/g, name))
      for (const { create } of postFunctions) await transaction.query(create.replace(/\btriwire\b/g, name))
      if (isArchived) await transaction.query(archiveGuards.replace(/\btriwire\b/g, name))
      if (isMoved)
        await closeStore(
          { query: (sql, values) => transaction.query(sql.replace(/\btriwire\b/g, name), values) },
          'elsewhere',
        )
      schema = await readSchema(transaction, name)
      throw undo
    })
    .catch((error) => {
      if (error !== undo) throw error
    })
  return schema
}

/** Reads the definitions of the objects in `schema`. In them, the name of `schema` is replaced by `triwire`. */
async function readSchema({ query }: Transaction, schema: string): Promise<MadeObjects> {
  // PostgreSQL leaves out the name of a schema in its definitions if the schema is in the search path. The default path
  // has a schema with the user's name, which may be ours.
  await query('SET LOCAL search_path = pg_catalog')
  // Our schema and the store's schema are read with the same settings, whatever the defaults of database and user are.
  await query('SET LOCAL quote_all_identifiers = off; SET LOCAL DateStyle = ISO; SET LOCAL IntervalStyle = postgres')
  await query('SET LOCAL TimeZone = UTC; SET LOCAL bytea_output = hex')
  const rows = await query(catalog, [schema])
  return new Map(
    rows.map(({ name, definition }) => [name as string, (definition as string).replaceAll(`${schema}.`, 'triwire.')]),
  )
}

const catalog = `
  WITH tables AS (
    SELECT c.* FROM pg_class c
    WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND c.relkind IN ('r', 'p')
  ), columns AS (
    SELECT a.attrelid AS oid, string_agg(concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod),
        (SELECT collname FROM pg_collation WHERE oid = a.attcollation), CASE WHEN a.attnotnull THEN 'not null' END,
        nullif(a.attidentity, ''), nullif(a.attgenerated, ''), pg_get_expr(d.adbin, d.adrelid)), ', ' ORDER BY a.attnum) AS text
    FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid IN (SELECT oid FROM tables) AND a.attnum > 0 AND NOT a.attisdropped GROUP BY a.attrelid
  ), constraints AS (
    SELECT conrelid AS oid, string_agg(pg_get_constraintdef(oid) || CASE WHEN convalidated THEN '' ELSE ' not valid' END, ', '
        ORDER BY pg_get_constraintdef(oid)) AS text
    FROM pg_constraint WHERE conrelid IN (SELECT oid FROM tables) GROUP BY conrelid
  )
  SELECT 'table ' || t.relname AS name, concat_ws('; ', t.relkind, t.relpersistence, t.relispartition, t.relrowsecurity,
      t.relforcerowsecurity, t.relreplident, columns.text, constraints.text) AS definition
    FROM tables t LEFT JOIN columns USING (oid) LEFT JOIN constraints USING (oid)
  UNION ALL
  SELECT format('trigger %s on %s', g.tgname, t.relname), concat_ws('; ', pg_get_triggerdef(g.oid), g.tgenabled)
    FROM pg_trigger g JOIN tables t ON t.oid = g.tgrelid WHERE NOT g.tgisinternal OR g.tgparentid <> 0
  UNION ALL
  SELECT format('rule %s on %s', r.rulename, t.relname), pg_get_ruledef(r.oid)
    FROM pg_rewrite r JOIN tables t ON t.oid = r.ev_class
  UNION ALL
  SELECT 'function ' || p.proname, pg_get_functiondef(p.oid)
    FROM pg_proc p WHERE p.pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND p.prokind = 'f'
  ORDER BY 1`
