import { copyFileSync, existsSync, mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Command } from 'commander'
import { readWhole, writeWhole } from '../../host/whole-file.ts'
import type { SettingsFile } from '../../programs/program.ts'
import { confirm } from '../confirm.ts'
import { diffLines } from '../diff.ts'
import { editSettings } from './edit/edit.ts'

/** A planned change of a file. `before` is undefined if the file does not exist yet. */
type FileChange = { path: string; before: string | undefined; after: string }

/** Folders of programs, each with the variable that can move the folder elsewhere. */
const movable: readonly (readonly [string, string])[] = [
  ['~/.claude/', 'CLAUDE_CONFIG_DIR'],
  ['~/.codex/', 'CODEX_HOME'],
  ['~/.config/', 'XDG_CONFIG_HOME'],
]

/** The largest file that is edited, in bytes. The TOML parser needs about 400 bytes of memory for each byte. */
const settingsBytesMax = 1_048_576

/** Plans the changes of files without writing. @throws Error that says which file cannot be edited, and why */
export function planSettings(files: readonly SettingsFile[], env: NodeJS.ProcessEnv = process.env): FileChange[] {
  return files.map((file) => {
    const places = [file.path, ...(file.elsewhere ?? [])].map((path) => placeOf(path, env))
    const path = places.find((one) => existsSync(one)) ?? places[0]!
    try {
      const before = readWhole(path)
      const bytes = Buffer.byteLength(before ?? '')
      if (bytes > settingsBytesMax) throw new Error(`it has ${bytes} bytes, more than ${settingsBytesMax}`)
      return { path, before, after: before === undefined ? file.text : editSettings(before, file) }
    } catch (error) {
      const isTooDeep = error instanceof RangeError
      const why = isTooDeep ? 'it has too many levels' : error instanceof Error ? error.message : String(error)
      throw new Error(`${path} was left as it is: ${why}; run without --write, and put the printed settings into it`)
    }
  })
}

function placeOf(path: string, env: NodeJS.ProcessEnv): string {
  const [prefix, variable] = movable.find(([start, name]) => path.startsWith(start) && env[name]) ?? []
  if (prefix !== undefined && variable !== undefined) return join(env[variable]!, path.slice(prefix.length))
  return path.startsWith('~/') ? join(homedir(), path.slice(2)) : path
}

/** Describes a change by the lines that differ. Only the beginning of each key is shown. */
export function describePlan({ path, before, after }: FileChange): string {
  if (before === after) return `${path} has these settings already.`
  const lines = diffLines(before ?? '', after)
    .map(hideKeys)
    .map(shorten)
  return `${before === undefined ? 'A new file' : 'Changes of'} ${path}:\n\n${lines.join('\n')}\n`
}

const lineCharactersMax = 200

function shorten(line: string): string {
  if (line.length <= lineCharactersMax) return line
  return `${line.slice(0, lineCharactersMax)}… (${line.length - lineCharactersMax} more characters)`
}

/** Matches the name of a secret with its value. A value that looks like the name of a variable is not matched. */
const keyValue = /((?:key|token|secret|password)["']?\s*[:=]\s*["']?)(?![A-Z0-9_]+["']?(?:$|,))([^\s"',{}$]{8,})/gi

function hideKeys(line: string): string {
  return line.replace(keyValue, (_, name: string, value: string) => `${name}${value.slice(0, 7)}…`)
}

/** Asks before existing files are changed. @throws Error if the person declines, or if nobody can be asked */
export async function confirmPlans(plans: readonly FileChange[], command: Command): Promise<void> {
  const existing = plans.filter(({ before, after }) => before !== undefined && before !== after)
  const paths = existing.map(({ path }) => path).join(' and ')
  if (existing.length > 0)
    await confirm(command, `Change ${paths} like this (a backup is kept)?`, [
      `${paths} was left as it is`,
      'run with --yes to change it',
    ])
}

/** Writes planned changes, with a backup beside each file. @returns a sentence for each file */
export function writePlans(plans: readonly FileChange[]): string[] {
  const changed = plans.filter(({ before, after }) => before !== after)
  return changed.map(({ path, before, after }) => {
    mkdirSync(dirname(path), { recursive: true })
    const backup = before === undefined ? undefined : freeName(path)
    if (backup !== undefined) copyFileSync(path, backup)
    writeWhole(path, after)
    return backup === undefined ? `Wrote ${path}.` : `Wrote ${path}; what it was is in ${backup}.`
  })
}

/** Returns a free file name for a backup. */
function freeName(path: string): string {
  const names = Array.from({ length: 1_000 }, (_, index) => `${path}.before-triwire${index === 0 ? '' : `-${index}`}`)
  return names.find((name) => !existsSync(name)) ?? join(dirname(path), `before-triwire-${Date.now()}`)
}
