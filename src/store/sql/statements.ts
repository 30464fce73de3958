import { findAway, type Seal } from '../../accounts/archive.ts'
import { formatHead, HeadHash } from '../../accounts/chain.ts'
import { readPrices } from '../../accounts/entry-row.ts'
import type { StatementHeader, StatementMonth, StatementSums } from '../../accounts/statement.ts'
import { sumColumns } from '../../accounts/usage/rollup.ts'
import { findSealOf, isAwaySql, monthsAway, readArchives, refuseAway } from './archives.ts'
import { type Dialect, insertAll, isOneOf, type Put } from './dialect.ts'
import { countedMs } from './entries.ts'
import { closeMonth, readMoved } from './moments.ts'
import { readLastSeq } from './spends.ts'
import { ask, askOne, inSnapshot, inTransaction, type Row, runAll, type StoreStep } from './step.ts'
import { selectSummed } from './usage.ts'
import { slices } from './words.ts'

/** The most accounts that one statement reads for a head (a digest of all entries). */
const accountsMax = 1_000

/** The most entries that one query sums, because PostgreSQL ends a query that takes too long. */
export const summedMax = 5_000

/** Creates the queries for monthly statements: sums, heads (digests) of past moments, and stored headers. */
export function createStatements(dialect: Dialect) {
  const { schema, ends, isShared } = dialect
  // An entry counts at its posting time, or at the time that a correction gave it (ruling C15).
  const countsAt = countedMs(schema)
  return {
    sumMonth: (month: StatementMonth) => inSnapshot(sumMonth(month)),
    makeHead: (momentMs: number) => inSnapshot(makeHead(momentMs)),
    closeMonth: (untilMs: number, expectedMs?: number) => inTransaction(closeMonth(dialect, untilMs, expectedMs)),
    ...createHeaders(dialect),
  }

  function* sumMonth({ accountId, fromMs, toMs }: StatementMonth): StoreStep<StatementSums> {
    yield* refuseAway(dialect, fromMs, toMs)
    const before = yield* findLast(accountId, fromMs)
    const last = yield* findLast(accountId, toMs)
    const [opening, closing] = [yield* readEnd(accountId, before), yield* readEnd(accountId, last)]
    const groups = new Map<string, VersionedGroup>()
    const credits: Row[] = []
    for (let from = before; from < last; from += summedMax) {
      const range = (put: Put) => `e.account_id = ${put(accountId)} AND e.seq > CAST(${put(from)} AS bigint)
        AND e.seq <= CAST(${put(Math.min(from + summedMax, last))} AS bigint)`
      const select = (put: Put) =>
        selectSummed(schema, `${schema}.entries e`, range(put), ['e.kind', 'e.price_version'])
      for (const row of yield* ask(dialect, select)) addGroup(groups, row)
      const selectCredits = (
        put: Put,
      ) => `SELECT ${countsAt} AS posted_ms, e.reference, e.amount FROM ${schema}.entries e
        WHERE ${range(put)} AND e.kind = 'credit' AND e.usage_source IS NULL ORDER BY e.seq`
      credits.push(...(yield* ask(dialect, selectCredits)))
    }
    const found = [...groups.values()]
    const versions = [...new Set(found.flatMap(({ version }) => version ?? []))]
    const prices = new Map<string, ReturnType<typeof readPrices>>()
    for (const list of slices(versions)) {
      const select = (put: Put) => `SELECT * FROM ${schema}.prices WHERE ${isOneOf(put, 'version', list)}`
      for (const row of yield* ask(dialect, select)) prices.set(row['version'] as string, readPrices(row))
    }
    return {
      openingNanos: opening.balanceNanos,
      closingNanos: closing.balanceNanos,
      digest: closing.digest,
      entries: last > before ? { from: before + 1, to: last } : undefined,
      credits: credits.map((row) => ({
        postedMs: Number(row['posted_ms']),
        reference: row['reference'] as string,
        amountNanos: row['amount'] as bigint,
      })),
      groups: found.map(({ group, version }) => ({ ...group, prices: prices.get(version!) })),
    }
  }

  /** Finds the number of the account's last entry before a time. The times of an account's entries never go back. */
  function* findLast(accountId: string, ms: number): StoreStep<number> {
    let [low, high] = [0, yield* readLastSeq(dialect, accountId)]
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      const entry = yield* readEnd(accountId, middle)
      if (entry.postedMs < ms) low = middle
      else high = middle - 1
    }
    return low
  }

  function* readEnd(accountId: string, seq: number) {
    const row = yield* askOne(
      dialect,
      (put) => `SELECT ${countsAt} AS posted_ms, e.balance_after, e.digest FROM ${schema}.entries e
        WHERE e.account_id = ${put(accountId)} AND e.seq = ${put(seq)}`,
    )
    // For an archived entry, its seal is read. A seal stands for the entries of an account in an archive. The requested
    // month is in no archive, so a seal lies completely before or after the month.
    const seal = row ?? (seq === 0 ? undefined : yield* findSealOf(dialect, accountId, seq))
    if (seal && 'lastDigest' in seal) {
      const { postedMs, balanceNanos, lastDigest } = seal as Seal
      return { postedMs, balanceNanos, digest: lastDigest }
    }
    return {
      postedMs: Number(row?.['posted_ms'] ?? 0),
      balanceNanos: (row?.['balance_after'] ?? 0n) as bigint,
      digest: (row?.['digest'] ?? null) as string | null,
    }
  }

  /**
   * Makes the head (a digest of all entries) of a past moment, for `ledger verify --against`. As in `HeadHash`, a
   * correction counts from its creation. It is found by the table `shifted`, which has the correction itself too.
   */
  function* makeHead(momentMs: number): StoreStep<string> {
    const away = findAway(yield* readArchives(dialect)).filter(({ untilMs }) => momentMs < untilMs)
    if (away.length > 0) throw monthsAway(away)
    const hash = new HeadHash(momentMs)
    for (let after = ''; ; ) {
      const rows = yield* ask(
        dialect,
        (
          put,
        ) => `SELECT a.account_id, (SELECT l.digest FROM (SELECT * FROM (SELECT e.seq, e.digest FROM ${schema}.entries e
            WHERE e.account_id = a.account_id AND e.posted_ms <= CAST(${put(momentMs)} AS bigint) ORDER BY e.seq DESC LIMIT 1) e
            UNION ALL SELECT * FROM (SELECT e.seq, e.digest FROM ${schema}.shifted s
              JOIN ${schema}.entries e ON e.account_id = s.account_id AND e.seq = s.seq AND e.posted_ms = s.posted_ms
              WHERE s.account_id = a.account_id AND e.kind = 'credit' AND e.effective IS NOT NULL
                AND e.created_ms <= CAST(${put(momentMs)} AS bigint) ORDER BY s.seq DESC LIMIT 1) c
            UNION ALL SELECT s.to_seq, s.last_digest FROM ${schema}.seals s JOIN ${schema}.archives x ON x.month = s.month AND ${isAwaySql}
            WHERE s.account_id = a.account_id) l ORDER BY l.seq DESC LIMIT 1) AS digest
          FROM ${ends} a
          WHERE a.account_id > ${put(after)} ${isShared ? 'AND a.seq > 0' : ''} ORDER BY a.account_id LIMIT ${accountsMax}`,
      )
      for (const { account_id: id, digest } of rows)
        if (digest !== null) hash.note(id as string, momentMs, digest as string)
      if (rows.length < accountsMax) return formatHead(hash.end())
      after = rows.at(-1)!['account_id'] as string
    }
  }
}

/** Creates the queries of statement headers, which are stored after a month has closed. */
function createHeaders(dialect: Dialect) {
  const { schema } = dialect
  return {
    findHead,
    readHeader,
    keepHeader: (accountId: string, month: string, header: StatementHeader) =>
      inTransaction(keepHeader(accountId, month, header)),
  }

  /**
   * Reads the head (a digest of all entries) in the stored statements of a month. All statements of a month have the
   * same head.
   */
  function* findHead(month: string, timeZone: string): StoreStep<string | undefined> {
    const row = yield* askOne(
      dialect,
      (put) => `SELECT header FROM ${schema}.statements WHERE month = ${put(month)} LIMIT 1`,
    )
    const header = row && (JSON.parse(row['header'] as string) as StatementHeader)
    return header?.timeZone === timeZone ? header.head : undefined
  }

  function* readHeader(accountId: string, month: string): StoreStep<StatementHeader | undefined> {
    const of = (put: Put) => `account_id = ${put(accountId)} AND month = ${put(month)}`
    const row = yield* askOne(dialect, (put) => `SELECT header FROM ${schema}.statements WHERE ${of(put)}`)
    if (!row) return undefined
    const people = yield* ask(
      dialect,
      (put) => `SELECT person, counts_as, name FROM ${schema}.statement_people WHERE ${of(put)}`,
    )
    const persons = people.map((one): [string, { id: string; name: string }] => [
      one['person'] as string,
      { id: one['counts_as'] as string, name: one['name'] as string },
    ])
    return { ...JSON.parse(row['header'] as string), persons }
  }

  /**
   * Stores the header, unless the store has a header for this month or was moved. Names of people are in their own
   * table, because they can be erased (ruling Y21). A person may have been erased since the header was made.
   * @returns the stored header
   */
  function* keepHeader(accountId: string, month: string, header: StatementHeader): StoreStep<StatementHeader> {
    const kept = yield* readHeader(accountId, month)
    if (kept) return kept
    if (yield* readMoved(dialect)) return header
    const { persons, ...rest } = header
    const row = [accountId, month, JSON.stringify(rest)]
    const present = yield* findPresent(persons.map(([person]) => person))
    const people = persons.flatMap(([person, { id, name }]) =>
      present.has(person) ? [[accountId, month, person, id, name]] : [],
    )
    const ignore = 'ON CONFLICT DO NOTHING'
    yield* runAll(insertAll(dialect, 'statements', ['account_id', 'month', 'header'], [row], ignore))
    const columns = ['account_id', 'month', 'person', 'counts_as', 'name']
    yield* runAll(insertAll(dialect, 'statement_people', columns, people, ignore))
    return (yield* readHeader(accountId, month))!
  }

  /** Finds those of these people who are not erased. On PostgreSQL, they are not erased until the transaction ends. */
  function* findPresent(ids: readonly string[]): StoreStep<ReadonlySet<string>> {
    const present = new Set<string>()
    for (const list of slices(ids)) {
      const select = (
        put: Put,
      ) => `SELECT id FROM ${schema}.persons WHERE erased_ms IS NULL AND ${isOneOf(put, 'id', list)}
        ORDER BY id ${dialect.isShared ? 'FOR SHARE' : ''}`
      for (const { id } of yield* ask(dialect, select)) present.add(id as string)
    }
    return present
  }
}

/** A group and its version of prices. @property version null for a group of credits that reverse debits */
type VersionedGroup = { version: string | null; group: ReturnType<typeof readGroup> }

/**
 * Adds the sums of a row to the group that has the same text fields and the same version of prices. A missing group is
 * created.
 */
function addGroup(groups: Map<string, VersionedGroup>, row: Row): void {
  const group = readGroup(row)
  const { amountNanos, requests, tokens, ...words } = group
  const version = row['price_version'] as string | null
  const place = JSON.stringify([version, words])
  const known = groups.get(place)?.group
  if (known) {
    known.amountNanos += amountNanos
    known.requests += requests
    for (const [at, count] of tokens.entries()) known.tokens[at]! += count
  } else groups.set(place, { version, group })
}

function readGroup(row: Row) {
  const text = (column: string) => (row[column] as string | null) ?? ''
  const [cost, requests, ...tokens] = ['cost', ...sumColumns.slice(0, -1)].map((name) =>
    BigInt(row[name] as bigint | string),
  )
  return {
    isReturn: row['kind'] === 'credit',
    keyId: text('key_id'),
    model: text('model'),
    tier: text('tier'),
    band: text('band'),
    person: text('person'),
    labels: text('labels'),
    amountNanos: cost!,
    requests: requests!,
    tokens,
  }
}
