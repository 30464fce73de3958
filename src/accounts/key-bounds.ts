import { type BoundForm, createBounds } from './bounds.ts'
import { type Budget, type BudgetPeriod, formatBudget } from './budget.ts'
import { formatCredits } from './credit.ts'
import { mayHoldKey } from './keys.ts'

/*
 * The bounds of accounts, and the bounds that make a key narrower than its account (ruling R15). A key and its
 * successors by rotation are one scope, which has the id of the first key. All these keys have the same bounds and
 * spend the same budget. The scope of an account or a person is its own id.
 */

/** The bounds of a key. A field is undefined if the key has no such bound. */
export type KeyBounds = {
  budget: Budget | undefined
  requestsPerMinute: number | undefined
  /** Ids and aliases as clients write them. An entry that ends in `*` stands for all models with that prefix. */
  models: readonly string[] | undefined
  /**
   * The id of the person who uses the key. This id limits nothing. A key and its successors have the same person
   * (ruling Y21).
   */
  person: string | undefined
  /** Labels of the key's requests, such as `project=apollo`, sorted by dimension. */
  labels: readonly string[] | undefined
  /** Dimensions of labels, such as `project`. For these, the client may send another label than the key's own. */
  mayChoose: readonly string[] | undefined
  /**
   * The id of the key in a system of the operator. Like the metadata, it limits nothing. A key and its successors have
   * the same id.
   */
  externalId: string | undefined
  /** Texts that the operator attaches to the key, sorted by their names. */
  metadata: Metadata | undefined
}

/** Bounds that no store checks. A shared store is asked about every other bound of a key (desk.ts). */
export type UncheckedBound = 'models' | 'person' | 'labels' | 'mayChoose' | 'externalId' | 'metadata'

export type Metadata = Readonly<Record<string, string>>

/** The bounds of an account, over all its keys and replicas. An undefined field sets no bound. */
export type AccountBounds = Pick<KeyBounds, 'budget' | 'requestsPerMinute' | 'externalId' | 'metadata'> & {
  /**
   * The balances below which `credit_low` is sent for this account, in nano-credits. They replace the configured
   * balances.
   */
  warnNanos: readonly bigint[] | undefined
  /**
   * Credit that the account gets in each month of the reporting zone, in nano-credits, and whether the unspent rest
   * lapses.
   */
  grant: { nanos: bigint; lapses: boolean } | undefined
  /** The plan in the configuration that sets the account's prices (ruling C11). */
  plan: string | undefined
}

/**
 * The bounds of a person, over all their keys and sessions (ruling Y20). A person with bounds belongs to one account,
 * and so do their keys.
 */
export type PersonBounds = Pick<KeyBounds, 'budget' | 'requestsPerMinute'>

const budget: BoundForm<Budget> = {
  name: 'budget',
  columns: { budget: 'integer', budget_per: 'text' },
  read: ({ budget, budget_per: per }) =>
    budget === null ? undefined : { nanos: budget as bigint, per: (per as BudgetPeriod | null) ?? undefined },
  write: (budget) => ({ budget: budget?.nanos ?? null, budget_per: budget?.per ?? null }),
  tell: formatBudget,
}

/** The largest limit of requests per minute. The database has 32 bits for it. */
export const rateMax = 1_000_000

const requestsPerMinute: BoundForm<number> = {
  name: 'rpm',
  columns: { rpm: 'integer' },
  read: ({ rpm }) => (rpm === null ? undefined : Number(rpm)),
  write: (rate) => ({ rpm: rate ?? null }),
  tell: (rate) => rate,
}

/** Describes a bound that is a list of words. A column with the bound's name stores them, separated by commas. */
function listForm(name: string): BoundForm<readonly string[]> {
  return {
    name,
    columns: { [name]: 'text' },
    read: ({ [name]: text }) => (text === null ? undefined : (text as string).split(',')),
    write: (words) => ({ [name]: words?.join(',') ?? null }),
    tell: (words) => words.join(','),
  }
}

/** The form of a bound that is one text, stored in a column of the same name. */
function textForm(name: string): BoundForm<string> {
  return {
    name,
    columns: { [name]: 'text' },
    read: ({ [name]: text }) => (text as string | null) ?? undefined,
    write: (text) => ({ [name]: text ?? null }),
    tell: (text) => text,
  }
}

const externalId = textForm('external_id')

const metadata: BoundForm<Metadata> = {
  name: 'metadata',
  columns: { metadata: 'text' },
  read: ({ metadata }) => (metadata === null ? undefined : (JSON.parse(metadata as string) as Metadata)),
  write: (metadata) => ({ metadata: metadata ? JSON.stringify(metadata) : null }),
  tell: (metadata) => JSON.stringify(metadata),
}

/** Every bound of a key. The books, the stores and the copying of a store use this table. */
export const keyBounds = createBounds<KeyBounds>({
  budget,
  requestsPerMinute,
  models: listForm('models'),
  person: textForm('person'),
  labels: listForm('labels'),
  mayChoose: listForm('may_choose'),
  externalId,
  metadata,
})

/** The names of the bounds that people see. The other two are for programs of the operator. */
export const seenBounds = Object.keys(keyBounds.tell(keyBounds.none)).filter(
  (name) => name !== externalId.name && name !== metadata.name,
)

/** Every bound of an account. The modules that use `keyBounds` use this table too. */
export const accountBounds = createBounds<AccountBounds>({
  budget,
  requestsPerMinute,
  warnNanos: {
    name: 'warn',
    columns: { warn: 'text' },
    read: ({ warn }) => (warn === null ? undefined : readLevels(warn as string)),
    write: (levels) => ({ warn: levels?.join() ?? null }),
    tell: (levels) => levels.map(formatCredits).join(),
  },
  grant: {
    name: 'grant',
    columns: { monthly_grant: 'integer', grant_lapses: 'integer' },
    read: ({ monthly_grant: nanos, grant_lapses: lapses }) =>
      nanos === null ? undefined : { nanos: nanos as bigint, lapses: Number(lapses) === 1 },
    write: (grant) => ({ monthly_grant: grant?.nanos ?? null, grant_lapses: grant ? Number(grant.lapses) : null }),
    tell: ({ nanos, lapses }) => `${formatCredits(nanos)}/month${lapses ? ', lapses' : ''}`,
  },
  plan: textForm('plan'),
  externalId,
  metadata,
})

/** Every bound of a person, used in the same places as `keyBounds`. */
export const personBounds = createBounds<PersonBounds>({ budget, requestsPerMinute })

/** Reads the column `warn`, which lists the balances below which an account warns. @returns nano-credits */
export function readLevels(warn: string): bigint[] {
  return warn.split(',').map(BigInt)
}

/** The most models and prefixes of a key. Each request is compared with all of them. */
export const modelsMax = 100

const modelCharsMax = 200

/** Parses models as people write them: `a,b*`. @throws RangeError with a message for the person who wrote it */
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

/** Whether a key may use a model, by the id or alias in the request. */
export function mayUse(models: readonly string[] | undefined, asked: string): boolean {
  return (
    models === undefined ||
    models.some((model) => (model.endsWith('*') ? asked.startsWith(model.slice(0, -1)) : asked === model))
  )
}

/** The most names in metadata. */
export const metadataMax = 50
const metadataName = /^[A-Za-z0-9][\w.:/-]{0,63}$/
const metadataCharsMax = 500

/** Checks metadata and sorts it by name. @throws RangeError with a message for the person who wrote it */
export function checkMetadata(asked: Metadata): Metadata {
  const rows = Object.entries(asked).sort(([a], [b]) => (a < b ? -1 : 1))
  if (rows.length === 0 || rows.length > metadataMax) throw new RangeError(`Metadata has 1 to ${metadataMax} names.`)
  for (const [name, value] of rows) {
    // The audit trail keeps names and values for good, so neither may contain a key (ruling U5).
    if (mayHoldKey(name) || mayHoldKey(value)) throw new RangeError('Metadata is not secret: it must not hold a key.')
    if (!metadataName.test(name)) throw new RangeError('A name of metadata has 1 to 64 letters, digits and _ . : / -')
    if (value.length > metadataCharsMax || /\p{C}/u.test(value))
      throw new RangeError(`The value of "${name}" has more than ${metadataCharsMax} characters, or invisible ones.`)
  }
  return Object.fromEntries(rows)
}

/** Parses metadata as people type it: `team=red,order=12`. @throws RangeError */
export function parseMetadata(text: string): Metadata {
  const pairs = text.split(',').map((pair) => /^\s*([^=]*?)\s*=(.*)$/.exec(pair)?.slice(1))
  const rows = pairs.filter((pair) => pair !== undefined)
  if (rows.length < pairs.length || new Set(rows.map(([name]) => name)).size < rows.length)
    throw new RangeError('Write metadata as names and values, each name once, such as team=red,order=12.')
  return checkMetadata(Object.fromEntries(rows))
}

/** Checks an id from a system of the operator. @throws RangeError */
export function checkExternalId(id: string): string {
  if (mayHoldKey(id)) throw new RangeError('An external id is not secret: it must not hold a key.')
  if (!/^[^\s\p{C}]{1,200}$/u.test(id))
    throw new RangeError('An external id has 1 to 200 characters, all of which can be seen, and no blanks.')
  return id
}
