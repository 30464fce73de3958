import { type Registers, type Row, registerColumns, registerKeys } from './end.ts'

const names = Object.keys(registerKeys) as (keyof typeof registerKeys)[]

/** Rows of one end that the other has not, or has otherwise. */
export function changedRows(name: keyof typeof registerKeys, from: readonly Row[], to: readonly Row[]): Row[] {
  const there = new Set(to.map((row) => textOf(name, row)))
  return from.filter((row) => !there.has(textOf(name, row)))
}

/** Of each register how many rows are not the same on both sides, in words; none where all are. */
export function findDifferences(one: Registers, other: Registers): string[] {
  return names.flatMap((name) => {
    const count = changedRows(name, one[name], other[name]).length + changedRows(name, other[name], one[name]).length
    return count === 0 ? [] : [`${name}: ${count} rows differ`]
  })
}

/** Rows by their names that the other end has none of. */
export function missingRows(name: keyof typeof registerKeys, from: readonly Row[], to: readonly Row[]): Row[] {
  const there = new Set(to.map((row) => row[registerKeys[name]]))
  return from.filter((row) => !there.has(row[registerKeys[name]]))
}

function textOf(name: keyof typeof registerKeys, row: Row): string {
  return JSON.stringify(registerColumns[name].map((column) => (row[column] === null ? null : String(row[column]))))
}
