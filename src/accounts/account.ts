import type { LiveBounds } from './live-bounds.ts'

/** A customer, who pays for requests. There is one live object per account; admission.ts knows its balance and holds. */
export type Account = {
  readonly id: string
  name: string
  state: 'active' | 'suspended'
  /** Its bounds over all its keys; undefined if it has none. */
  bounds?: LiveBounds | undefined
  /** The month of its last grant, the empty text before the first one; undefined if it is given none. */
  grantMonth?: string | undefined
  /** The plan by which it pays; undefined: the lists of models. */
  plan?: string | undefined
}

export type ApiKey = {
  readonly id: string
  /** The first characters, for people to tell keys apart. Safe to log. */
  readonly prefix: string
  readonly account: Account
  /** Unix milliseconds from which the key is invalid: its own expiry, or the end of the grace period after a rotation. */
  readonly expiresMs: number | undefined
  /** The label that its owner gave it. */
  readonly label?: string | undefined
  /** Limits of its own (ruling R15); undefined if the key may do all that its account may. */
  readonly bounds?: LiveBounds | undefined
  /** Limits of its person over all their keys (ruling Y20); undefined if they have none. */
  readonly personBounds?: LiveBounds | undefined
}

/** Whether a key, a token or the like has expired; at `endMs` itself it has. @param endMs undefined: it never expires */
export function hasEnded(endMs: number | undefined, nowMs: number): boolean {
  return endMs !== undefined && nowMs >= endMs
}

/** Stands in for a key when an operator acts for an account without showing one. It has no limits and no name. */
export function keyless(account: Account): ApiKey {
  return { id: '', prefix: '', account, expiresMs: undefined }
}

/** The id of the key that a debit names; undefined for a request without a key (`keyless`). */
export function keyIdOf({ id }: ApiKey): string | undefined {
  return id === '' ? undefined : id
}

/** The store's accounts and keys, kept in memory so that a request need not ask the store. Keys are found by digest (keys.ts). */
export interface Directory {
  /** Whether the store has valid keys of another gateway, as last reported. Without any, texts of their form are not looked up. */
  readonly hasForeignKeys?: boolean
  /** Looks in memory only, which lacks revoked, unknown and newly created keys. */
  findKnownKey(digest: string): ApiKey | undefined
  /**
   * Looks in memory, then in the store (ruling R16): a key is valid as soon as the command that created it returns.
   * @throws StoreSilent if the store does not answer: whether the key is valid is then unknown (ruling C5).
   */
  findKey(digest: string): Promise<ApiKey | undefined>
  /** Resolves when memory has what the store has, if the store does not decide admission itself. @throws StoreSilent */
  readAgain?(): Promise<void>
  /** Looks in memory only. */
  findKnownAccount(id: string): Account | undefined
  /** The valid keys in memory. */
  listKnownKeys(): Iterable<ApiKey>
  /** The accounts in memory. If memory does not hold all accounts, the least recently used come first. */
  listKnown(): Iterable<Account>
  /** Calls `hear` when the store has reported an account. There is one listener; a later one replaces it. */
  onChanged?(hear: (accountId: string) => void): void
  /** Records a use of the key, for `last_used`; written to the store now and then. */
  touch(key: ApiKey): void
}

/** Thrown if the store did not answer in time a question that only it can answer. */
export class StoreSilent extends Error {}
