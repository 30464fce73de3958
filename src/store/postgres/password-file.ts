import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { refuseWideMode } from '../files/place.ts'

const field = String.raw`((?:\\.|[^\\:])*)`
const lineForm = new RegExp(`^${`${field}:`.repeat(4)}(.*)$`)

/**
 * Reads the password of a connection from the password file of PostgreSQL's clients
 * (https://www.postgresql.org/docs/current/libpq-pgpass.html). The driver can read this file too, but then writes a
 * warning about its own plans into the log.
 * @returns undefined if the file has no line for the connection
 * @throws StoreError if other users can read the password
 */
export function readPassword(connection: { host: string; port: number; database: string; user: string }) {
  const path = process.env['PGPASSFILE'] || usualPath()
  const wanted = [connection.host, `${connection.port}`, connection.database, connection.user]
  for (const line of readLines(path)) {
    const [, ...fields] = (lineForm.exec(line) ?? []).map((text) => text.replace(/\\(.)/g, '$1'))
    if (fields.length === 0 || !wanted.every((value, i) => fields[i] === '*' || fields[i] === value)) continue
    refuseWideMode([path])
    return fields[4]
  }
  return undefined
}

function usualPath(): string {
  return process.platform === 'win32'
    ? join(process.env['APPDATA'] ?? homedir(), 'postgresql', 'pgpass.conf')
    : join(homedir(), '.pgpass')
}

function readLines(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split(/\r?\n/)
  } catch {
    // As in PostgreSQL's clients, a missing file is no fault. The database then asks for a password.
    return []
  }
}
