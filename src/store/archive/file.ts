import { createHash, randomUUID } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { type ArchivedEntry, createSealedSums, type Seal, type SealedSums } from '../../accounts/archive.ts'
import { floorMsOf } from '../../accounts/corrections.ts'
import type { VerifyOptions } from '../../accounts/entries.ts'
import { entryColumns, readEntry, readPrices } from '../../accounts/entry-row.ts'
import type { Debit } from '../../accounts/ledger.ts'
import { createBillCheck } from '../../accounts/verify/bills.ts'
import { createChainCheck } from '../../accounts/verify/chain.ts'
import { explainFile, StoreError } from '../files/store-error.ts'
import { syncFolderAside } from '../files/sync.ts'
import type { Row } from '../sql/step.ts'

/*
 * The file of an archive: lines of JSON, packed by gzip.
 *
 * 1. The first line describes the file and names the columns of entries.
 * 2. The accounts follow, in the order of their ids. Each has a line with the range of its entries and the digest of
 *    the entry before them, then one array for each entry. Prices and price lists stand before the first entry that
 *    names them.
 * 3. The last line has the numbers of accounts and entries.
 */

/** The first line of an archive file. */
export type ArchiveHeader = { month: string; timeZone: string; fromMs: number; untilMs: number }

/**
 * The line before the entries of an account.
 * @property before the digest of the entry before number `from`; null if there is no such entry
 */
type AccountLine = { account: string; from: number; to: number; before: string | null; balance: bigint }

export const fileColumns = ['id', ...entryColumns]

/** A part of a file. `writeArchive` makes one line from each part. */
export type ArchivePiece =
  | { account: AccountLine }
  | { price: Row }
  | { list: { digest: string; text: string } }
  | { entry: Row }

/**
 * Writes the whole file, or leaves the existing file as it was. The file is durable when the promise resolves.
 * @throws StoreError if the file cannot be written, or if the path has a file with other content
 */
export async function writeArchive(
  path: string,
  header: ArchiveHeader,
  pieces: AsyncIterable<ArchivePiece>,
): Promise<void> {
  const part = `${path}.${randomUUID()}.part`
  try {
    const out = createWriteStream(part, { mode: 0o600, flush: true })
    await pipeline(Readable.from(linesOf(header, pieces)), createGzip({ level: 6 }), out)
    const there = await digestFile(path)
    if (there !== undefined && there !== (await digestFile(part)))
      throw new StoreError(`${path} is another file, and is not overwritten: name another path with --file`)
    await rename(part, path)
    await syncFolderAside(dirname(path))
  } catch (error) {
    await rm(part, { force: true }).catch(() => {})
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error
    throw unusable(path, 'written', error)
  }
}

async function* linesOf(header: ArchiveHeader, pieces: AsyncIterable<ArchivePiece>): AsyncIterable<string> {
  const { month, timeZone, fromMs, untilMs } = header
  yield `${toLine({ triwire: 'archive', form: 1, month, time_zone: timeZone, from: fromMs, until: untilMs, columns: fileColumns })}\n`
  let text = ''
  let [accounts, entries] = [0, 0]
  for await (const piece of pieces) {
    if ('entry' in piece) {
      entries++
      text += `${toLine(fileColumns.map((column) => piece.entry[column] ?? null))}\n`
    } else {
      if ('account' in piece) accounts++
      text += `${toLine('account' in piece ? piece.account : piece)}\n`
    }
    if (text.length < 65_536) continue
    yield text
    text = ''
  }
  yield `${text}${toLine({ end: { accounts, entries } })}\n`
}

/** Writes JSON with integers of up to 64 bits. */
function toLine(value: unknown): string {
  return JSON.stringify(value, (_, one) => (typeof one === 'bigint' ? rawJson(one.toString()) : one))
}

/** Makes a number that JSON writes with exactly these digits. TypeScript has no types for `JSON.rawJSON` yet. */
const { rawJSON: rawJson } = JSON as typeof JSON & { rawJSON(text: string): unknown }

function fromLine(line: string): unknown {
  const read = (_: string, value: unknown, { source }: { source?: string } = {}) =>
    typeof value === 'number' ? BigInt(source!) : value
  return JSON.parse(line, read as (key: string, value: unknown) => unknown)
}

/** Up to `batchMax` entries of one account. @property end the sums of the account; present in its last batch only */
type ArchiveBatch = {
  rows: Record<string, unknown>[]
  end?: { seal: Seal; sums: SealedSums[]; before: string | null }
}

const batchMax = 1_000

/**
 * Reads a file and verifies it: all digests, balances and amounts are right, the numbers have no gaps, and nothing is
 * missing.
 * @param found gets the SHA-256 of the file, after the last line was read
 * @throws StoreError with the first fault
 */
export async function* readArchive(
  path: string,
  month: string,
  options: Pick<VerifyOptions, 'priceNanos' | 'readList'>,
  found: { digest?: string },
): AsyncGenerator<ArchiveBatch> {
  const findings: string[] = []
  const prices = new Map<string, Debit['prices']>()
  const lists = new Map<string, string>()
  const chain = createChainCheck(findings)
  const bills = createBillCheck({ prices, lists, returns: [] }, options, findings)
  const columns: string[] = []
  let [accounts, entries] = [0, 0]
  let account: OpenAccount | undefined
  let rows: Record<string, unknown>[] = []
  let isEnded = false
  for await (const line of linesIn(path, found)) {
    const value = parse(line)
    if (isEnded) refuse('it goes on after its end')
    if (Array.isArray(value)) {
      const row = Object.fromEntries(columns.map((column, at) => [column, value[at]]))
      check(row)
      rows.push(row)
      entries++
      if (rows.length < batchMax && row['seq'] !== account!.line.to) continue
      const isLast = row['seq'] === account!.line.to
      yield isLast ? { rows, end: endOf(account!) } : { rows }
      rows = []
    } else if (columns.length === 0) columns.push(...readHeader(value))
    else if ('account' in value) begin(value as unknown as FileAccount)
    else if ('price' in value) {
      const row = value['price'] as Row
      prices.set(row['version'] as string, readPrices(row))
    } else if ('list' in value) {
      const { digest, text } = value['list'] as { digest: string; text: string }
      lists.set(digest, text)
    } else {
      const end = value['end'] as Row | undefined
      if (end?.['accounts'] !== BigInt(accounts) || end['entries'] !== BigInt(entries)) refuse('it lacks entries')
      isEnded = true
    }
  }
  if (!isEnded) refuse('it ends too early')

  function refuse(why: string): never {
    throw new StoreError(`${path} is not a complete archive of ${month}: ${why}. Restore the file from a backup of it`)
  }

  function parse(line: string): unknown[] | Record<string, unknown> {
    try {
      return fromLine(line) as unknown[] | Record<string, unknown>
    } catch {
      return refuse('a line is not JSON')
    }
  }

  function readHeader(value: Record<string, unknown>): string[] {
    if (value['triwire'] !== 'archive') refuse('it is another file')
    if (value['form'] !== 1n) refuse('a newer triwire wrote it')
    if (value['month'] !== month) refuse(`it is the archive of ${value['month']}`)
    return value['columns'] as string[]
  }

  function begin(line: FileAccount): void {
    if (account && account.seal?.toSeq !== Number(account.line.to)) refuse(`account ${account.line.account} is cut`)
    accounts++
    account = { line, sums: createSealedSums(), seal: undefined }
    const link = { seq: Number(line.from) - 1, balanceNanos: line.balance, postedMs: 0, digest: line.before }
    chain.goOn(line.account, link)
  }

  function check(row: Record<string, unknown>): void {
    if (!account || row['account_id'] !== account.line.account) refuse('an entry is among those of another account')
    const entry = readEntry(row)
    const reading = { entry, row, accountName: undefined, keyAccountId: entry.accountId, keyPrefix: undefined }
    chain.check({ ...reading, shiftedMs: undefined })
    bills.check({ ...reading, shiftedMs: undefined })
    if (findings.length > 0) refuse(findings[0]!)
    account.sums.add(row)
    const nothing = { fromSeq: entry.seq, creditedNanos: 0n, debitedNanos: 0n, firstDigest: entry.digest }
    const { fromSeq, creditedNanos, debitedNanos, firstDigest } = account.seal ?? nothing
    account.seal = {
      ...{ accountId: entry.accountId, month, fromSeq, toSeq: entry.seq, firstDigest },
      creditedNanos: creditedNanos + (entry.kind === 'credit' ? entry.amountNanos : 0n),
      debitedNanos: debitedNanos + (entry.kind === 'debit' ? entry.amountNanos : 0n),
      ...{ balanceNanos: entry.balanceAfterNanos, lastDigest: entry.digest, postedMs: floorMsOf(entry) },
    }
  }
}

/** The line that begins an account, as parsed from JSON. Its integers are bigint. */
type FileAccount = Omit<AccountLine, 'from' | 'to'> & { from: bigint; to: bigint }

type OpenAccount = { line: FileAccount; sums: ReturnType<typeof createSealedSums>; seal: Seal | undefined }

function endOf({ line, sums, seal }: OpenAccount): NonNullable<ArchiveBatch['end']> {
  return { seal: seal!, sums: sums.list(), before: line.before }
}

/**
 * Reads the lines of a packed file.
 * @param found gets the SHA-256 of the file
 * @throws StoreError if the file cannot be read or unpacked
 */
async function* linesIn(path: string, found: { digest?: string }): AsyncGenerator<string> {
  const hash = createHash('sha256')
  const unpacked = createGunzip()
  const reading = pipeline(
    createReadStream(path),
    async function* (source: AsyncIterable<Buffer>) {
      for await (const piece of source) {
        hash.update(piece)
        yield piece
      }
    },
    unpacked,
  )
  reading.catch(() => {})
  try {
    yield* createInterface({ input: unpacked, crlfDelay: Number.POSITIVE_INFINITY })
    await reading
  } catch (error) {
    throw unreadable(path, error)
  } finally {
    unpacked.destroy()
  }
  found.digest = hash.digest('hex')
}

/**
 * The SHA-256 of a file in hexadecimal digits; undefined if the file does not exist.
 * @throws StoreError if it cannot be read
 */
export async function digestFile(path: string): Promise<string | undefined> {
  const hash = createHash('sha256')
  try {
    for await (const piece of createReadStream(path)) hash.update(piece)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw unreadable(path, error)
  }
  return hash.digest('hex')
}

function unreadable(path: string, cause: unknown): unknown {
  if (cause instanceof StoreError) return cause
  if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') return unusable(path, 'read', cause)
  return new StoreError(`${path} cannot be read: it does not exist: name its path with --file`, { cause })
}

function unusable(path: string, what: 'read' | 'written', cause: unknown): StoreError {
  const cure = 'correct this, or name another path with --file, and run the command again'
  return new StoreError(`${path} cannot be ${what}: ${explainFile(cause)}; ${cure}`, { cause })
}

/** Makes the row of an entry in the index of archives. @param idOf returns the entry's id in the index */
export function toArchived(month: string, row: Row, idOf: (row: Row) => string): ArchivedEntry {
  const isReturn = row['kind'] === 'credit' && row['usage_source'] !== null
  return {
    id: idOf(row),
    kind: isReturn ? 'return' : (row['kind'] as 'debit' | 'credit'),
    month,
    accountId: row['account_id'] as string,
    seq: Number(row['seq']),
    amountNanos: row['amount'] as bigint,
  }
}
