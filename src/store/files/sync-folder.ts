import { closeSync, fsyncSync, openSync } from 'node:fs'
import { open } from 'node:fs/promises'

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
