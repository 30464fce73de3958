import { registerColumns } from '../../accounts/registers.ts'
import { type CopiedRegister, copiedRegisters, type RegisterRow, type Registers } from './end.ts'

/** Registers whose rows entries name, which are copied before the rest. */
const namedBy = { accounts: 'id', prices: 'version' } as const

/** Rows of one end that the other has not, or has otherwise. */
export function changedRows(
  name: CopiedRegister,
  from: readonly RegisterRow[],
  to: readonly RegisterRow[],
): RegisterRow[] {
  const there = new Set(to.map((row) => textOf(name, row)))
  return from.filter((row) => !there.has(textOf(name, row)))
}

/** Of each register how many rows are not the same on both sides, in words; none where all are. */
export function findDifferences(one: Registers, other: Registers): string[] {
  return copiedRegisters.flatMap((name) => {
    const count = changedRows(name, one[name], other[name]).length + changedRows(name, other[name], one[name]).length
    return count === 0 ? [] : [`${name}: ${count} rows differ`]
  })
}

/** Rows by their names that the other end has none of. */
export function missingRows(
  name: keyof typeof namedBy,
  from: readonly RegisterRow[],
  to: readonly RegisterRow[],
): RegisterRow[] {
  const there = new Set(to.map((row) => row[namedBy[name]]))
  return from.filter((row) => !there.has(row[namedBy[name]]))
}

function textOf(name: CopiedRegister, row: RegisterRow): string {
  return JSON.stringify(
    Object.keys(registerColumns(name)).map((column) => (row[column] === null ? null : String(row[column]))),
  )
}
