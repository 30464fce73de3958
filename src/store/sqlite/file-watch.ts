import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs'
import { lockPathOf } from '../files/lock.ts'

export type FileWatch = ReturnType<typeof watchFiles>

/** Frames that are written between two restarts of a log have the same salts, in its header and in each frame. */
type LogState = { salts: string; frames: number }

/** https://www.sqlite.org/fileformat2.html#walformat */
const headerBytes = 32
const frameHeaderBytes = 24
/** Some 64 KiB of pages as they are. */
const framesAtOnce = 16

/**
 * Watches that the files of a running server stay the ones it opened (faults F-S5, ruling X11). SQLite goes on writing to a
 * file without a name, and to a log that was cut; both are gone with the process.
 *
 * Only the log is ever opened here. SQLite locks all the other files. Closing a second descriptor of a file gives up every
 * lock that the process has on it (https://www.sqlite.org/howtocorrupt.html, POSIX advisory locks).
 */
export function watchFiles(path: string) {
  const logPath = `${path}-wal`
  const fixed = [path, lockPathOf(path)]
  const perOpening = [logPath, `${path}-shm`]
  const known = new Map<string, number | undefined>()
  let last: LogState | undefined
  /** Kept open: a process that has no descriptor left shall not lose its ledger over a look at it. */
  let log: number | undefined
  return { note, findLostStore, findLoss, isLogWhole }

  /** After each opening of the database: its log may be another one from here on. */
  function note(): void {
    for (const file of fixed) if (known.get(file) === undefined) known.set(file, inodeOf(file))
    for (const file of perOpening) known.set(file, inodeOf(file))
    last = undefined
    if (log !== undefined) closeSync(log)
    log = tryOpen(logPath)
  }

  /** Looks at the store's own file, which nobody may commit to once it is gone. */
  function findLostStore(): string | undefined {
    return inodeOf(path) === known.get(path) ? undefined : sayLost(path)
  }

  /** Looks at everything. @param countFrames of the log, as the database counts them. @returns words for the operator */
  function findLoss(countFrames: () => number): string | undefined {
    for (const file of [...fixed, ...perOpening]) {
      const inode = inodeOf(file)
      // The log comes with the first look into the database.
      if (known.get(file) === undefined) known.set(file, inode)
      else if (inode !== known.get(file)) return sayLost(file)
    }
    // Another process may restart the log between two looks, and then it is whole at the second.
    if (isWhole(countFrames()) || isWhole(countFrames())) return undefined
    return `${logPath} was cut or overwritten while the server runs`
  }

  /** Whether the log that was opened has all its frames still, with or without a name. A hole in it reads as empty pages. */
  function isLogWhole(countFrames: () => number): boolean {
    return log !== undefined && isWhole(countFrames())
  }

  /** @param frames that the database believes to be in the log. */
  function isWhole(frames: number): boolean {
    if (frames <= 0) last = undefined
    else {
      log ??= tryOpen(logPath)
      if (log === undefined) return inodeOf(logPath) !== undefined
      const state = readLog(log, frames, last)
      if (!state) return false
      last = state
    }
    return true
  }
}

function sayLost(file: string): string {
  return `${file} was removed or replaced while the server runs`
}

function inodeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.ino
}

/** @returns undefined if the log cannot have these frames. */
function readLog(file: number, frames: number, last: LogState | undefined): LogState | undefined {
  const header = readAt(file, 0, headerBytes)
  // Written in either byte order.
  if (header.length < headerBytes || (header.readUInt32BE(0) | 1) !== 0x377f0683) return undefined
  const frameBytes = frameHeaderBytes + header.readUInt32BE(8)
  const salts = header.toString('hex', 16, 24)
  if (fstatSync(file).size < headerBytes + frames * frameBytes) return undefined
  // A log that was cut and written on is long enough and has a hole, between the cut and the first write after it. The hole
  // is at its former end, or in the frames since the last look.
  const formerEnd = last?.salts === salts ? Math.min(last.frames, frames) : 1
  const ownSalts = header.subarray(16, 24)
  // Many frames with one call: of each only these bytes are wanted, but to ask costs more than to copy what is between them.
  for (let frame = formerEnd; frame <= frames; frame += framesAtOnce) {
    const count = Math.min(framesAtOnce, frames - frame + 1)
    const bytes = readAt(file, headerBytes + (frame - 1) * frameBytes, count * frameBytes)
    for (let at = 8; at < count * frameBytes; at += frameBytes)
      if (!ownSalts.equals(bytes.subarray(at, at + 8))) return undefined
  }
  return { salts, frames }
}

function tryOpen(file: string): number | undefined {
  try {
    return openSync(file, 'r')
  } catch {
    return undefined
  }
}

/** Less than was asked for where the file ends. */
function readAt(file: number, position: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length)
  return bytes.subarray(0, readSync(file, bytes, 0, length, position))
}
