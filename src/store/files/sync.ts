import { closeSync, existsSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname } from 'node:path'

/*
 * A file that was made, renamed or removed is so after a loss of power only if its folder was synced too. Windows cannot
 * sync a folder.
 */

/** Waits for the disk: for threads and moments that have nothing else to do. */
export function syncFolder(folder: string): void {
  if (process.platform === 'win32') return
  const file = openSync(folder, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** The same for the serving thread, which a disk that is stuck must not hold up. */
export async function syncFolderAside(folder: string): Promise<void> {
  if (process.platform === 'win32') return
  const file = await open(folder)
  await file.sync().finally(() => file.close())
}

const pieceBytes = 1_048_576

/**
 * Writes the write-ahead log once more over itself, and syncs it. A failed sync takes its pages off the system's list of
 * pages to write. They can still be read, later syncs succeed, and they are gone with the power (B8). Only pages that are
 * written anew are on the list again. With the log whole on the disk, all later work of SQLite is as safe as ever, its
 * checkpoints included ([why not a checkpoint alone](../../../docs/decisions/0018-after-a-failed-sync.md)).
 *
 * The caller holds the write lock of the database, so that nobody else writes. Only the log is opened: its locks are on
 * other files.
 */
export function rewriteLog(path: string): void {
  const logPath = `${path}-wal`
  if (existsSync(logPath)) {
    const file = openSync(logPath, 'r+')
    try {
      const piece = Buffer.allocUnsafe(pieceBytes)
      for (let at = 0; ; ) {
        const read = readSync(file, piece, 0, pieceBytes, at)
        if (read === 0) break
        for (let written = 0; written < read; ) written += writeSync(file, piece, written, read - written, at + written)
        at += read
      }
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
  }
  syncFolder(dirname(path))
}
