import { accountBounds, keyBounds, personBounds } from './key-bounds.ts'

/*
 * The registers: what a store keeps beside entries and figures for reports. Their columns are written once, here. Statements that
 * insert, select and copy rows follow, and a test compares both schemas with them (test/store/registers.test.ts).
 */

/** A column of a register. `read` makes of a value of the database what the field of its row is. */
type RegisterColumn<T> = { kind: 'text' | 'integer'; isOptional: boolean; read(value: unknown): T }

type Columns = Readonly<Record<string, RegisterColumn<unknown>>>

/** `created_ms` is the field `createdMs`. */
type Camel<S extends string> = S extends `${infer A}_${infer B}` ? `${A}${Capitalize<Camel<B>>}` : S

type RegisterFields<C extends Columns> = {
  [Name in keyof C & string as Camel<Name>]: ReturnType<C[Name]['read']>
}

const text = <T extends string = string>(): RegisterColumn<T> => column('text', (value) => value as T)
const number = () => column('integer', Number)
const amount = () => column('integer', (value) => value as bigint)

/** Empty fields are undefined. */
const optional = <T>({ kind, read }: RegisterColumn<T>): RegisterColumn<T | undefined> => ({
  ...{ kind, isOptional: true },
  read: (value) => (value === null ? undefined : read(value)),
})

/** Empty fields are null. */
const nullable = <T>({ kind, read }: RegisterColumn<T>): RegisterColumn<T | null> => ({
  ...{ kind, isOptional: true },
  read: (value) => (value === null ? null : read(value)),
})

function column<T>(kind: 'text' | 'integer', read: (value: unknown) => T): RegisterColumn<T> {
  return { kind, isOptional: false, read }
}

export const registers = {
  /** Customers. Beside these they have the columns of their bounds. */
  accounts: {
    id: text(),
    name: text(),
    state: text<'active' | 'suspended'>(),
    created_ms: number(),
    /** The reference of the last monthly grant. */
    last_grant: optional(text()),
  },
  /** Keys by their digests, never themselves. Beside these they have the columns of their bounds. */
  keys: {
    id: text(),
    account_id: text(),
    digest: text(),
    prefix: text(),
    /** The name that the owner gave it. Several keys may have the same: a rotated one and its successor do. */
    label: optional(text()),
    created_ms: number(),
    /** Its own end, or that of its grace where it was rotated and that is earlier. */
    expires_ms: optional(number()),
    revoked_ms: optional(number()),
    last_used_ms: optional(number()),
    /** The id of the first key of its line of rotations, which shares its bounds and what was spent. */
    scope: optional(text()),
    /** The end that people gave it: what its successor has too. */
    own_expires_ms: optional(number()),
    /** The sign-in that it is the key of (ruling Y20). */
    session: optional(text()),
    /** The gateway that made a foreign key. Empty for keys of ours. The second release reads such a row and refuses the key. */
    origin: optional(text()),
  },
  /** The content of price versions. */
  prices: {
    version: text(),
    input: amount(),
    cache_read: amount(),
    cache_write: amount(),
    cache_write_1h: amount(),
    output: amount(),
    /** Steps and calls, see `formatTerms`. */
    terms: optional(text()),
  },
  /** The texts of price lists that entries of form 3 name. */
  lists: { digest: text(), text: text() },
  /**
   * People who use keys. They stand beside the chain, and entries name them by id alone (ruling Y21). The row of a person who was
   * erased stays, with its id and nothing of theirs. Beside these they have the columns of their bounds.
   */
  persons: {
    id: text(),
    name: optional(text()),
    /** Their id in the operator's own directory. */
    external_id: optional(text()),
    /** In lower case. */
    email: optional(text()),
    /** If it has a value, all keys of the person are of this account. A person with bounds has one. */
    account_id: optional(text()),
    created_ms: number(),
    erased_ms: optional(number()),
    /** The person that this identity belongs to, if it is a second one of theirs. */
    linked_id: optional(text()),
    /** Their identity at the provider, if they have signed in: a subject of an issuer. */
    issuer: optional(text()),
    subject: optional(text()),
  },
  /** Entries that a correction names, with the times at which they count (src/accounts/corrections.ts). */
  shifted: { account_id: text(), seq: number(), posted_ms: number(), effective_ms: number() },
  /** Persons who may operate the gateway. The books have the digest of a token, never the token. */
  operators: {
    id: text(),
    name: text(),
    /** `duty` narrows it. The second release knows these two only, and reads none of the other columns. */
    role: text<'admin' | 'viewer'>(),
    /** Whether a viewer sees sums, prices and statements, and nothing else (Y22). */
    duty: optional(text<'finance'>()),
    digest: text(),
    /** The token's first characters. */
    prefix: text(),
    created_ms: number(),
    expires_ms: number(),
    revoked_ms: optional(number()),
  },
  /**
   * A browser that has shown a token or a key, known by its cookie, or the command line with a token of one minute. A
   * session ends with the operator or key that it was made for.
   */
  sessions: {
    digest: text(),
    kind: text<'cookie' | 'command'>(),
    operator_id: optional(text()),
    key_id: optional(text()),
    /** For a `command`: the person who runs it, as named in the audit trail. */
    actor: optional(text()),
    created_ms: number(),
    /** Time of the last request, to within some minutes. */
    seen_ms: number(),
    /** The session ends then, however often it is used. */
    expires_ms: number(),
    /** The person who signed in at the identity provider, and their role there (ruling Y22). `link`: see `makeLinkToken`. */
    person_id: optional(text()),
    role: optional(text()),
    /** Tokens of the provider, sealed. */
    sealed: optional(text()),
  },
  /**
   * People who have signed in on a machine (ruling Y20). Tokens name the key by its digest, and are made anew from the generation
   * at each refresh. So the store has none of them.
   */
  sign_ins: {
    id: text(),
    key_id: text(),
    account_id: text(),
    person_id: text(),
    role: text(),
    /** The number of refreshes. */
    generation: number(),
    /** When the tokens of this generation were made. */
    refreshed_ms: number(),
    created_ms: number(),
    /** The sign-in ends then, however often it is refreshed. */
    expires_ms: number(),
    ended_ms: optional(number()),
    ended_why: optional(text()),
    /** The program that asked, as it calls itself. */
    agent: optional(text()),
    address: optional(text()),
    /** The provider's token for refreshes, sealed. */
    sealed: optional(text()),
    /** The last good answer of the provider. */
    asked_ms: number(),
    /** When a server began to ask the provider for the next refresh. */
    claimed_ms: optional(number()),
  },
  /** Sign-ins that were begun: device codes (RFC 8628) and authorization codes, by their digests. */
  oauth_grants: {
    id: text(),
    kind: text<'device' | 'code'>(),
    digest: text(),
    /** Of the code that a person types. */
    user_digest: optional(text()),
    state: text<'pending' | 'approved' | 'denied' | 'used'>(),
    created_ms: number(),
    expires_ms: number(),
    polled_ms: optional(number()),
    agent: optional(text()),
    address: optional(text()),
    /** Of an authorization code: the challenge (RFC 7636), and where the code is sent. */
    challenge: optional(text()),
    redirect_uri: optional(text()),
    person_id: optional(text()),
    account_id: optional(text()),
    role: optional(text()),
    models: optional(text()),
    sealed: optional(text()),
  },
  /** The parts of statements of closed months that are in no entry, as JSON (`StatementHeader`). */
  statements: { account_id: text(), month: text(), header: text() },
  /** Apart from their statement, since names can be erased (ruling Y21). */
  statement_people: {
    account_id: text(),
    month: text(),
    person: text(),
    /** The person that this identity belonged to. */
    counts_as: text(),
    name: text(),
  },
  /** Spending of keys, accounts and people with budgets. */
  spends: {
    scope: text(),
    from_ms: number(),
    until_ms: number(),
    spent: amount(),
    warned: number(),
    /** The last entry that is counted, of an account. */
    seq: nullable(number()),
  },
  /** Warnings that wait to be sent. */
  outbox: { id: text(), event: text(), data: text(), at_ms: number(), next_ms: number(), tries: optional(text()) },
  /** Lines of the list of needs that were noticed, so that each is announced once (src/accounts/warnings.ts). */
  needs: { id: text(), since_ms: number(), gone_ms: nullable(number()), is_told: number() },
  /** Results of creations that may be asked for again (Idempotency-Key), as JSON without secrets. */
  made: { actor: text(), once: text(), asked: text(), result: text(), made_ms: number() },
  /** The audit trail; its records are never changed. */
  audit: {
    seq: number(),
    at_ms: number(),
    actor: text(),
    address: nullable(text()),
    operation: text(),
    object: text(),
    /** JSON objects with what has changed; null if there was, or is, nothing. */
    before: nullable(text()),
    after: nullable(text()),
    digest: text(),
  },
} satisfies Record<string, Columns>

export type RegisterName = keyof typeof registers

/** A row of a register as the books have it: times in Unix milliseconds, amounts in nano-credits. */
export type BookRow<N extends RegisterName> = RegisterFields<(typeof registers)[N]>

/** All columns of a register, whose kinds both schemas have. */
export function registerColumns(name: RegisterName): Readonly<Record<string, { kind: string; isOptional: boolean }>> {
  const bounds = { keys: keyBounds, accounts: accountBounds, persons: personBounds }[name as string]?.columns ?? {}
  const added = Object.entries(bounds).map(([column, kind]) => [column, { kind, isOptional: true }])
  return { ...registers[name], ...Object.fromEntries(added) }
}

/** @param row of the database, with all columns of the register. */
export function readFields<C extends Columns>(columns: C, row: Readonly<Record<string, unknown>>): RegisterFields<C> {
  const read = Object.entries(columns).map(([name, column]) => [fieldOf(name), column.read(row[name])])
  return Object.fromEntries(read) as RegisterFields<C>
}

/** The inverse: values by columns. */
export function columnsOf<C extends Columns>(columns: C, fields: RegisterFields<C>): Record<keyof C & string, Stored> {
  return valuesOf(Object.keys(columns), fields) as Record<keyof C & string, Stored>
}

/** The stored values of those fields that change, and of no others. */
export function changesOf<C extends Columns>(columns: C, fields: Partial<RegisterFields<C>>): Record<string, Stored> {
  return valuesOf(
    Object.keys(columns).filter((name) => fieldOf(name) in fields),
    fields,
  )
}

function valuesOf(columns: readonly string[], fields: object): Record<string, Stored> {
  const of = fields as Record<string, Stored | undefined>
  return Object.fromEntries(columns.map((name) => [name, of[fieldOf(name)] ?? null]))
}

/** A value as a database takes it. */
type Stored = string | number | bigint | null

/** The field of each column, made once: when a server starts it reads a row for each account and key. */
const fields = new Map(
  Object.values(registers)
    .flatMap((columns) => Object.keys(columns))
    .map((name) => [name, name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())]),
)

function fieldOf(column: string): string {
  return fields.get(column)!
}
