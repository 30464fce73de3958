import { closeSync, openSync, readSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { asObject } from '../../bytes/json.ts'
import { readText, unreadable } from '../print.ts'

export type OneApiRow = Readonly<Record<string, unknown>>

/** The imported tables of one-api, or of its fork new-api (model/channel.go, token.go, user.go, option.go of both). */
export type OneApiTables = Readonly<Record<'channels' | 'tokens' | 'users' | 'options', readonly OneApiRow[]>>

/**
 * Reads the tables from a SQLite file or from JSON, `{"channels": […], "tokens": […], …}`. The file is not changed.
 * @throws Error with a message for people
 */
export function readOneApi(file: string): OneApiTables {
  const cure = 'name its SQLite file, or JSON with the rows of channels, tokens, users and options'
  const tables = isSqlite(file, cure) ? readFile(file) : readJson(file, readText(file, cure))
  if (tables.channels.length === 0) throw new Error(`${file} has no channel: ${cure}`)
  return tables
}

/** Reads only the beginning of the file, because a database with logs may be larger than the memory. */
function isSqlite(file: string, cure: string): boolean {
  const head = Buffer.alloc(16)
  try {
    const descriptor = openSync(file, 'r')
    try {
      readSync(descriptor, head, 0, head.length, 0)
    } finally {
      closeSync(descriptor)
    }
  } catch (error) {
    throw unreadable(file, error, cure)
  }
  return head.toString('latin1') === 'SQLite format 3\0'
}

function readFile(file: string): OneApiTables {
  const db = new DatabaseSync(file, { readOnly: true })
  try {
    const rows = (table: string) => {
      const there = db.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?").get(table)
      return there ? (db.prepare(`SELECT * FROM ${table}`).all() as OneApiRow[]) : []
    }
    return tablesOf(rows)
  } finally {
    db.close()
  }
}

function readJson(file: string, text: string): OneApiTables {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new Error(`${file} is neither a SQLite file nor JSON`)
  }
  const rows = (table: string) => {
    const list = asObject(value)?.[table]
    return Array.isArray(list) ? list.map((row) => asObject(row) ?? {}) : []
  }
  return tablesOf(rows)
}

function tablesOf(rows: (table: string) => readonly OneApiRow[]): OneApiTables {
  const [channels, tokens, users, options] = ['channels', 'tokens', 'users', 'options'].map(rows)
  return { channels: channels!, tokens: tokens!, users: users!, options: options! }
}
