import { constants, existsSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { DebitRow, Spool } from '../../accounts/poster.ts'

/** Where debits wait that the database could not take in time: one JSON object per line, beside the database. */
export function spoolPath(storePath: string): string {
  return `${storePath}.spool`
}

/** Writes without the worker's help, so that a stuck database cannot hold it up. One append at a time. */
export function createSpool(path: string): Spool {
  let file: FileHandle | undefined
  let isUsed = false
  let isClosed = false
  let last: Promise<unknown> = Promise.resolve()
  return {
    append: (debits) => inTurn(() => append(debits)),
    clear: (isEmpty) => inTurn(() => clear(isEmpty)),
    close: () => {
      isClosed = true
      return inTurn(shut)
    },
  }

  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    // What comes after the closing closes behind itself: a handle left to the garbage collector is fatal to the process.
    const turn = last.then(work).finally(() => (isClosed ? shut() : undefined))
    last = turn.catch(() => {})
    return turn
  }

  async function append(debits: readonly DebitRow[]): Promise<void> {
    isUsed = true
    try {
      file ??= await openDurably(path)
      // The line break before is for what a failed append may have left behind.
      await file.writeFile(`\n${debits.map(encodeDebit).join('\n')}\n`)
      await file.datasync()
    } catch (error) {
      await shut().catch(() => {})
      throw error
    }
  }

  async function clear(isEmpty: () => boolean): Promise<void> {
    if (!isUsed || !isEmpty()) return
    // Open no more where an append has failed, though some of it may be on the disk.
    file ??= await openDurably(path)
    await file.truncate(0)
    await file.datasync()
    isUsed = false
  }

  async function shut(): Promise<void> {
    const open = file
    file = undefined
    await open?.close()
  }
}

/** A new file is only there after a power loss when its folder was synced too. */
async function openDurably(path: string): Promise<FileHandle> {
  const file = await open(path, constants.O_CREAT | constants.O_APPEND | constants.O_WRONLY, 0o600)
  try {
    if (process.platform !== 'win32') {
      const folder = await open(dirname(path))
      await folder.sync().finally(() => folder.close())
    }
    return file
  } catch (error) {
    await file.close()
    throw error
  }
}

/** What a run before this one left. `unreadable` lines were torn by a crash, and then never promised, or damaged since. */
export function readSpool(path: string): { debits: DebitRow[]; unreadable: number } {
  const debits: DebitRow[] = []
  let unreadable = 0
  const text = existsSync(path) ? readFileSync(path, 'utf8') : ''
  for (const line of text.split('\n')) {
    if (!line) continue
    try {
      debits.push(decodeDebit(line))
    } catch {
      unreadable++
    }
  }
  return { debits, unreadable }
}

/** After its debits are in the database. What could not be read or posted is put aside for a person to look at. */
export function retireSpool(path: string, isWhole: boolean): string | undefined {
  if (isWhole) {
    rmSync(path, { force: true })
    return undefined
  }
  const aside = `${path}.${Date.now()}.bad`
  renameSync(path, aside)
  return aside
}

function encodeDebit(debit: DebitRow): string {
  return JSON.stringify(debit, (_, value) => (typeof value === 'bigint' ? value.toString() : value))
}

/** A line of the first release has no origin but the model: the rest stays undefined (ruling C9). */
function decodeDebit(line: string): DebitRow {
  const debit = JSON.parse(line)
  const prices = Object.fromEntries(
    Object.entries(debit.prices).map(([name, nanos]) => [name, BigInt(nanos as string)]),
  )
  if (typeof debit.requestId !== 'string' || !debit.usage) throw new SyntaxError('not a debit')
  return { pricedCalls: 0, ...debit, amountNanos: BigInt(debit.amountNanos), prices: prices as DebitRow['prices'] }
}
