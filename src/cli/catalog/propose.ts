import type { Command } from 'commander'
import { type CatalogChange, editCatalog, listEntries } from '../../config/catalog-edit.ts'
import { findProblems } from '../../config/load.ts'
import { readWhole, writeWhole } from '../../host/whole-file.ts'
import { confirm } from '../confirm.ts'
import { diffLines } from '../diff.ts'
import { isJson, print } from '../print.ts'

export type ProposeOptions = { yes?: boolean; dryRun?: boolean }

/** A change of the configuration file that a command proposes, with texts that explain it. */
export type Proposal = {
  file: string
  change: CatalogChange
  /** Models that the change leaves out. `why` has the reason and what to do. */
  left: readonly { id: string; why: string }[]
  /** Sentences that are printed after the change. */
  notes: readonly string[]
}

/** Returns the text of the file, or an empty text if the file does not exist. */
export function readSource(file: string): string {
  try {
    return readWhole(file) ?? ''
  } catch (error) {
    throw new Error(
      `Cannot read ${file} (${codeOf(error) ?? (error as Error).message}): name another one with --config`,
    )
  }
}

/**
 * Shows the change, asks, and writes the file (ruling X15). A change that adds mistakes is not written.
 * @throws Error if the person declines, or if nobody can be asked
 */
export async function propose(proposal: Proposal, options: ProposeOptions, command: Command): Promise<void> {
  const { file, change, left, notes } = proposal
  const isChange = change.added.length > 0 || change.updated.length > 0
  const before = readSource(file)
  const after = isChange ? editCatalog(before, change) : before
  if (isChange) refuseMistakes(file, before, after)
  const changes = diffLines(before, after)
  if (!isJson(command)) tell(proposal, before, changes)
  const isWritten = isChange && !options.dryRun
  if (isWritten) {
    if (!options.yes)
      await confirm(command, `Write ${file}?`, [`${file} was left as it is`, 'run with --yes to write it'])
    write(file, after)
  }
  const ids = listEntries(before).map(({ id }) => id)
  const data = {
    file,
    written: isWritten,
    pinned: isChange ? change.pinned : null,
    added: change.added.map(({ entry }) => entry.id),
    updated: change.updated.map(({ place }) => ids[place]),
    left,
    notes,
    changes,
  }
  print(command, data, () => conclude(file, isChange, isWritten))
  if (!isChange && left.length > 0) process.exitCode = 1
}

function tell({ file, change, left, notes }: Proposal, before: string, changes: readonly string[]): void {
  if (changes.length > 0)
    console.log(`${before === '' ? 'A new file' : 'Changes of'} ${file}:\n\n${changes.join('\n')}\n`)
  for (const { id, why } of left) console.log(`${id}: ${why}`)
  for (const note of notes) console.log(note)
  if (change.added.length > 0 && before !== '' && !/^catalog\s*:/m.test(before))
    console.log('With a catalog of its own the server no longer serves the built-in models of the simulator.')
}

function conclude(file: string, isChange: boolean, isWritten: boolean): string {
  if (!isChange) return `${file} was left as it is.`
  return isWritten
    ? `Wrote ${file}: triwire check tells what else it needs.`
    : 'Nothing was written: this was a dry run.'
}

/** Refuses a change that adds mistakes. Mistakes that the file already has do not count; `check` reports them. */
function refuseMistakes(file: string, before: string, after: string): void {
  const known = new Set(findProblems(file, before).map(({ path }) => path))
  const mistake = findProblems(file, after).find(({ path }) => !known.has(path))
  if (mistake) throw new Error(`${file} would not be right with it, and was left as it is: ${mistake.message}`)
}

function write(file: string, text: string): void {
  try {
    writeWhole(file, text)
  } catch (error) {
    throw new Error(`Cannot write ${file} (${codeOf(error)}): name another one with --config`)
  }
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code
}

/** Returns today's date in UTC, in the form of `catalog.pinned`. */
export function today(): string {
  return new Date().toISOString().slice(0, 10)
}
