import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { Books } from '../accounts/books.ts'
import { explainBookError } from './book-errors.ts'
import type { GlobalOptions } from './options.ts'
import { note } from './print.ts'

export type { GlobalOptions } from './options.ts'

/**
 * Runs `work` with the books of the store that a server with the same settings would use (ruling X4), and closes it. The
 * file is changed directly, whether a server runs on it or not: a server sees the change within a second.
 * @param create whether a missing store is made.
 * @throws what a rule forbids, in words for the person at the command line.
 */
export async function withStore<T>(
  command: Command,
  work: (books: Books) => Promise<T>,
  { create = false } = {},
): Promise<T> {
  const path = await findStore(command.optsWithGlobals())
  const { openStore } = await import('../store/sqlite/store.ts')
  const { createBooks } = await import('../accounts/books.ts')
  const isNew = create && !existsSync(path)
  const store = openStore(path, { busyMs: 5_000, create })
  if (isNew) note(command, `a new store was made at ${path}`)
  try {
    return await work(createBooks(store, Date.now))
  } catch (error) {
    throw explainBookError(error)
  } finally {
    store.close()
  }
}

/**
 * The configuration is only read where neither flag nor variable says it, so that a mistake in it blocks no refund.
 * @throws Error where it lies beside the configuration, as with an earlier release (ruling X8).
 */
export async function findStore({ config, store = process.env['TRIWIRE_STORE'] }: GlobalOptions): Promise<string> {
  if (store) return resolve(store)
  const { loadConfig } = await import('../config/load.ts')
  const { earlierStoreMistake } = await import('../config/earlier-store.ts')
  const found = loadConfig({ ...(config !== undefined && { config }), isWithoutFiles: true })
  const mistake = earlierStoreMistake(found)
  if (mistake) throw new Error(mistake)
  return found.store
}
