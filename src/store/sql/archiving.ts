import { type Archive, type ArchivedEntry, isAway, type Seal, type SealedSums } from '../../accounts/archive.ts'
import { BookError } from '../../accounts/book-error.ts'
import { type Act, auditRow, type Trail } from '../../accounts/trail.ts'
import { sumColumns } from '../../accounts/usage/rollup.ts'
import { readArchives, readSeal } from './archives.ts'
import { make } from './books.ts'
import { type Dialect, insert, insertAll, type Put, type SqlValue, update } from './dialect.ts'
import { countedMs } from './entries.ts'
import { readNowMs } from './moments.ts'
import { ask, askOne, inTransaction, type Row, runAll, type StoreStep } from './step.ts'

/* Steps (queries and changes that both databases can run) that detach and attach months. */

/** A range of entries of one account, from one entry number to another. */
export type SealRange = { accountId: string; fromSeq: number; toSeq: number }

/**
 * The plan to archive a month: the ranges of entries that go into the archive.
 * @property fromMs the time of the oldest entry in these ranges
 * @property olderMs the time of the oldest entry that belongs in an archive of an earlier month; undefined if there is
 * no such entry
 * @property unfolded the first account with entries that the figures for reports do not include yet
 */
export type ArchivePlan = {
  ranges: SealRange[]
  fromMs: number
  olderMs: number | undefined
  unfolded: string | undefined
}

/** The most accounts in one statement. */
const accountsMax = 500

/**
 * Finds the entries of each account that are dated before the end of a month and are in no archive. The last entry, the
 * last monthly grant and all entries after the grant stay in the store. The account's next entries are computed from
 * them (rulings C15, Y20).
 * @param archivedMs the end of the last archived month. The plan's `olderMs` considers only entries after that time
 * @param isAll whether to include entries that stayed when earlier months were archived
 */
export function* planArchive(
  dialect: Dialect,
  { fromMs, untilMs, archivedMs }: { fromMs: number; untilMs: number; archivedMs: number },
  isAll: boolean,
): StoreStep<ArchivePlan> {
  const { schema } = dialect
  const plan: ArchivePlan = { ranges: [], fromMs, olderMs: undefined, unfolded: undefined }
  const timeOf = (seq: string) =>
    `(SELECT ${countedMs(schema)} FROM ${schema}.entries e WHERE e.account_id = t.account_id AND e.seq = ${seq})`
  const first = (ms: string) => `coalesce((SELECT e.seq FROM ${schema}.entries e WHERE e.account_id = t.account_id
    AND e.seq > t.sealed AND ${countedMs(schema)} >= ${ms} ORDER BY e.seq LIMIT 1), t.seq + 1)`
  for (let after = ''; ; ) {
    const select = (put: Put) => {
      const bound = (ms: number) => `CAST(${put(ms)} AS bigint)`
      const firstOpen = first(bound(archivedMs))
      return `SELECT t.*, ${first(bound(fromMs))} AS first_in, ${first(bound(untilMs))} AS first_after,
          ${firstOpen} AS first_open, ${timeOf(firstOpen)} AS open_ms, ${timeOf('t.sealed + 1')} AS first_ms,
          (SELECT e.seq FROM ${dialect.creditEntry} = t.last_grant) AS grant_seq,
          coalesce((SELECT m.seq FROM ${schema}.sums_marks m WHERE m.account_id = t.account_id), 0) AS mark
        FROM (SELECT b.account_id, b.seq, a.last_grant, coalesce((SELECT max(s.to_seq) FROM ${schema}.seals s
            JOIN ${schema}.archives x ON x.month = s.month AND x.state <> 'sealing' WHERE s.account_id = b.account_id), 0) AS sealed
          FROM ${dialect.ends} b JOIN ${schema}.accounts a ON a.id = b.account_id
          WHERE b.account_id > ${put(after)} ORDER BY b.account_id LIMIT ${accountsMax}) t ORDER BY t.account_id`
    }
    const rows = yield* ask(dialect, select)
    for (const row of rows) yield* planAccount(row)
    if (rows.length < accountsMax) return plan
    after = rows.at(-1)!['account_id'] as string
  }

  function* planAccount(row: Row): StoreStep<void> {
    const number = (column: string) => Number(row[column])
    const accountId = row['account_id'] as string
    const grant = row['grant_seq'] === null ? Number.POSITIVE_INFINITY : number('grant_seq')
    const most = Math.min(number('seq'), grant) - 1
    const sealed = number('sealed')
    const olderSeq = Math.min(number('first_in') - 1, most)
    if (olderSeq >= number('first_open') && (yield* wholeGroups(dialect, accountId, olderSeq)) >= number('first_open'))
      plan.olderMs = Math.min(plan.olderMs ?? Number.POSITIVE_INFINITY, number('open_ms'))
    const fromSeq = isAll ? sealed + 1 : Math.max(sealed + 1, number('first_in'))
    const toSeq = yield* wholeGroups(dialect, accountId, Math.min(number('first_after') - 1, most))
    if (toSeq < fromSeq) return
    plan.ranges.push({ accountId, fromSeq, toSeq })
    if (isAll) plan.fromMs = Math.min(plan.fromMs, number('first_ms'))
    if (number('mark') < toSeq) plan.unfolded ??= accountId
  }
}

/**
 * Shortens a range whose end would split a run of corrected entries (table `shifted`). The range then ends before the
 * run (ruling C15).
 * @returns `toSeq`, or the number of the last entry before the run
 */
function* wholeGroups(dialect: Dialect, accountId: string, toSeq: number): StoreStep<number> {
  const { schema } = dialect
  const row = yield* askOne(
    dialect,
    (put) =>
      `SELECT count(*) AS n FROM ${schema}.shifted WHERE account_id = ${put(accountId)} AND seq IN (${put(toSeq)}, ${put(toSeq + 1)})`,
  )
  if (Number(row!['n']) < 2) return toSeq
  const last = yield* askOne(
    dialect,
    (
      put,
    ) => `SELECT e.seq FROM ${schema}.entries e WHERE e.account_id = ${put(accountId)} AND e.seq <= ${put(toSeq)} AND NOT EXISTS (
      SELECT 1 FROM ${schema}.shifted s WHERE s.account_id = e.account_id AND s.seq = e.seq) ORDER BY e.seq DESC LIMIT 1`,
  )
  return Number(last?.['seq'] ?? 0)
}

/** SQL: whether an entry `e` is in one of these ranges. */
function within(put: Put, ranges: readonly SealRange[]): string {
  const parts = ranges.map(
    ({ accountId, fromSeq, toSeq }) =>
      `(e.account_id = ${put(accountId)} AND e.seq >= ${put(fromSeq)} AND e.seq <= ${put(toSeq)})`,
  )
  return `(${parts.join(' OR ')})`
}

/** Divides ranges of entries into slices. A slice has at most `entriesMax` entries and `rangesMax` ranges. */
export function* sliceSeals(ranges: Iterable<SealRange>, entriesMax = 2_000, rangesMax = 100): Iterable<SealRange[]> {
  let slice: SealRange[] = []
  let room = entriesMax
  for (const { accountId, fromSeq, toSeq } of ranges)
    for (let from = fromSeq; from <= toSeq; ) {
      const to = Math.min(toSeq, from + room - 1)
      slice.push({ accountId, fromSeq: from, toSeq: to })
      room -= to - from + 1
      from = to + 1
      if (room > 0 && slice.length < rangesMax) continue
      yield slice
      ;[slice, room] = [[], entriesMax]
    }
  if (slice.length > 0) yield slice
}

/** Reads all columns of the entries in a slice, which is a list of ranges. The rows come account by account. */
export function* readSlice(dialect: Dialect, slice: readonly SealRange[]): StoreStep<Row[]> {
  return yield* ask(
    dialect,
    (put) => `SELECT e.* FROM ${dialect.schema}.entries e WHERE ${within(put, slice)} ORDER BY e.account_id, e.seq`,
  )
}

/**
 * Runs `work` in a transaction, unless another command has changed the archive. The archive stays locked until the
 * transaction ends.
 * @returns false if another command has changed the archive
 */
function* whileHeld(dialect: Dialect, { month, state, digest }: Archive, work: StoreStep<unknown>): StoreStep<boolean> {
  return yield* inTransaction(check())

  function* check(): StoreStep<boolean> {
    const { schema, isShared } = dialect
    const row = yield* askOne(
      dialect,
      (put) =>
        `SELECT state, digest FROM ${schema}.archives WHERE month = ${put(month)} ${isShared ? 'FOR SHARE' : ''}`,
    )
    if (row?.['state'] !== state || row['digest'] !== digest) return false
    yield* work
    return true
  }
}

/** Deletes the sealed entries of a slice. @returns false if another command has changed the archive */
export function* removeSlice(dialect: Dialect, archive: Archive, slice: readonly SealRange[]): StoreStep<boolean> {
  const { schema } = dialect
  const remove = ask(dialect, (put) => `DELETE FROM ${schema}.entries AS e WHERE ${within(put, slice)}`)
  return yield* whileHeld(dialect, archive, remove)
}

/**
 * Puts archived entries back into the ledger, except entries that are already there.
 * @param rows the rows of one slice
 * @returns false if another command has changed the archive
 */
export function* restoreSlice(
  dialect: Dialect,
  archive: Archive,
  columns: readonly string[],
  rows: readonly Row[],
): StoreStep<boolean> {
  const { schema } = dialect
  const ranges = [...sliceSeals(rangesOf(rows), rows.length + 1, Number.POSITIVE_INFINITY)].flat()
  return yield* whileHeld(dialect, archive, restore())

  function* restore(): StoreStep<void> {
    const there = yield* ask(
      dialect,
      (put) => `SELECT e.account_id, e.seq FROM ${schema}.entries e WHERE ${within(put, ranges)}`,
    )
    const known = new Set(there.map(({ account_id, seq }) => `${account_id}/${seq}`))
    const missing = rows.filter(({ account_id, seq }) => !known.has(`${account_id}/${seq}`))
    const values = missing.map((row) => columns.map((column) => row[column] as SqlValue))
    if (values.length > 0) yield* runAll(insertAll(dialect, 'entries', columns, values))
  }
}

function* rangesOf(rows: readonly Row[]): Iterable<SealRange> {
  let range: SealRange | undefined
  for (const { account_id, seq } of rows) {
    const [accountId, number] = [account_id as string, Number(seq)]
    if (range?.accountId === accountId && range.toSeq + 1 === number) range.toSeq = number
    else {
      if (range) yield range
      range = { accountId, fromSeq: number, toSeq: number }
    }
  }
  if (range) yield range
}

/** Reads the prices or price lists that some entries refer to. */
export function* readNamed(dialect: Dialect, table: 'prices' | 'lists', names: readonly string[]): StoreStep<Row[]> {
  const column = table === 'prices' ? 'version' : 'digest'
  if (names.length === 0) return []
  return yield* ask(
    dialect,
    (put) =>
      `SELECT * FROM ${dialect.schema}.${table} WHERE ${column} IN (${names.map((name) => put(name)).join(', ')}) ORDER BY ${column}`,
  )
}

/** Reads the digest of an entry, and the balance after it. Returns undefined if the entry is not in the store. */
export function* readLink(dialect: Dialect, accountId: string, seq: number) {
  const row = yield* askOne(
    dialect,
    (put) =>
      `SELECT digest, balance_after FROM ${dialect.schema}.entries WHERE account_id = ${put(accountId)} AND seq = ${put(seq)}`,
  )
  return row && { digest: row['digest'] as string, balanceNanos: row['balance_after'] as bigint }
}

/**
 * Writes the sealed rows (what remains of archived entries) and the sums of accounts. Also writes the index of archived
 * entries.
 * @returns false if another command has changed the archive
 */
export function* noteSealed(
  dialect: Dialect,
  archive: Archive,
  seals: readonly (Seal & { sums: readonly SealedSums[] })[],
  entries: readonly ArchivedEntry[],
): StoreStep<boolean> {
  const again = 'ON CONFLICT DO NOTHING'
  return yield* whileHeld(dialect, archive, note())

  function* note(): StoreStep<void> {
    const index = entries.map((one) => [one.id, one.kind, one.month, one.accountId, one.seq, one.amountNanos])
    yield* rowsInto('archived', ['id', 'kind', 'month', 'account_id', 'seq', 'amount'], index)
    const rows = seals.map((one) => [
      ...[one.accountId, one.month, one.fromSeq, one.toSeq, one.creditedNanos, one.debitedNanos, one.balanceNanos],
      ...[one.firstDigest, one.lastDigest, one.postedMs],
    ])
    const columns = ['account_id', 'month', 'from_seq', 'to_seq', 'credited', 'debited', 'balance']
    yield* rowsInto('seals', [...columns, 'first_digest', 'last_digest', 'posted_ms'], rows)
    const sums = seals.flatMap(({ accountId, month, sums }) =>
      sums.map((one) => [accountId, month, one.keyId, one.person, ...sumColumns.map((column) => one.sums[column])]),
    )
    yield* rowsInto('sealed_sums', ['account_id', 'month', 'key_id', 'person', ...sumColumns], sums)
  }

  function* rowsInto(table: string, columns: readonly string[], rows: readonly (readonly SqlValue[])[]) {
    if (rows.length > 0) yield* runAll(insertAll(dialect, table, columns, rows, again))
  }
}

/**
 * Begins to seal a month, and deletes what an interrupted command has written for it.
 * @returns false if the month is sealed already
 */
export function* beginSealing(
  dialect: Dialect,
  archive: Archive,
  { lock }: { lock?: string | undefined },
): StoreStep<boolean> {
  return yield* inTransaction(begin())

  function* begin(): StoreStep<boolean> {
    if (lock !== undefined) yield* ask(dialect, () => lock)
    if ((yield* readArchives(dialect)).some(({ month, state }) => month === archive.month && state !== 'sealing'))
      return false
    for (const table of ['archived', 'sealed_sums', 'seals', 'archives'])
      yield* ask(dialect, (put) => `DELETE FROM ${dialect.schema}.${table} WHERE month = ${put(archive.month)}`)
    yield* runAll([insert(dialect, 'archives', rowOf(archive))])
    return true
  }
}

function rowOf(archive: Archive) {
  return {
    month: archive.month,
    time_zone: archive.timeZone,
    from_ms: archive.fromMs,
    until_ms: archive.untilMs,
    state: archive.state,
    file: archive.file,
    file_digest: archive.fileDigest,
    accounts: archive.accounts,
    entries: archive.entries,
    seals_digest: archive.sealsDigest,
    index_digest: archive.indexDigest,
    digest: archive.digest,
  }
}

/**
 * Moves an archive to another state, and writes an audit record if the caller passes one.
 * @param lock a statement that is run first. It is set if several servers may write audit records
 * @param held the archive as this command wrote it. Pass it if another command could have changed the archive since
 * @returns false if another command has changed the archive, or if rows of the month are not yet written
 * @throws BookError `month_unfolded` before entries are removed that the figures for reports do not include
 */
export function* moveArchive(
  dialect: Dialect,
  archive: Archive,
  from: readonly Archive['state'][],
  { lock, record, held }: { lock?: string | undefined; record?: { act: Act; trail: Trail }; held?: Archive } = {},
): StoreStep<boolean> {
  return yield* inTransaction(move())

  function* move(): StoreStep<boolean> {
    if (lock !== undefined) yield* ask(dialect, () => lock)
    const now = (yield* readArchives(dialect)).find(({ month }) => month === archive.month)
    if (
      !now ||
      !from.includes(now.state) ||
      (held && now.digest !== held.digest) ||
      (now.state === 'sealing' && !(yield* isNoted()))
    )
      return false
    if (archive.state === 'removing') yield* refuseUnfolded(dialect, archive.month)
    yield* runAll([update(dialect, 'archives', rowOf(archive), { month: archive.month })])
    if (record) {
      const row = auditRow(record.act, record.trail)
      yield* make(dialect, { kind: 'post_audit', row, nowMs: yield* readNowMs(dialect) })
    }
    return true
  }

  function* isNoted(): StoreStep<boolean> {
    const count = (table: string, put: Put) =>
      `(SELECT count(*) FROM ${dialect.schema}.${table} WHERE month = ${put(archive.month)})`
    const row = yield* askOne(
      dialect,
      (put) => `SELECT ${count('archived', put)} AS entries, ${count('seals', put)} AS accounts`,
    )
    return Number(row!['entries']) === archive.entries && Number(row!['accounts']) === archive.accounts
  }
}

/**
 * Refuses a sealed month whose entries are not all in the figures for reports. If the zone or times were changed since
 * the month was planned or attached, all entries are summed again. @throws BookError
 */
function* refuseUnfolded(dialect: Dialect, month: string): StoreStep<void> {
  const { schema } = dialect
  const row = yield* askOne(
    dialect,
    (put) => `SELECT s.account_id FROM ${schema}.seals s LEFT JOIN ${schema}.sums_marks m ON m.account_id = s.account_id
      WHERE s.month = ${put(month)} AND s.to_seq > coalesce(m.seq, 0) ORDER BY s.account_id LIMIT 1`,
  )
  if (row) throw new BookError('month_unfolded', row['account_id'] as string)
}

/** Reads one page of the seals of a month. A month has one seal (a row of sums) for each account. */
export function* pageSeals(dialect: Dialect, month: string, afterId: string): StoreStep<Seal[]> {
  const rows = yield* ask(
    dialect,
    (put) => `SELECT * FROM ${dialect.schema}.seals WHERE month = ${put(month)} AND account_id > ${put(afterId)}
      ORDER BY account_id LIMIT ${accountsMax}`,
  )
  return rows.map(readSeal)
}

/** Finds the last archive before a month and the first one after it. Also checks whether any month is detached. */
export function neighbours(archives: readonly Archive[], month: string) {
  const others = archives.filter((one) => one.state !== 'sealing')
  const before = others.filter((one) => one.month < month).at(-1)
  return { before, later: others.find((one) => one.month > month), hasAway: others.some(isAway) }
}
