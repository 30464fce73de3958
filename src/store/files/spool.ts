import { constants, copyFileSync, existsSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { parseTerms } from '../../accounts/entry-row.ts'
import type { Debit } from '../../accounts/ledger.ts'
import type { Posting, Spool } from '../../accounts/poster.ts'
import { explainFile, StoreError } from './store-error.ts'
import { syncFolderAside } from './sync.ts'

/**
 * The path of the spool: the file beside the database for debits that the database did not take in time. It has one
 * JSON object per line.
 *
 * A line `{"returned":"<request id>"}` names a debit that must be reversed if the database has it (ruling C13). The
 * client of that request was refused before it was known whether the database has the debit.
 */
export function spoolPath(storePath: string): string {
  return `${storePath}.spool`
}

/**
 * Creates a spool. It writes without the store's worker, so a stuck database cannot block it. Its jobs run one by one.
 */
export function createSpool(path: string): Spool {
  let file: FileHandle | undefined
  let isUsed = false
  /**
   * Bytes before this position are durable, or were written before this process began. Undefined until the file is
   * first opened.
   */
  let acknowledgedBytes: number | undefined
  /** Whether the file can have bytes after `acknowledgedBytes`. */
  let isTorn = false
  let isClosed = false
  let last: Promise<unknown> = Promise.resolve()
  return {
    append: (debits) => inTurn(() => append(debits.map(encodeDebit))),
    appendReturns: (requestIds) => inTurn(() => note(requestIds.map(encodeReturn))),
    // Proves that the disk accepts writes. The written blank lines are as long as some dozens of debits.
    probe: () => inTurn(() => append(['\n'.repeat(65_536)])),
    get isTorn() {
      return isTorn
    },
    clear: (isEmpty) => inTurn(() => clear(isEmpty)),
    close: () => {
      isClosed = true
      return inTurn(shut)
    },
  }

  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    // A job that runs after `close` must close the file again. Node ends the process if a garbage-collected file handle
    // is still open.
    const turn = last.then(work).finally(() => (isClosed ? shut() : undefined))
    last = turn.catch(() => {})
    return turn
  }

  async function append(lines: readonly string[]): Promise<void> {
    isUsed = true
    try {
      file ??= await openDurably(path)
      acknowledgedBytes ??= await sizeOf(file)
      await mend(file)
      await write(file, lines)
      await acknowledge(file)
    } catch (error) {
      // The client is refused after this failure, so its debit must not stay in the spool (ruling C13).
      if (file) await mend(file).catch(() => {})
      await shut().catch(() => {})
      throw error
    }
  }

  /**
   * Appends notes that name debits to reverse. A failed append may leave the line of a debit in the file. The note
   * voids this line too. Even a note that cannot be made durable stays in the file, so it survives a kill of the
   * process.
   */
  async function note(lines: readonly string[]): Promise<void> {
    isUsed = true
    try {
      file ??= await openFile(path)
      acknowledgedBytes ??= await sizeOf(file)
      if (isTorn) await file.truncate(acknowledgedBytes).catch(() => {})
      await write(file, lines)
      await syncFolderAside(dirname(path))
      await acknowledge(file)
    } catch (error) {
      await shut().catch(() => {})
      throw error
    }
  }

  async function write(open: FileHandle, lines: readonly string[]): Promise<void> {
    isTorn = true
    // The line break in front ends a line that a crash may have left torn.
    await open.writeFile(`\n${lines.join('\n')}\n`)
    await open.datasync()
  }

  async function acknowledge(open: FileHandle): Promise<void> {
    acknowledgedBytes = await sizeOf(open)
    isTorn = false
  }

  /** Cuts the file back to the acknowledged bytes. */
  async function mend(open: FileHandle): Promise<void> {
    if (!isTorn) return
    await open.truncate(acknowledgedBytes)
    await open.datasync()
    isTorn = false
  }

  async function clear(isEmpty: () => boolean): Promise<void> {
    if (!isUsed || !isEmpty()) return
    // After a failed append the file is closed, but the disk may have part of the append.
    file ??= await openDurably(path)
    await file.truncate(0)
    await file.datasync()
    acknowledgedBytes = 0
    isTorn = false
    isUsed = false
  }

  async function shut(): Promise<void> {
    const open = file
    file = undefined
    await open?.close()
  }
}

function openFile(path: string): Promise<FileHandle> {
  return open(path, constants.O_CREAT | constants.O_APPEND | constants.O_WRONLY, 0o600)
}

async function openDurably(path: string): Promise<FileHandle> {
  const file = await openFile(path)
  try {
    await syncFolderAside(dirname(path))
    return file
  } catch (error) {
    await file.close()
    throw error
  }
}

async function sizeOf(file: FileHandle): Promise<number> {
  return (await file.stat()).size
}

/**
 * The content of a spool.
 * @property returns the ids of requests whose debits must not be posted. If the database has such a debit already, it
 * must be reversed
 */
type Spooled = { debits: Debit[]; returns: string[]; unreadable: number }

/**
 * Reads the spool of an earlier run. `unreadable` counts lines that a crash has left incomplete, and lines that were
 * damaged later. Debits of incomplete lines were never acknowledged.
 * @throws StoreError if the file cannot be read
 */
export function readSpool(path: string): Spooled {
  const debits: Debit[] = []
  const returns: string[] = []
  let unreadable = 0
  for (const line of readText(path).split('\n')) {
    if (!line) continue
    try {
      const value = JSON.parse(line)
      if (typeof value.returned === 'string') returns.push(value.returned)
      else debits.push(decodeDebit(value))
    } catch {
      unreadable++
    }
  }
  const isRefused = new Set(returns)
  return { debits: debits.filter(({ requestId }) => !isRefused.has(requestId)), returns, unreadable }
}

function readText(path: string): string {
  try {
    return existsSync(path) ? readFileSync(path, 'utf8') : ''
  } catch (cause) {
    const why = `${explainFile(cause)}; it may have debits that are not in the ledger`
    throw new StoreError(`${path} cannot be read: ${why}: correct this, and start again`, { cause })
  }
}

/**
 * Removes a spool after its debits were posted. If a line could not be read or posted, a copy is kept for a person.
 * @param isWhole whether every line could be read and posted
 * @param isHeld true if some debits cannot be posted yet. Then the spool stays, because posting its debits again does
 *   no harm
 * @returns the path of the kept copy, if there is one
 */
export function retireSpool(path: string, isWhole: boolean, isHeld = false): string | undefined {
  const aside = isWhole ? undefined : `${path}.${Date.now()}.bad`
  if (aside !== undefined) (isHeld ? copyFileSync : renameSync)(path, aside)
  else if (!isHeld) rmSync(path, { force: true })
  return aside
}

/** The result of posting the spool of an earlier run. */
export type Recovery = {
  posted: number
  known: number
  /** The number of reversed debits. The database had them although their clients had been refused (ruling C13). */
  returned: number
  rejected: number
  unreadable: number
  aside: string | undefined
}

/**
 * Ends a spool after its debits were posted with these results. A spool with unreadable or rejected lines is kept.
 * @param path the path of the spool
 * @param returned the number of debits that were reversed
 */
export function concludeSpool(
  path: string,
  { unreadable }: Pick<Spooled, 'unreadable'>,
  postings: readonly Posting[],
  returned: number,
  isHeld = false,
): Recovery {
  const count = (...kinds: Posting[]) => postings.filter((posting) => kinds.includes(posting)).length
  const rejected = count('rejected', 'conflict')
  const aside = retireSpool(path, rejected + unreadable === 0, isHeld)
  return { posted: count('posted'), known: count('exists'), returned, rejected, unreadable, aside }
}

function encodeDebit(debit: Debit): string {
  return JSON.stringify(debit, (_, value) => (typeof value === 'bigint' ? value.toString() : value))
}

function encodeReturn(requestId: string): string {
  return JSON.stringify({ returned: requestId })
}

/** Makes a debit from a line. Lines of the first release have the model, and no key, wire or upstream (ruling C9). */
// biome-ignore lint/suspicious/noExplicitAny: a parsed line may have any shape
function decodeDebit(debit: any): Debit {
  if (typeof debit.requestId !== 'string' || !debit.usage) throw new SyntaxError('not a debit')
  return {
    pricedCalls: 0,
    calls: undefined,
    ...debit,
    amountNanos: BigInt(debit.amountNanos),
    prices: decodePrices(debit.prices),
    ...(debit.details?.costNanos !== undefined && {
      details: { ...debit.details, costNanos: BigInt(debit.details.costNanos) },
    }),
    ...(debit.costPrices && { costPrices: decodePrices(debit.costPrices) }),
  }
}

// biome-ignore lint/suspicious/noExplicitAny: a parsed line may have any shape
function decodePrices({ steps, calls, ...rates }: any): Debit['prices'] {
  const nanos = Object.entries(rates).map(([name, text]) => [name, BigInt(text as string)])
  return {
    ...Object.fromEntries(nanos),
    ...(steps || calls ? parseTerms(JSON.stringify({ steps, calls })) : undefined),
  }
}
