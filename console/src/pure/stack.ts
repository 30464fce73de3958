export type Values = readonly (number | null)[]

/**
 * Stacks series: returns for each the height of its upper edge. A gap counts as 0, unless all series have a gap there.
 * @returns in the order of the series, the first at the bottom
 */
export function stack(series: readonly Values[]): (number | null)[][] {
  const length = series[0]?.length ?? 0
  const heights: (number | null)[] = Array.from({ length }, (_, at) =>
    series.every((values) => (values[at] ?? null) === null) ? null : 0,
  )
  return series.map((values) =>
    heights.map((height, at) => {
      if (height === null) return null
      const top = height + (values[at] ?? 0)
      heights[at] = top
      return top
    }),
  )
}

/** Sums all series at each index. */
export function sumAt(series: readonly Values[]): (number | null)[] {
  return series.length === 0 ? [] : stack(series).at(-1)!
}

/** Whether a series has any value other than 0. */
export function hasAmount(values: Values): boolean {
  return values.some((value) => value !== null && value !== 0)
}

/** Finds the largest value. @returns undefined if there is no value at all */
export function largest(values: Values): { at: number; value: number } | undefined {
  let found: { at: number; value: number } | undefined
  for (const [at, value] of values.entries()) {
    if (value !== null && value !== undefined && (found === undefined || value > found.value)) found = { at, value }
  }
  return found
}
