import { existsSync, readFileSync } from 'node:fs'
import type { Mutant } from './operators.ts'

/** A change that no test needs to detect. Its code identifies it, as lines move. A missing field matches everything. */
export type Accepted = {
  file: string
  within?: string
  operator?: string
  before?: string
  after?: string
  reason: string
}

export function readAccepted(path: string): Accepted[] {
  const entries = existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Accepted[]) : []
  for (const entry of entries) if (!entry.reason) throw new Error(`accepted without a reason: ${JSON.stringify(entry)}`)
  return entries
}

export function isAccepted(entries: readonly Accepted[], mutant: Mutant): boolean {
  return entries.some((entry) => fits(entry, mutant))
}

/**
 * Returns entries that are not needed any more. If all changes of a file were tried, its entries must match a survivor.
 * Otherwise they must match at least one change of the file.
 */
export function findStale(
  entries: readonly Accepted[],
  all: readonly Mutant[],
  isWhole: (file: string) => boolean,
  survivors: readonly Mutant[],
): Accepted[] {
  const files = new Set(all.map(({ file }) => file))
  return entries.filter((entry) => {
    const possible = isWhole(entry.file) ? survivors : all
    return files.has(entry.file) && !possible.some((mutant) => fits(entry, mutant))
  })
}

function fits({ reason: _, ...entry }: Accepted, mutant: Mutant): boolean {
  return Object.entries(entry).every(([field, value]) => mutant[field as keyof Mutant] === value)
}
