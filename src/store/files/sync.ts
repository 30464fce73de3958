import { closeSync, existsSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname } from 'node:path'

/*
 * The creation, renaming or removal of a file survives a power loss only if its folder was synced. Windows cannot sync
 * a folder.
 */

/** Syncs a folder. The calling thread is blocked meanwhile. */
export function syncFolder(folder: string): void {
  if (process.platform === 'win32') return
  const file = openSync(folder, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** Syncs a folder without blocking the calling thread, even if the disk is stuck. The serving thread uses this. */
export async function syncFolderAside(folder: string): Promise<void> {
  if (process.platform === 'win32') return
  const file = await open(folder)
  await file.sync().finally(() => file.close())
}

const pieceBytes = 1_048_576

/**
 * Writes the write-ahead log over itself, and syncs it.
 *
 * After a failed sync, the system no longer writes the affected pages. They can still be read, and later syncs succeed,
 * but a power loss loses them (B8). So all pages are written again ([why not a checkpoint
 * alone](../../../docs/decisions/0018-after-a-failed-sync.md)).
 *
 * The caller holds the write lock of the database, so nobody else writes. Only the log is opened, because closing one
 * of the other files would release SQLite's locks (POSIX).
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
