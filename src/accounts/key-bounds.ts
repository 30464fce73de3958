import { type Budget, type BudgetPeriod, formatBudget } from './budget.ts'

/*
 * The bounds that make a key narrower than its account (ruling R15). All keys of a line of rotations are one scope, named by the
 * first of them. They have the same bounds and spend the same budget.
 */

/** A field is undefined if the key has no such limit. */
export type KeyBounds = {
  budget: Budget | undefined
  requestsPerMinute: number | undefined
  /** Ids and aliases as clients write them; one that ends in `*` stands for all that begin so. */
  models: readonly string[] | undefined
  /** The id of the person who uses it. This limits nothing, but is the same for a line of rotations (ruling Y21). */
  person: string | undefined
}

type BoundValue = string | number | bigint | null

/** How a bound is kept and shown. @property name of it in the audit and for operators */
type BoundForm<T> = {
  name: string
  columns: Readonly<Record<string, 'text' | 'integer'>>
  read(row: Readonly<Record<string, unknown>>): T | undefined
  write(bound: T | undefined): Readonly<Record<string, BoundValue>>
  tell(bound: T): string | number
}

/** Every bound of a key. Books, stores and the copy read this table. */
const forms = {
  budget: {
    name: 'budget',
    columns: { budget: 'integer', budget_per: 'text' },
    read: ({ budget, budget_per: per }) =>
      budget === null ? undefined : { nanos: budget as bigint, per: (per as BudgetPeriod | null) ?? undefined },
    write: (budget) => ({ budget: budget?.nanos ?? null, budget_per: budget?.per ?? null }),
    tell: formatBudget,
  },
  requestsPerMinute: {
    name: 'rpm',
    columns: { rpm: 'integer' },
    read: ({ rpm }) => (rpm === null ? undefined : Number(rpm)),
    write: (rate) => ({ rpm: rate ?? null }),
    tell: (rate) => rate,
  },
  models: {
    name: 'models',
    columns: { models: 'text' },
    read: ({ models }) => (models === null ? undefined : (models as string).split(',')),
    write: (models) => ({ models: models === undefined ? null : formatModels(models) }),
    tell: formatModels,
  },
  person: {
    name: 'person',
    columns: { person: 'text' },
    read: ({ person }) => (person as string | null) ?? undefined,
    write: (person) => ({ person: person ?? null }),
    tell: (person) => person,
  },
} satisfies { [Name in keyof KeyBounds]: BoundForm<NonNullable<KeyBounds[Name]>> }

const rows = Object.entries(forms) as [keyof KeyBounds, BoundForm<unknown>][]

function ofEach(make: (name: keyof KeyBounds, form: BoundForm<unknown>) => unknown): KeyBounds {
  return Object.fromEntries(rows.map(([name, form]) => [name, make(name, form)])) as unknown as KeyBounds
}

export const unbounded: KeyBounds = ofEach(() => undefined)

/** Columns of keys that hold their bounds. */
export const boundColumns = Object.assign({}, ...rows.map(([, { columns }]) => columns)) as Record<
  string,
  'text' | 'integer'
>

/** @param row of a key, by columns. */
export function readBoundColumns(row: Readonly<Record<string, unknown>>): KeyBounds {
  return ofEach((_, { read }) => read(row))
}

/** The inverse. */
export function boundValues(bounds: KeyBounds): Record<string, BoundValue> {
  return Object.assign({}, ...rows.map(([name, { write }]) => write(bounds[name])))
}

export function isBounded(bounds: KeyBounds): boolean {
  return rows.some(([name]) => bounds[name] !== undefined)
}

/** Bounds as somebody wishes them. A bound that is left out stays. Null takes it away. */
export type BoundWishes = { [Name in keyof KeyBounds]?: KeyBounds[Name] | null }

export function boundsAfter(before: KeyBounds, wishes: BoundWishes): KeyBounds {
  return ofEach((name) => (wishes[name] === undefined ? before[name] : (wishes[name] ?? undefined)))
}

/** For the audit, and for what tells one version of a key from another. */
export function tellBounds(bounds: KeyBounds): Record<string, string | number | null> {
  return Object.fromEntries(
    rows.map(([key, { name, tell }]) => [name, bounds[key] === undefined ? null : tell(bounds[key])]),
  )
}

/** The most ids and beginnings of ids that a key may have: each request is compared with all of them. */
export const modelsMax = 100

const modelCharsMax = 200

/** Parses models as people write them: `a,b*`. @throws RangeError with a text for the person who wrote it. */
export function parseModels(text: string): string[] {
  const models = [...new Set(text.split(',').map((one) => one.trim()))]
  if (models.includes('')) throw new RangeError('Write ids with commas between them, such as large,small-*.')
  if (models.length > modelsMax) throw new RangeError(`A key names ${modelsMax} models at most.`)
  for (const model of models) {
    if (model.length > modelCharsMax || /[\p{C}\s]/u.test(model))
      throw new RangeError('An id of a model has no blanks and at most 200 characters.')
    if (model.slice(0, -1).includes('*'))
      throw new RangeError('A * stands at the end only: small-* is all that begin so.')
  }
  return models
}

/** The inverse of `parseModels`; a store keeps models in this form. */
export function formatModels(models: readonly string[]): string {
  return models.join(',')
}

/** Whether a key may use a model, by the id or alias in the request. */
export function mayUse(models: readonly string[] | undefined, asked: string): boolean {
  return (
    models === undefined ||
    models.some((model) => (model.endsWith('*') ? asked.startsWith(model.slice(0, -1)) : asked === model))
  )
}
