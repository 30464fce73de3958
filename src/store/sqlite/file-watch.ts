import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs'
import { lockPathOf } from '../files/lock.ts'

export type FileWatch = ReturnType<typeof watchFiles>

/**
 * The state of the write-ahead log. SQLite writes new random numbers (salts) into the header and the frames when it
 * restarts the log.
 */
type LogState = { salts: string; frames: number }

/** Sizes in SQLite's write-ahead log, in bytes: https://www.sqlite.org/fileformat2.html#walformat */
const headerBytes = 32
const frameHeaderBytes = 24
/** The number of frames of the log that are read at a time: about 64 KiB with pages of the usual size. */
const framesAtOnce = 16

/**
 * Checks that the files of a running server are still the files that it opened (faults F-S5, ruling X11). SQLite keeps
 * writing to a file that was deleted, and to a log (the `-wal` file) that was cut. Such data is lost when the process
 * ends.
 *
 * The log is the only file that is opened here, because SQLite locks all the other files. Closing a second descriptor
 * of a file gives up every lock that the process has on it (https://www.sqlite.org/howtocorrupt.html, POSIX advisory
 * locks).
 */
export function watchFiles(path: string) {
  const logPath = `${path}-wal`
  const fixed = [path, lockPathOf(path)]
  const perOpening = [logPath, `${path}-shm`]
  const known = new Map<string, number | undefined>()
  let last: LogState | undefined
  /** The log of the database, kept open. So it can be checked even if the process cannot open more files. */
  let log: number | undefined
  return { note, findLostStore, findLoss, isLogWhole }

  /** Remembers each file by its inode. Called after each opening of the database, which may create a new log. */
  function note(): void {
    for (const file of fixed) if (known.get(file) === undefined) known.set(file, inodeOf(file))
    for (const file of perOpening) known.set(file, inodeOf(file))
    last = undefined
    if (log !== undefined) closeSync(log)
    log = tryOpen(logPath)
  }

  /**
   * Checks whether the store's own file is still in its place. If the file is lost, nothing may be committed.
   * @returns a message if the file is lost
   */
  function findLostStore(): string | undefined {
    return inodeOf(path) === known.get(path) ? undefined : sayLost(path)
  }

  /**
   * Checks all files.
   * @param countFrames returns the number of frames in the log (WAL), as the database counts them
   * @returns a message for the operator if a file was lost or damaged
   */
  function findLoss(countFrames: () => number): string | undefined {
    for (const file of [...fixed, ...perOpening]) {
      const inode = inodeOf(file)
      // The log may not exist before the database is first read.
      if (known.get(file) === undefined) known.set(file, inode)
      else if (inode !== known.get(file)) return sayLost(file)
    }
    // Another process may restart the log between the count and the read. Then the second check finds the log complete.
    if (isWhole(countFrames()) || isWhole(countFrames())) return undefined
    return `${logPath} was cut or overwritten while the server runs`
  }

  /** Whether the opened log has all its frames, even if its file was deleted. */
  function isLogWhole(countFrames: () => number): boolean {
    return log !== undefined && isWhole(countFrames())
  }

  /** Whether the write-ahead log has all its frames. @param frames the number of frames that the database counts */
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

/** Reads the state of the log. @returns undefined if the log does not have this many whole frames */
function readLog(file: number, frames: number, last: LogState | undefined): LogState | undefined {
  const header = readAt(file, 0, headerBytes)
  // A log begins with one of two magic numbers. Their last bits differ, and tell the byte order of the checksums.
  if (header.length < headerBytes || (header.readUInt32BE(0) | 1) !== 0x377f0683) return undefined
  const frameBytes = frameHeaderBytes + header.readUInt32BE(8)
  const salts = header.toString('hex', 16, 24)
  if (fstatSync(file).size < headerBytes + frames * frameBytes) return undefined
  // If the log was cut and SQLite has written to it since, its length is right, but it has a gap. The gap contains the
  // last frame of the previous check or a later frame. So only these frames are read.
  const formerEnd = last?.salts === salts ? Math.min(last.frames, frames) : 1
  const ownSalts = header.subarray(16, 24)
  // One call reads many frames, although only their salts are needed. A further call costs more than copying the bytes
  // between the salts.
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

/** Reads a part of a file. The result is shorter if the file ends. */
function readAt(file: number, position: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length)
  return bytes.subarray(0, readSync(file, bytes, 0, length, position))
}
