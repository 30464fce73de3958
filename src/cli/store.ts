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
 * Runs `work` with the books of the store that a server with the same settings would use (ruling X4), and closes it. The store
 * is changed directly, even if a server uses it; the server sees the change within a second.
 * @param create whether to make a missing file
 * @param zoned whether the work depends on days, which are those of the zone recorded in the store (ruling X12)
 * @param isAlone whether no server may use the store meanwhile
 * @throws the refusal of a rule, in words for the person
 */
export async function withStore<T>(
  command: Command,
  work: (books: Books, calendar: Calendar) => Promise<T>,
  { create = false, zoned = false, isAlone = false } = {},
): Promise<T> {
  const store = await findStore(command.optsWithGlobals())
  const { openBooks } = await import('../store/open-books.ts')
  const isNew = create && store.engine === 'sqlite' && !existsSync(store.path)
  const options = { busyMs: 5_000, create, isAlone }
  const notes = new Set<string>()
  let { books, close } = await openBooks(store, { ...options, note: (text) => notes.add(text) })
  const zone = zoned ? await readZone(books, command.optsWithGlobals()) : utc
  if (zone.timeZone !== utc.timeZone || zone.weekStarts !== utc.weekStarts) {
    await close()
    ;({ books, close } = await openBooks(store, { ...options, zone }))
  }
  if (isNew) note(command, `a new store was made at ${store.shown}`)
  try {
    return await work(books.as({ actor: cliActor() }), createCalendar(zone))
  } catch (error) {
    const told = explainBookError(error)
    // The error says the same as the note, so the note is left out.
    notes.delete((told as Error).message)
    throw told
  } finally {
    for (const text of notes) note(command, text)
    await close()
  }
}

/**
 * Finds the store. The configuration is read only if neither flag nor variable names one, so that a mistake in it blocks no
 * refund.
 * @throws ConfigError for a wrong URL, Error if the file is beside the configuration, as in earlier releases (ruling X8)
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

/** Reads the configuration for its store only. The keys of upstreams may be set on the server alone. */
async function readConfig(config: string | undefined): Promise<Config> {
  const { loadConfig } = await import('../config/load.ts')
  return loadConfig({ ...(config !== undefined && { config }), isWithoutFiles: true, isWithoutKeys: true })
}

/**
 * Returns the zone that the store has recorded. Before a server has recorded one, it is that of the configuration. It is UTC
 * if there is no configuration, or it cannot be read, which other commands report.
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

/** The person at the command line, as the audit names them. */
export function cliActor(): string {
  return `cli:${userName()}@${hostname()}`
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    // In a container a user may have no name.
    return `${process.getuid?.() ?? 'somebody'}`
  }
}

/** Words the refusal of a rule; any other error is returned as it is. */
export function explainBookError(error: unknown): unknown {
  return error instanceof BookError ? new Error(sentenceOf(error), { cause: error }) : error
}
