import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Cell } from './cell.ts'
import type { Story } from './stories.ts'

/**
 * The results of the last run of each cell. docs/clients.md is made from them, so a run of one client changes only that
 * client's rows. A result of a version that is no longer pinned counts as not run.
 */
export type Results = { cells: Cell[]; stories: Story[] }

const path = join(import.meta.dirname, 'results.json')

export function readResults(): Results {
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Results) : { cells: [], stories: [] }
}

/** Merges the results of a run into the stored ones. @param stories if empty, the stored ones stay */
export function keepResults(cells: readonly Cell[], stories: readonly Story[]): Results {
  const before = readResults()
  const all = new Map(before.cells.map((cell) => [nameOf(cell), cell]))
  for (const cell of cells) {
    const earlier = all.get(nameOf(cell))
    // A run without failing models has no `after`. The one of an earlier run of the same version stays.
    const after = cell.after ?? (earlier?.version === cell.version ? earlier.after : undefined)
    all.set(nameOf(cell), { ...cell, ...(after && { after }), failures: cell.failures.filter(isFact) })
  }
  const results = { cells: [...all.values()], stories: stories.length > 0 ? [...stories] : before.stories }
  writeFileSync(path, `${JSON.stringify(results, null, 1)}\n`)
  return results
}

/** Whether a failure is stored. A client's output and its tools are only printed. */
function isFact(failure: string): boolean {
  return !/\bit (?:said|offers)\b/.test(failure)
}

export function nameOf({ client, clientWire, modelWire }: Pick<Cell, 'client' | 'clientWire' | 'modelWire'>): string {
  return `${client}, ${clientWire} to ${modelWire}`
}
