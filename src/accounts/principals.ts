import { hasEnded } from './account.ts'
import { BookError } from './book-error.ts'
import type { AccountRow, KeyRow } from './book-rows.ts'
import {
  isLink,
  type OperatorRole,
  type OperatorRow,
  type OwnerRole,
  operatorRoles,
  roleOf,
  type SessionRow,
  seenLagMs,
  sessionIdleMs,
} from './operators.ts'
import type { PersonRow } from './persons.ts'

/** The operator or key owner who has sent a token, key or cookie. */
export type Principal =
  | {
      kind: 'operator'
      actor: string
      name: string
      role: OperatorRole
      expiresMs: number
      operatorId: string | undefined
    }
  /** A key's owner. @property role set only for a person who is signed in with a browser (Y22) */
  | { kind: 'owner'; key: KeyRow; account: AccountRow; role?: OwnerRole | undefined }

/** The part of a store that finds out to whom a token, key or cookie belongs. */
export interface PrincipalStore {
  /**
   * Finds keys by id, first characters or label; several keys may have one label. Returns at most `keysNamedMax` + 1
   * keys. Keys found by label come last.
   */
  findKeys(name: string, accountId?: string): Promise<KeyRow[]>
  findPersons(asked: readonly string[]): Promise<PersonRow[]>
  findAccount(idOrName: string): Promise<AccountRow | undefined>
  findOperator(by: { id: string } | { digest: string }): Promise<OperatorRow | undefined>
  findKeyByDigest(digest: string): Promise<KeyRow | undefined>
  findSession(digest: string): Promise<SessionRow | undefined>
  /** Records the time at which a session was used. */
  touchSession(digest: string, seenMs: number): Promise<void>
}

/**
 * Returns the owner of a new session of a browser.
 * @throws BookError `no_operator` for the command line's own token
 */
export function ownerOfSession(whose: Principal): { operatorId: string; expiresMs: number } | { keyId: string } {
  if (whose.kind === 'owner') return { keyId: whose.key.id }
  // The command line's own token belongs to no operator, so it cannot sign in a browser.
  if (whose.operatorId === undefined) throw new BookError('no_operator', whose.name)
  return { operatorId: whose.operatorId, expiresMs: whose.expiresMs }
}

/**
 * Finds the operator or the key owner to whom a token or a cookie belongs. A bearer token is a key, the token of an
 * operator, or the token of the command line.
 */
export async function findPrincipal(
  store: PrincipalStore,
  nowMs: number,
  digest: string,
  kind: 'bearer' | 'cookie',
): Promise<Principal | undefined> {
  const session = await store.findSession(digest)
  if (session) {
    if (session.kind !== (kind === 'cookie' ? 'cookie' : 'command') || isLink(session)) return undefined
    const isOver = hasEnded(session.expiresMs, nowMs) || (kind === 'cookie' && nowMs >= session.seenMs + sessionIdleMs)
    if (isOver) return undefined
    if (nowMs - session.seenMs >= seenLagMs) await store.touchSession(digest, nowMs)
    const { actor, operatorId, personId, keyId, expiresMs } = session
    if (actor !== undefined) return { kind: 'operator', actor, name: actor, role: 'admin', expiresMs, operatorId }
    if (operatorId !== undefined) return asOperator(await store.findOperator({ id: operatorId }), nowMs)
    if (personId !== undefined) return asPerson(store, { ...session, personId }, nowMs)
    return asOwner(store, await findKeyById(store, keyId), nowMs)
  }
  if (kind === 'cookie') return undefined
  const operator = asOperator(await store.findOperator({ digest }), nowMs)
  return operator ?? asOwner(store, await store.findKeyByDigest(digest), nowMs)
}

function asOperator(row: OperatorRow | undefined, nowMs: number): Principal | undefined {
  if (!row || row.revokedMs !== undefined || hasEnded(row.expiresMs, nowMs)) return undefined
  const { id, name, expiresMs } = row
  return { kind: 'operator', actor: `operator:${name}`, name, role: roleOf(row), expiresMs, operatorId: id }
}

/** Returns the caller of a person's session: an operator, or the owner of a key. Undefined if the person is erased. */
async function asPerson(
  store: PrincipalStore,
  { personId, keyId, role, expiresMs }: SessionRow & { personId: string },
  nowMs: number,
): Promise<Principal | undefined> {
  const person = (await store.findPersons([personId])).find(({ id }) => id === personId)
  if (!person || person.erasedMs !== undefined) return undefined
  if (keyId !== undefined) {
    const owner = await asOwner(store, await findKeyById(store, keyId), nowMs)
    return owner && { ...owner, role: role === 'lead' ? 'lead' : 'member' }
  }
  const operatorRole = operatorRoles.find((one) => one === role)
  if (!operatorRole) return undefined
  const name = person.name ?? person.email ?? personId
  return { kind: 'operator', actor: `person:${personId}`, name, role: operatorRole, expiresMs, operatorId: undefined }
}

/** Finds a key by its id only, because the label of another key may equal this id. */
export async function findKeyById(store: PrincipalStore, keyId: string | undefined): Promise<KeyRow | undefined> {
  const keys = keyId === undefined ? [] : await store.findKeys(keyId)
  return keys.find(({ id }) => id === keyId)
}

async function asOwner(
  store: PrincipalStore,
  key: KeyRow | undefined,
  nowMs: number,
): Promise<Extract<Principal, { kind: 'owner' }> | undefined> {
  if (!key || key.revokedMs !== undefined || hasEnded(key.expiresMs, nowMs)) return undefined
  const account = await store.findAccount(key.accountId)
  return account && { kind: 'owner', key, account }
}
