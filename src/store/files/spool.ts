import { constants, copyFileSync, existsSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { parseTerms } from '../../accounts/entry-row.ts'
import type { Debit } from '../../accounts/ledger.ts'
import type { Posting, Spool } from '../../accounts/poster.ts'
import { syncFolderAside } from './sync.ts'

/**
 * The file for debits that the database could not take in time: one JSON object per line, beside the database. A line
 * `{"returned":"<request id>"}` is of a debit whose client was refused while it was unknown whether the database has it
 * (ruling C13).
 */
export function spoolPath(storePath: string): string {
  return `${storePath}.spool`
}

/** Writes without the worker's help, so that a stuck database cannot hold it up. One append at a time. */
export function createSpool(path: string): Spool {
  let file: FileHandle | undefined
  let isUsed = false
  /** All bytes before this one were reported durable, or were there before. Unknown until the first opening. */
  let acknowledgedBytes: number | undefined
  /** Bytes after that may exist. */
  let isTorn = false
  let isClosed = false
  let last: Promise<unknown> = Promise.resolve()
  return {
    append: (debits) => inTurn(() => append(debits.map(encodeDebit))),
    appendReturns: (requestIds) => inTurn(() => note(requestIds.map(encodeReturn))),
    // Lines that say nothing, of the size of some dozens of debits.
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
    // A job after the closing closes the file again: a handle left to the garbage collector is fatal to the process.
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
      // The client is refused after this failure, so its debit must not be found here (ruling C13).
      if (file) await mend(file).catch(() => {})
      await shut().catch(() => {})
      throw error
    }
  }

  /**
   * A note is true whether or not it can be made durable. The bytes that could be written of it stay, so that a kill does
   * not lose it. It makes up for lines of debits that cannot be cut.
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
    // The line break before is for what a crash may have left behind.
    await open.writeFile(`\n${lines.join('\n')}\n`)
    await open.datasync()
  }

  async function acknowledge(open: FileHandle): Promise<void> {
    acknowledgedBytes = await sizeOf(open)
    isTorn = false
  }

  /** Back to what was acknowledged. */
  async function mend(open: FileHandle): Promise<void> {
    if (!isTorn) return
    await open.truncate(acknowledgedBytes)
    await open.datasync()
    isTorn = false
  }

  async function clear(isEmpty: () => boolean): Promise<void> {
    if (!isUsed || !isEmpty()) return
    // Open no more where an append has failed, though some of it may be on the disk.
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

/** @property returns requests whose debits are to be given back where the database has them, and nowhere else to be booked. */
type Spooled = { debits: Debit[]; returns: string[]; unreadable: number }

/**
 * Reads the spool of an earlier run. `unreadable` lines were torn by a crash, and then never promised, or damaged since.
 */
export function readSpool(path: string): Spooled {
  const debits: Debit[] = []
  const returns: string[] = []
  let unreadable = 0
  const text = existsSync(path) ? readFileSync(path, 'utf8') : ''
  for (const line of text.split('\n')) {
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

/**
 * After its debits are in the database. What could not be read or posted is put aside for a person to look at.
 * @param isHeld some are not in the database yet: the spool stays, since to post the others once more does no harm.
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
  /** Debits that were in the database and whose clients had been refused (ruling C13). */
  returned: number
  rejected: number
  unreadable: number
  aside: string | undefined
}

/** @param path of the spool, whose debits became these. Nothing of it is lost that a person has to look at. */
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

/** A line of the first release has no origin but the model: the rest stays undefined (ruling C9). */
// biome-ignore lint/suspicious/noExplicitAny: what it is not shows below
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

// biome-ignore lint/suspicious/noExplicitAny: a line that lacks a price has none
function decodePrices({ steps, calls, ...rates }: any): Debit['prices'] {
  const nanos = Object.entries(rates).map(([name, text]) => [name, BigInt(text as string)])
  return {
    ...Object.fromEntries(nanos),
    ...(steps || calls ? parseTerms(JSON.stringify({ steps, calls })) : undefined),
  }
}
