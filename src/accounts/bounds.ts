/** A value of a column that stores a bound, such as a limit. */
type BoundValue = string | number | bigint | null

/** How a bound, such as a limit, is stored and shown. @property name its name in the audit trail and for operators */
export type BoundForm<T> = {
  name: string
  columns: Readonly<Record<string, 'text' | 'integer'>>
  read(row: Readonly<Record<string, unknown>>): T | undefined
  write(bound: T | undefined): Readonly<Record<string, BoundValue>>
  tell(bound: T): string | number
}

/** The wanted bounds. A bound that is left out stays. Null removes a bound. */
export type BoundWishes<B> = { [Name in keyof B]?: B[Name] | null }

type Forms<B> = { readonly [Name in keyof B]: BoundForm<NonNullable<B[Name]>> }

/** Makes the functions that read, write and show the bounds of one kind of row. @param forms the form of each bound */
export function createBounds<B extends object>(forms: Forms<B>) {
  const rows = Object.entries(forms) as [keyof B, BoundForm<unknown>][]
  const ofEach = (make: (name: keyof B, form: BoundForm<unknown>) => unknown): B =>
    Object.fromEntries(rows.map(([name, form]) => [name, make(name, form)])) as B
  const columns: Readonly<Record<string, 'text' | 'integer'>> = Object.assign({}, ...rows.map(([, row]) => row.columns))
  return {
    none: ofEach(() => undefined),
    /** The columns that store the bounds, with their kinds. */
    columns,
    /** Reads the bounds of a row. @param row the values by column */
    read: (row: Readonly<Record<string, unknown>>): B => ofEach((_, { read }) => read(row)),
    /** Converts bounds to column values. The inverse of `read`. */
    values: (bounds: B): Record<string, BoundValue> =>
      Object.assign({}, ...rows.map(([name, { write }]) => write(bounds[name]))),
    isBounded: (bounds: B): boolean => rows.some(([name]) => bounds[name] !== undefined),
    after: (before: B, wishes: BoundWishes<B>): B =>
      ofEach((name) => (wishes[name] === undefined ? before[name] : (wishes[name] ?? undefined))),
    /** Describes the bounds, for the audit trail and for the version of a row. */
    tell: (bounds: B): Record<string, string | number | null> =>
      Object.fromEntries(
        rows.map(([key, { name, tell }]) => [name, bounds[key] === undefined ? null : tell(bounds[key])]),
      ),
  }
}
