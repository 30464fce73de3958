/** A value of a column that holds a bound. */
type BoundValue = string | number | bigint | null

/** How a bound is kept and shown. @property name of it in the audit and for operators */
export type BoundForm<T> = {
  name: string
  columns: Readonly<Record<string, 'text' | 'integer'>>
  read(row: Readonly<Record<string, unknown>>): T | undefined
  write(bound: T | undefined): Readonly<Record<string, BoundValue>>
  tell(bound: T): string | number
}

/** Bounds as somebody wishes them. A bound that is left out stays. Null takes it away. */
export type BoundWishes<B> = { [Name in keyof B]?: B[Name] | null }

type Forms<B> = { readonly [Name in keyof B]: BoundForm<NonNullable<B[Name]>> }

/** All that is done with the bounds of one kind of row, made from a table with a form for each bound. */
export function createBounds<B extends object>(forms: Forms<B>) {
  const rows = Object.entries(forms) as [keyof B, BoundForm<unknown>][]
  const ofEach = (make: (name: keyof B, form: BoundForm<unknown>) => unknown): B =>
    Object.fromEntries(rows.map(([name, form]) => [name, make(name, form)])) as B
  const columns: Readonly<Record<string, 'text' | 'integer'>> = Object.assign({}, ...rows.map(([, row]) => row.columns))
  return {
    none: ofEach(() => undefined),
    /** Columns that hold the bounds, with their kinds. */
    columns,
    /** @param row by columns. */
    read: (row: Readonly<Record<string, unknown>>): B => ofEach((_, { read }) => read(row)),
    /** The inverse of `read`. */
    values: (bounds: B): Record<string, BoundValue> =>
      Object.assign({}, ...rows.map(([name, { write }]) => write(bounds[name]))),
    isBounded: (bounds: B): boolean => rows.some(([name]) => bounds[name] !== undefined),
    after: (before: B, wishes: BoundWishes<B>): B =>
      ofEach((name) => (wishes[name] === undefined ? before[name] : (wishes[name] ?? undefined))),
    /** For the audit, and for what tells one version of a row from another. */
    tell: (bounds: B): Record<string, string | number | null> =>
      Object.fromEntries(
        rows.map(([key, { name, tell }]) => [name, bounds[key] === undefined ? null : tell(bounds[key])]),
      ),
  }
}
