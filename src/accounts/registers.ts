import { accountBounds, keyBounds, personBounds } from './key-bounds.ts'

/*
 * The registers: the tables of a store besides entries and figures for reports. Their columns are defined only here.
 * Statements that insert, select and copy rows are made from these definitions. A test compares these definitions with
 * the schemas of both databases (test/store/registers.test.ts).
 */

/** A column of a register. `read` converts a database value to the field of a row. */
type RegisterColumn<T> = { kind: 'text' | 'integer'; isOptional: boolean; read(value: unknown): T }

type Columns = Readonly<Record<string, RegisterColumn<unknown>>>

/** Converts a column name to a field name: `created_ms` becomes `createdMs`. */
type Camel<S extends string> = S extends `${infer A}_${infer B}` ? `${A}${Capitalize<Camel<B>>}` : S

type RegisterFields<C extends Columns> = {
  [Name in keyof C & string as Camel<Name>]: ReturnType<C[Name]['read']>
}

const text = <T extends string = string>(): RegisterColumn<T> => column('text', (value) => value as T)
const number = () => column('integer', Number)
const amount = () => column('integer', (value) => value as bigint)

/** A column that can be NULL. A NULL is read as undefined. */
const optional = <T>({ kind, read }: RegisterColumn<T>): RegisterColumn<T | undefined> => ({
  ...{ kind, isOptional: true },
  read: (value) => (value === null ? undefined : read(value)),
})

/** A column whose empty fields are null. */
const nullable = <T>({ kind, read }: RegisterColumn<T>): RegisterColumn<T | null> => ({
  ...{ kind, isOptional: true },
  read: (value) => (value === null ? null : read(value)),
})

function column<T>(kind: 'text' | 'integer', read: (value: unknown) => T): RegisterColumn<T> {
  return { kind, isOptional: false, read }
}

export const registers = {
  /** Customers. The columns of their bounds are added to these columns. */
  accounts: {
    id: text(),
    name: text(),
    state: text<'active' | 'suspended'>(),
    created_ms: number(),
    /** The reference of the last monthly grant. */
    last_grant: optional(text()),
  },
  /** Keys. The store has a key's digest, never its secret. The columns of key bounds are added to these columns. */
  keys: {
    id: text(),
    account_id: text(),
    digest: text(),
    prefix: text(),
    /**
     * The name that the owner gave the key. Several keys may have the same name, for example a rotated key and its
     * successor.
     */
    label: optional(text()),
    created_ms: number(),
    /** When the key expires: its own expiry, or the end of the grace period after a rotation if that is earlier. */
    expires_ms: optional(number()),
    revoked_ms: optional(number()),
    last_used_ms: optional(number()),
    /**
     * The id of the first key of the line (a key with its successors). All keys of the line share bounds and spending.
     */
    scope: optional(text()),
    /** The expiry that a person has set for the key. A key that replaces this key gets the same expiry. */
    own_expires_ms: optional(number()),
    /** The sign-in to which the key belongs (ruling Y20). */
    session: optional(text()),
    /**
     * The other gateway that made the key; empty for our own keys. The second release of triwire can read such a row,
     * but it refuses the key.
     */
    origin: optional(text()),
  },
  /** The prices of each price version. */
  prices: {
    version: text(),
    input: amount(),
    cache_read: amount(),
    cache_write: amount(),
    cache_write_1h: amount(),
    output: amount(),
    /** The prices of steps and calls as text, see `formatTerms`. */
    terms: optional(text()),
  },
  /** The texts of price lists to which entries of form 3 refer. */
  lists: { digest: text(), text: text() },
  /**
   * People who use keys. They are not in the ledger's chain of digests; entries contain only their ids (ruling Y21).
   * The row of an erased person stays, with only its id. The columns of a person's bounds are added to these.
   */
  persons: {
    id: text(),
    name: optional(text()),
    /** The person's id in the operator's own directory. */
    external_id: optional(text()),
    /** The e-mail address in lower case. */
    email: optional(text()),
    /** If set, all keys of the person belong to this account. A person with bounds always has an account. */
    account_id: optional(text()),
    created_ms: number(),
    erased_ms: optional(number()),
    /** The id of the person to whom this row belongs, if the row is a second identity of that person. */
    linked_id: optional(text()),
    /** The identity of the person at the provider: issuer and subject of the sign-in. Empty until the first sign-in. */
    issuer: optional(text()),
    subject: optional(text()),
  },
  /** Entries that a correction names, with the times at which they count (src/accounts/corrections.ts). */
  shifted: { account_id: text(), seq: number(), posted_ms: number(), effective_ms: number() },
  /** People who may operate the gateway. The store has the digest of a token, never the token. */
  operators: {
    id: text(),
    name: text(),
    /**
     * The role of the operator, which `duty` may narrow. `duty` is a column of its own, because the second release of
     * triwire knows only these two roles, and ignores newer columns.
     */
    role: text<'admin' | 'viewer'>(),
    /** If set, a viewer may read only sums, prices and statements (Y22). */
    duty: optional(text<'finance'>()),
    digest: text(),
    /** The token's first characters. */
    prefix: text(),
    created_ms: number(),
    expires_ms: number(),
    revoked_ms: optional(number()),
  },
  /**
   * Sessions of two kinds. A browser that has shown a token or a key is known by its cookie. The command line has
   * tokens that are valid for one minute. A session ends with the operator or key that it was made for.
   */
  sessions: {
    digest: text(),
    kind: text<'cookie' | 'command'>(),
    operator_id: optional(text()),
    key_id: optional(text()),
    /** For a `command`: the person who runs it, as named in the audit trail. */
    actor: optional(text()),
    created_ms: number(),
    /** The time of the last request, accurate to some minutes. */
    seen_ms: number(),
    /** When the session ends, however often it is used. */
    expires_ms: number(),
    /**
     * The person who signed in at the identity provider, and their role (ruling Y22). For the role `link`, see
     * `makeLinkToken`.
     */
    person_id: optional(text()),
    role: optional(text()),
    /** Tokens of the identity provider, encrypted. */
    sealed: optional(text()),
  },
  /**
   * People who have signed in on a machine (ruling Y20). Their tokens are not stored. A token contains a secret and the
   * number of refreshes. The key `key_id` has the digest of the secret as its own digest.
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
    /** When the sign-in ends, however often it is refreshed. */
    expires_ms: number(),
    ended_ms: optional(number()),
    ended_why: optional(text()),
    /** The program that signed in, as it calls itself. */
    agent: optional(text()),
    address: optional(text()),
    /** The provider's refresh token, encrypted. */
    sealed: optional(text()),
    /** When the provider last confirmed the person. */
    asked_ms: number(),
    /** When a server began to query the provider for the next refresh. */
    claimed_ms: optional(number()),
  },
  /** Sign-ins that programs have begun, with the digest of the device code (RFC 8628) or of the authorization code. */
  oauth_grants: {
    id: text(),
    kind: text<'device' | 'code'>(),
    digest: text(),
    /** The digest of the code that a person types. */
    user_digest: optional(text()),
    state: text<'pending' | 'approved' | 'denied' | 'used'>(),
    created_ms: number(),
    expires_ms: number(),
    polled_ms: optional(number()),
    agent: optional(text()),
    address: optional(text()),
    /** For an authorization code: the challenge (RFC 7636), and the address to which the code is sent. */
    challenge: optional(text()),
    redirect_uri: optional(text()),
    person_id: optional(text()),
    account_id: optional(text()),
    role: optional(text()),
    models: optional(text()),
    sealed: optional(text()),
  },
  /** For each closed month: the part of its statement that no entry contains (`StatementHeader`), as JSON. */
  statements: { account_id: text(), month: text(), header: text() },
  /** The people of a statement. They have a table of their own, because names can be erased (ruling Y21). */
  statement_people: {
    account_id: text(),
    month: text(),
    person: text(),
    /** The id of the person who had the identity `person` when the statement was made. */
    counts_as: text(),
    name: text(),
  },
  /** The spending of keys, accounts and people with budgets. */
  spends: {
    scope: text(),
    from_ms: number(),
    until_ms: number(),
    spent: amount(),
    warned: number(),
    /** The number of the last counted entry of the account. */
    seq: nullable(number()),
  },
  /** Warnings that wait to be sent. */
  outbox: { id: text(), event: text(), data: text(), at_ms: number(), next_ms: number(), tries: optional(text()) },
  /**
   * The lines in the list of needs (what operators should act on). They are stored so that each line is announced only
   * once (src/accounts/warnings.ts).
   */
  needs: { id: text(), since_ms: number(), gone_ms: nullable(number()), is_told: number() },
  /**
   * Results of creations, as JSON without secrets. A repeated request with the same Idempotency-Key gets this result.
   */
  made: { actor: text(), once: text(), asked: text(), result: text(), made_ms: number() },
  /** The audit trail. Its records are never changed. */
  audit: {
    seq: number(),
    at_ms: number(),
    actor: text(),
    address: nullable(text()),
    operation: text(),
    object: text(),
    /** JSON objects with the changed fields. `before` is null for a new object, and `after` for a removed object. */
    before: nullable(text()),
    after: nullable(text()),
    digest: text(),
  },
} satisfies Record<string, Columns>

export type RegisterName = keyof typeof registers

/** A row of a register in the books: times are Unix milliseconds, amounts are nano-credits. */
export type BookRow<N extends RegisterName> = RegisterFields<(typeof registers)[N]>

/** Returns all columns of a register with their kinds. The kinds are the same for SQLite and PostgreSQL. */
export function registerColumns(name: RegisterName): Readonly<Record<string, { kind: string; isOptional: boolean }>> {
  const bounds = { keys: keyBounds, accounts: accountBounds, persons: personBounds }[name as string]?.columns ?? {}
  const added = Object.entries(bounds).map(([column, kind]) => [column, { kind, isOptional: true }])
  return { ...registers[name], ...Object.fromEntries(added) }
}

/** Converts a database row to fields. @param row with all columns of the register */
export function readFields<C extends Columns>(columns: C, row: Readonly<Record<string, unknown>>): RegisterFields<C> {
  const read = Object.entries(columns).map(([name, column]) => [fieldOf(name), column.read(row[name])])
  return Object.fromEntries(read) as RegisterFields<C>
}

/** Converts the fields of a row to values by column. The inverse of `readFields`. */
export function columnsOf<C extends Columns>(columns: C, fields: RegisterFields<C>): Record<keyof C & string, Stored> {
  return valuesOf(Object.keys(columns), fields) as Record<keyof C & string, Stored>
}

/** Converts only some fields of a row to values by column. The result has the columns of these fields. */
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

/** A value in the form that a database accepts. */
type Stored = string | number | bigint | null

/** The field name of each column. Computed once, because a starting server reads a row for each account and key. */
const fields = new Map(
  Object.values(registers)
    .flatMap((columns) => Object.keys(columns))
    .map((name) => [name, name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())]),
)

function fieldOf(column: string): string {
  return fields.get(column)!
}
