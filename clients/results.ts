import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Cell } from './cell.ts'
import type { Story } from './stories.ts'

/**
 * What the last run of each cell came to. docs/clients.md is made from it, so a run of one client changes that client's
 * rows and no others. What ran with another version than is pinned now counts as not run.
 */
export type Results = { cells: Cell[]; stories: Story[] }

const path = join(import.meta.dirname, 'results.json')

export function readResults(): Results {
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Results) : { cells: [], stories: [] }
}

/** @param stories those of this run; without any the earlier ones stand */
export function keepResults(cells: readonly Cell[], stories: readonly Story[]): Results {
  const before = readResults()
  const all = new Map(before.cells.map((cell) => [nameOf(cell), cell]))
  for (const cell of cells) {
    const earlier = all.get(nameOf(cell))
    // A run of the tasks alone says nothing of failures: what an earlier one found of this version stands.
    const after = cell.after ?? (earlier?.version === cell.version ? earlier.after : undefined)
    all.set(nameOf(cell), { ...cell, ...(after && { after }), failures: cell.failures.filter(isFact) })
  }
  const results = { cells: [...all.values()], stories: stories.length > 0 ? [...stories] : before.stories }
  writeFileSync(path, `${JSON.stringify(results, null, 1)}\n`)
  return results
}

/** What a client said and offers is for the screen of whoever runs it. */
function isFact(failure: string): boolean {
  return !/\bit (?:said|offers)\b/.test(failure)
}

export function nameOf({ client, clientWire, modelWire }: Pick<Cell, 'client' | 'clientWire' | 'modelWire'>): string {
  return `${client}, ${clientWire} to ${modelWire}`
}
