/** Returns the lines that differ, in the order of the new text, each after `-` or `+`. Common lines are left out. */
export function diffLines(before: string, after: string): string[] {
  const [a, b] = [linesOf(before), linesOf(after)]
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start++
  let end = 0
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end++
  const [left, right] = [a.slice(start, a.length - end), b.slice(start, b.length - end)]
  const told: string[] = []
  let [i, j] = [0, 0]
  const common = commonLengths(left, right)
  while (i < left.length || j < right.length) {
    if (i < left.length && j < right.length && left[i] === right[j]) {
      i++
      j++
    } else if (j >= right.length || (i < left.length && common(i + 1, j) >= common(i, j + 1)))
      told.push(`- ${left[i++]}`)
    else told.push(`+ ${right[j++]}`)
  }
  return told
}

function linesOf(text: string): string[] {
  return text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/)
}

/** Counts the common lines of `a` from `i` on and `b` from `j` on. For very large texts all lines count as changed. */
function commonLengths(a: readonly string[], b: readonly string[]): (i: number, j: number) => number {
  if (a.length * b.length > 4_000_000) return () => 0
  const width = b.length + 1
  const table = new Uint32Array((a.length + 1) * width)
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      table[i * width + j] =
        a[i] === b[j]
          ? table[(i + 1) * width + j + 1]! + 1
          : Math.max(table[(i + 1) * width + j]!, table[i * width + j + 1]!)
    }
  }
  return (i, j) => table[i * width + j] ?? 0
}
