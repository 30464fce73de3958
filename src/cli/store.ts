import { existsSync } from 'node:fs'
import { hostname, userInfo } from 'node:os'
import type { Command } from 'commander'
import { BookError } from '../accounts/book-error.ts'
import type { Books } from '../accounts/books.ts'
import { type Calendar, createCalendar, utc, type Zone } from '../accounts/calendar.ts'
import type { Config, StorePlace } from '../config/config.ts'
import { ConfigError } from '../config/problem.ts'
import { sentenceOf } from '../operations/book-words.ts'
import type { GlobalOptions } from './options.ts'
import { note } from './print.ts'

export type { GlobalOptions } from './options.ts'

/**
 * Opens the store that a server with the same settings would use (ruling X4), runs `work` on its books, and closes it.
 * The books are the operations on accounts, keys and the ledger. A running server sees their changes within a second.
 * Days and budgets follow the store's time zone (ruling X12).
 * @param create whether to create a missing file
 * @param isAlone whether servers must not use the store while `work` runs
 * @param isLong whether statements of a database may take long, as they may with `isAlone`
 * @param options what names the store. Default: the options of the command
 * @throws Error with a message for people if a rule of the books refuses
 */
export async function withStore<T>(
  command: Command,
  work: (books: Books, calendar: Calendar) => Promise<T>,
  { create = false, isAlone = false, isLong = false, options = command.optsWithGlobals<GlobalOptions>() } = {},
): Promise<T> {
  const store = await findStore(options)
  const { openBooks } = await import('../store/open-books.ts')
  const isNew = create && store.engine === 'sqlite' && !existsSync(store.path)
  const notes = new Set<string>()
  const { books, close } = await openBooks(store, {
    ...{ busyMs: 5_000, create, isAlone, isLong },
    note: (text: string) => notes.add(text),
  })
  if (isNew) note(command, `a new store was made at ${store.shown}`)
  try {
    const calendar = createCalendar(await readZone(books, options))
    return await work(books.as({ actor: cliActor() }, calendar), calendar)
  } catch (error) {
    const told = explainBookError(error)
    // A note with the same text as the error is left out, because the error says it already.
    notes.delete((told as Error).message)
    throw told
  } finally {
    for (const text of notes) note(command, text)
    await close()
  }
}

/**
 * Finds the store. If an option or a variable names the store, the configuration is not read. So a mistake in the
 * configuration cannot block a refund.
 * @throws ConfigError for a wrong URL; Error if the store is beside the configuration, as before 0.2.0 (ruling X8)
 */
export async function findStore({ config, store }: GlobalOptions): Promise<StorePlace> {
  const { readStorePlace, storeMistake } = await import('../config/store-place.ts')
  const said = store ?? (process.env['TRIWIRE_STORE'] || undefined)
  if (said) {
    const mistake = storeMistake(said)
    const path = store === undefined ? 'TRIWIRE_STORE' : '--store'
    if (mistake) throw new ConfigError([{ path, message: `${path} ${mistake}` }])
    return readStorePlace(said, process.cwd())
  }
  const { earlierStoreMistake } = await import('../config/store-place.ts')
  const found = await readConfig(config)
  const mistake = earlierStoreMistake(found)
  if (mistake) throw new Error(mistake)
  return found.store
}

/** Reads only what the store needs. Keys of upstreams are not required, because perhaps only the server has them. */
async function readConfig(config: string | undefined): Promise<Config> {
  const { loadConfig } = await import('../config/load.ts')
  return loadConfig({ ...(config !== undefined && { config }), isWithoutFiles: true, isWithoutKeys: true })
}

/**
 * Returns the time zone that the store records. If no server has recorded one, the zone of the configuration counts, or
 * UTC if the configuration is invalid. Other commands report the mistakes in a configuration.
 */
async function readZone(books: Books, { config }: GlobalOptions): Promise<Zone> {
  const { isRecorded } = await import('../accounts/usage/question.ts')
  const state = await books.readUsageState()
  if (isRecorded(state)) return state
  try {
    return (await readConfig(config)).reporting
  } catch {
    return utc
  }
}

/** Returns the name that the audit trail records for the person at the command line. */
export function cliActor(): string {
  return `cli:${userName()}@${hostname()}`
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    // In a container, the user may have no name.
    return `${process.getuid?.() ?? 'somebody'}`
  }
}

/** Converts a refusal by the books into an error with a message for people. Other errors are returned unchanged. */
export function explainBookError(error: unknown): unknown {
  return error instanceof BookError ? new Error(sentenceOf(error), { cause: error }) : error
}
