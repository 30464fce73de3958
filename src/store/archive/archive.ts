import { randomUUID } from 'node:crypto'
import {
  type Archive,
  DigestSum,
  digestArchive,
  indexText,
  type Seal,
  sealText,
  sumsText,
} from '../../accounts/archive.ts'
import { BookError } from '../../accounts/book-error.ts'
import { type Calendar, createCalendar, monthOf, spanOfMonth } from '../../accounts/calendar.ts'
import type { VerifyOptions } from '../../accounts/entries.ts'
import type { Act, Trail } from '../../accounts/trail.ts'
import { isRecorded } from '../../accounts/usage/question.ts'
import { StoreError } from '../files/store-error.ts'
import { findSealOf, readArchives } from '../sql/archives.ts'
import {
  type ArchivePlan,
  beginSealing,
  moveArchive,
  neighbours,
  noteSealed,
  pageSeals,
  planArchive,
  readLink,
  readNamed,
  readSlice,
  removeSlice,
  restoreSlice,
  type SealRange,
  sliceSeals,
} from '../sql/archiving.ts'
import { readNowMs } from '../sql/moments.ts'
import { readUsageState } from '../sql/usage-keep.ts'
import type { ArchiveStore } from './end.ts'
import {
  type ArchiveHeader,
  type ArchivePiece,
  digestFile,
  fileColumns,
  readArchive,
  toArchived,
  writeArchive,
} from './file.ts'

/** The month to archive, and options. */
export type ArchiveWishes = Pick<VerifyOptions, 'priceNanos' | 'readList'> & {
  month: string
  /** The path of the file; the default is `ArchiveStore.fileOf`. */
  file?: string | undefined
  /** The person and command, for the audit record. */
  act: Act
  /** Called now and then during long work, with a sentence for people. */
  progress?: ((words: string) => void) | undefined
}

/**
 * The report of an archive command.
 * @property digest the file's SHA-256; undefined for a plan, which makes no file
 * @property isOld true if an earlier command has done the work, so that the file was not read
 */
export type ArchiveReport = {
  month: string
  state: Archive['state'] | 'here'
  file: string
  digest: string | undefined
  accounts: number
  entries: number
  isOld?: true
}

/** A month can be archived a week after its end. By then its last budget week has ended and late debits are posted. */
const closedAfterMs = 7 * 86_400_000

/**
 * Finds the entries of a month that an export or a detachment would write to a file. Changes nothing.
 * @param isAll true to include entries that earlier archives left out, as a detachment does
 * @throws BookError if the month cannot be archived now
 */
export async function planMonth(
  store: ArchiveStore,
  { month, file }: ArchiveWishes,
  isAll: boolean,
): Promise<ArchiveReport> {
  const known = await findArchive(store, month)
  if (known && known.state !== 'sealing') return reportOf(known)
  const { ranges } = await plan(store, month, isAll)
  return { month, state: 'here', file: file ?? store.fileOf(month), digest: undefined, ...countOf(ranges) }
}

/**
 * Writes the entries of a closed month to a file and verifies the file. If the month is archived already, verifies its
 * file instead.
 * @throws BookError, StoreError
 */
export async function exportMonth(store: ArchiveStore, wishes: ArchiveWishes): Promise<ArchiveReport> {
  const { month, file } = wishes
  const known = await findArchive(store, month)
  if (known && known.state !== 'sealing') {
    const path = file ?? known.file
    await proveSame(path, known, wishes)
    return { ...reportOf(known), file: path }
  }
  const { ranges, header } = await plan(store, month, false)
  const path = file ?? store.fileOf(month)
  const { digest } = await writeAndProve(store, path, { header, ranges }, wishes)
  return { month, state: 'here', file: path, digest, ...countOf(ranges) }
}

/**
 * Moves the entries of a closed month into a file. The store keeps a row of sums for each account (the sealed row) and
 * an index. The file is verified before any entry is removed. An interrupted detachment continues where it stopped.
 * @throws BookError, StoreError
 */
export async function detachMonth(store: ArchiveStore, wishes: ArchiveWishes): Promise<ArchiveReport> {
  const { month } = wishes
  const known = await findArchive(store, month)
  if (known?.state === 'away') return { ...reportOf(known), isOld: true }
  let archive: Archive
  if (known === undefined || known.state === 'sealing') archive = await seal(store, wishes)
  else {
    archive = { ...known, state: 'removing', file: wishes.file ?? known.file }
    await refuseOther(archive.file, archive)
    if (known.state !== 'removing') await move(store, archive, ['attaching', 'attached'], wishes, 'detach')
  }
  await remove(store, archive, wishes)
  const away = await move(store, { ...archive, state: 'away' }, ['removing'])
  // The month is detached even if the space cannot be freed now.
  await store.tidy().catch(() => {})
  return reportOf(away)
}

/**
 * Puts the entries of a detached month back into the store, unchanged. The month's sums and index stay in the store.
 * @throws StoreError
 */
export async function attachMonth(store: ArchiveStore, wishes: ArchiveWishes): Promise<ArchiveReport> {
  const { month } = wishes
  const archive = await findArchive(store, month)
  if (!archive || archive.state === 'sealing')
    throw new StoreError(`${month} is not detached: its entries are all here`)
  if (archive.state === 'attached') return { ...reportOf(archive), isOld: true }
  const file = wishes.file ?? archive.file
  await refuseOther(file, archive)
  const attaching = { ...archive, file, state: 'attaching' as const }
  await move(store, attaching, ['removing', 'away', 'attaching'])
  let count = 0
  for await (const { rows } of readArchive(file, month, wishes, {})) {
    refuseBusy(month, await store.run(restoreSlice(store.dialect, attaching, fileColumns, rows)))
    count += rows.length
    wishes.progress?.(`attaching: ${count} of ${archive.entries} entries`)
  }
  const attached = await move(store, { ...attaching, state: 'attached' }, ['attaching'], wishes, 'attach')
  return reportOf(attached)
}

async function findArchive(store: ArchiveStore, month: string): Promise<Archive | undefined> {
  return (await store.run(readArchives(store.dialect))).find((one) => one.month === month)
}

function reportOf({ month, state, file, fileDigest, accounts, entries }: Archive): ArchiveReport {
  return { month, state, file, digest: fileDigest, accounts, entries }
}

function countOf(ranges: readonly SealRange[]): { accounts: number; entries: number } {
  return { accounts: ranges.length, entries: ranges.reduce((sum, { fromSeq, toSeq }) => sum + toSeq - fromSeq + 1, 0) }
}

/**
 * Plans the archive of a month.
 * @param isAll true for a detachment. It has more conditions, and includes entries that earlier archives left out
 */
async function plan(
  store: ArchiveStore,
  month: string,
  isAll: boolean,
): Promise<Omit<ArchivePlan, 'fromMs'> & { header: ArchiveHeader; oldestMs: number }> {
  const { dialect, run } = store
  const state = await run(readUsageState(dialect))
  if (!isRecorded(state)) throw new BookError('zone_unrecorded', store.shown)
  const calendar: Calendar = createCalendar(state)
  const { startMs: fromMs, endMs: untilMs } = spanOfMonth(calendar, month)
  if ((await run(readNowMs(dialect))) < untilMs + closedAfterMs) throw new BookError('month_open', month)
  const { before, later } = neighbours(await run(readArchives(dialect)), month)
  if (later) throw new StoreError(`${month} has no entries of its own: they are in the archive of ${later.month}`)
  // The last archive may be of another zone, in which its month ended earlier. Entries between the ends follow it.
  const archivedMs = before ? Math.max(before.untilMs, spanOfMonth(calendar, before.month).endMs) : 0
  const span = { fromMs, untilMs, archivedMs }
  const { fromMs: oldestMs, ...planned } = await run(planArchive(dialect, span, isAll))
  if (isAll && planned.olderMs !== undefined) throw new BookError('month_order', monthOf(calendar, planned.olderMs))
  if (isAll && planned.unfolded !== undefined) throw new BookError('month_unfolded', planned.unfolded)
  if (planned.ranges.length === 0)
    throw new StoreError(
      `${month} has no entries that can be archived: it has none, or only the last one of an account, which stays`,
    )
  return { ...planned, oldestMs, header: { month, timeZone: state.timeZone, fromMs, untilMs } }
}

type Contents = { header: ArchiveHeader; ranges: readonly SealRange[] }

/** Writes the archive, and verifies it. @returns the digests of the file, of its sealed rows and of its index */
async function writeAndProve(store: ArchiveStore, path: string, contents: Contents, wishes: ArchiveWishes) {
  await writeArchive(path, contents.header, pieces(store, contents.ranges, wishes))
  return prove(store, path, contents.ranges, wishes, async () => {})
}

async function* pieces(
  store: ArchiveStore,
  ranges: readonly SealRange[],
  { progress }: ArchiveWishes,
): AsyncIterable<ArchivePiece> {
  const { dialect, run } = store
  const { entries } = countOf(ranges)
  const rangeOf = new Map(ranges.map((range) => [range.accountId, range]))
  const written = { prices: new Set<string>(), lists: new Set<string>() }
  let count = 0
  for (const slice of sliceSeals(ranges)) {
    const rows = await run(readSlice(dialect, slice))
    const fresh = (table: 'prices' | 'lists', columns: readonly string[]) => {
      const all = rows.flatMap((row) => columns.map((column) => row[column] as string | null))
      const names = [...new Set(all)].filter((name): name is string => name !== null && !written[table].has(name))
      for (const name of names) written[table].add(name)
      return run(readNamed(dialect, table, names))
    }
    for (const price of await fresh('prices', ['price_version', 'cost_version'])) yield { price }
    for (const { digest, text } of await fresh('lists', ['list']))
      yield { list: { digest: digest as string, text: text as string } }
    for (const row of rows) {
      const range = rangeOf.get(row['account_id'] as string)!
      if (Number(row['seq']) === range.fromSeq) yield { account: await beginning(store, range) }
      yield { entry: row }
    }
    count += rows.length
    progress?.(`exporting: ${count} of ${entries} entries`)
  }
}

/**
 * Makes the line that begins an account in the archive file. It has the range of the account's entries, and the digest
 * and balance before the first of them.
 */
async function beginning(store: ArchiveStore, { accountId, fromSeq, toSeq }: SealRange) {
  const link = await linkBefore(store, accountId, fromSeq)
  return {
    ...{ account: accountId, from: fromSeq, to: toSeq },
    ...{ before: link?.digest ?? null, balance: link?.balanceNanos ?? 0n },
  }
}

async function linkBefore({ dialect, run }: ArchiveStore, accountId: string, seq: number) {
  const link = await run(readLink(dialect, accountId, seq - 1))
  if (link || seq === 1) return link
  const seal = await run(findSealOf(dialect, accountId, seq - 1))
  return seal && { digest: seal.lastDigest, balanceNanos: seal.balanceNanos }
}

/** The digests of a file, of its sealed rows and of its index. */
type ProvenFile = { digest: string; sealsDigest: string; indexDigest: string }

/**
 * Verifies that a file is consistent, and that it matches the store. The file must have exactly the entries in
 * `ranges`. File and store must agree on the digests at both ends of each range.
 * @param take gets the sealed rows and index rows of each part
 */
async function prove(
  store: ArchiveStore,
  path: string,
  ranges: readonly SealRange[],
  wishes: ArchiveWishes,
  take: (...parts: DropFirst<DropFirst<Parameters<typeof noteSealed>>>) => Promise<void>,
): Promise<ProvenFile> {
  const { month, progress } = wishes
  const [seals, index] = [new DigestSum(), new DigestSum()]
  const found: { digest?: string } = {}
  const { entries } = countOf(ranges)
  let [at, count] = [0, 0]
  for await (const { rows, end } of readArchive(path, month, wishes, found)) {
    const noted = rows.map((row) => toArchived(month, row, store.idOf))
    for (const one of noted) index.add(indexText(one))
    if (end) {
      await refuseOtherRange(store, path, ranges[at++], end.seal, end.before)
      seals.add(sealText(end.seal))
      for (const one of end.sums) seals.add(sumsText(end.seal.accountId, month, one))
    }
    await take(end ? [{ ...end.seal, sums: end.sums }] : [], noted)
    count += rows.length
    progress?.(`proving the file: ${count} of ${entries} entries`)
  }
  if (at !== ranges.length) throw new StoreError(`${path} lacks accounts: export the month again`)
  return { digest: found.digest!, sealsDigest: seals.end(), indexDigest: index.end() }
}

type DropFirst<T extends readonly unknown[]> = T extends readonly [unknown, ...infer Rest] ? Rest : never

async function refuseOtherRange(
  store: ArchiveStore,
  path: string,
  range: SealRange | undefined,
  seal: Seal,
  before: string | null,
): Promise<void> {
  const { accountId, fromSeq, toSeq } = seal
  const last = await store.run(readLink(store.dialect, accountId, toSeq))
  const link = await linkBefore(store, accountId, fromSeq)
  const isPlanned = range?.accountId === accountId && range.fromSeq === fromSeq && range.toSeq === toSeq
  const isSame =
    last?.digest === seal.lastDigest && last.balanceNanos === seal.balanceNanos && (link?.digest ?? null) === before
  if (!isPlanned || !isSame)
    throw new StoreError(
      `${path} differs from what the store has of account ${accountId}: remove the file, and try again`,
    )
}

/** Verifies the file of a month that is archived already. */
async function proveSame(path: string, archive: Archive, wishes: ArchiveWishes): Promise<void> {
  await refuseOther(path, archive)
  let count = 0
  for await (const { rows } of readArchive(path, archive.month, wishes, {})) {
    count += rows.length
    wishes.progress?.(`proving the file: ${count} of ${archive.entries} entries`)
  }
}

/** @throws StoreError if the file is missing, or is not the one that was sealed */
async function refuseOther(path: string, { month, fileDigest }: Archive): Promise<void> {
  const digest = await digestFile(path)
  if (digest === undefined)
    throw new StoreError(`${path}, the archive of ${month}, does not exist: name its path with --file`)
  if (digest !== fileDigest)
    throw new StoreError(
      `${path} is not the archive of ${month} as it was sealed: its SHA-256 is ${digest}, and should be ${fileDigest}. Name the right file with --file, or restore it from a backup`,
    )
}

/**
 * Writes and verifies the archive file of a month. Then stores the facts by which the archived entries can be verified
 * and found without the file.
 * @returns the sealed archive; the caller still has to remove its entries from the store
 */
async function seal(store: ArchiveStore, wishes: ArchiveWishes): Promise<Archive> {
  const { dialect, run } = store
  const { month } = wishes
  const { ranges, header, oldestMs } = await plan(store, month, true)
  const file = wishes.file ?? store.fileOf(month)
  const { before } = neighbours(await run(readArchives(dialect)), month)
  await writeArchive(file, header, pieces(store, ranges, wishes))
  const counts = countOf(ranges)
  // Until the month is sealed, the digest is a random id of this command. So two commands that run at the same time
  // cannot mix their rows.
  const begun: Archive = {
    ...{ month, timeZone: header.timeZone, fromMs: oldestMs, untilMs: header.untilMs },
    ...{ state: 'sealing', file, fileDigest: '', sealsDigest: '', indexDigest: '', digest: randomUUID(), ...counts },
  }
  await store.begin()
  refuseBusy(month, await run(beginSealing(dialect, begun, store)))
  const { digest: fileDigest, ...digests } = await prove(store, file, ranges, wishes, async (...parts) =>
    refuseBusy(month, await run(noteSealed(dialect, begun, ...parts))),
  )
  const proven = { ...begun, fileDigest, ...digests }
  const sealed = { ...proven, state: 'removing' as const, digest: digestArchive(proven, before?.digest ?? null) }
  return move(store, sealed, ['sealing'], wishes, 'detach', begun)
}

async function remove(store: ArchiveStore, archive: Archive, { progress }: ArchiveWishes): Promise<void> {
  const { dialect, run } = store
  const { month, entries } = archive
  let count = 0
  for (let after = ''; ; ) {
    const seals = await run(pageSeals(dialect, month, after))
    if (seals.length === 0) return
    after = seals.at(-1)!.accountId
    for (const slice of sliceSeals(seals)) {
      refuseBusy(month, await run(removeSlice(dialect, archive, slice)))
      count += countOf(slice).entries
      progress?.(`detaching: ${count} of ${entries} entries`)
    }
  }
}

async function move(
  store: ArchiveStore,
  archive: Archive,
  from: readonly Archive['state'][],
  wishes?: ArchiveWishes,
  word?: 'detach' | 'attach',
  held?: Archive,
): Promise<Archive> {
  const { month, entries, accounts, fileDigest, digest } = archive
  const after = { entries, accounts, file_digest: fileDigest, digest }
  const trail: Trail = { operation: `ledger.${word}`, object: month, after }
  const record = wishes && word ? { act: wishes.act, trail } : undefined
  const more = { lock: store.lock, ...(record && { record }), ...(held && { held }) }
  refuseBusy(month, await store.run(moveArchive(store.dialect, archive, from, more)))
  return archive
}

/** Throws if another command works on the month. @param isHeld whether the archive is as this command left it */
function refuseBusy(month: string, isHeld: boolean): void {
  if (!isHeld)
    throw new StoreError(`another command is working on ${month}: wait until it ends, then run this one again`)
}
