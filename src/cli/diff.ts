/** Returns the lines that differ, each after `-` or `+`, in the order of the new text. Equal lines are left out. */
export function diffLines(before: string, after: string): string[] {
  const [a, b] = [linesOf(before), linesOf(after)]
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start++
  let end = 0
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end++
  return compareLines(a.slice(start, a.length - end), b.slice(start, b.length - end))
}

function linesOf(text: string): string[] {
  return text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/)
}

/** The most changes that are searched for. If two texts differ in more lines, all lines count as changed. */
const changesMax = 2_000

/**
 * Finds the fewest changes that turn one list into the other. The time depends on the number of changes and the
 * length of the lists, not on the product of both lengths (E. Myers, "An O(ND) Difference Algorithm", 1986).
 */
function compareLines(left: readonly string[], right: readonly string[]): string[] {
  // One array for each number of changes. For each diagonal, the array has the furthest position on the left that these
  // changes can reach. A diagonal's number is the left position minus the right position.
  const rounds: Int32Array[] = []
  for (let changes = 0; changes <= changesMax; changes++) {
    const before = rounds.at(-1)
    const furthest = new Int32Array(2 * changes + 3)
    rounds.push(furthest)
    for (let diagonal = -changes; diagonal <= changes; diagonal += 2) {
      let i = before ? stepOf(before, changes, diagonal).i : 0
      while (i < left.length && i - diagonal < right.length && left[i] === right[i - diagonal]) i++
      furthest[diagonal + changes + 1] = i
      if (i >= left.length && i - diagonal >= right.length) return changesOf(left, right, rounds)
    }
  }
  return [...left.map((line) => `- ${line}`), ...right.map((line) => `+ ${line}`)]
}

/**
 * Finds the last change on the shortest way to a diagonal: an added line (`isNew`) or a removed line. `i` is the
 * position on the left after this change.
 * @param before the furthest positions that are reached with one change fewer
 */
function stepOf(before: Int32Array, changes: number, diagonal: number): { isNew: boolean; i: number } {
  const [added, removed] = [before[diagonal + changes + 1]!, before[diagonal + changes - 1]!]
  const isNew = diagonal === -changes || (diagonal !== changes && removed < added)
  return { isNew, i: isNew ? added : removed + 1 }
}

/** Collects the changes. Each step goes back by one change, from the end of the texts to their beginning. */
function changesOf(left: readonly string[], right: readonly string[], rounds: readonly Int32Array[]): string[] {
  const told: string[] = []
  let diagonal = left.length - right.length
  for (let changes = rounds.length - 1; changes > 0; changes--) {
    const { isNew, i } = stepOf(rounds[changes - 1]!, changes, diagonal)
    told.push(isNew ? `+ ${right[i - diagonal - 1]}` : `- ${left[i - 1]}`)
    diagonal += isNew ? 1 : -1
  }
  return told.reverse()
}
