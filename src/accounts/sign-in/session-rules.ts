import { randomText } from '../../ids.ts'
import { hasEnded } from '../account.ts'
import { BookError } from '../book-error.ts'
import { type KeyRow, noPerson } from '../book-rows.ts'
import { type BookChange, type BookWrite, type Facts, whatDiffers } from '../book-rules.ts'
import { keyBounds, personBounds } from '../key-bounds.ts'
import { type PersonCounting, Uncounted } from '../person-budgets.ts'
import { personOfIdentity } from '../person-rules.ts'
import { confirmOwnKeys, pauseOwnKeys } from './own-keys.ts'
import type { GrantRow, IssuedTokens, SessionLives, SessionName, SignedIn, SignInFacts, SignInRow } from './rows.ts'
import { createSecret } from './tokens.ts'

/*
 * Sessions of people (ruling Y20). A session is a key that belongs to a person. Its row in `sign_ins` has a generation,
 * which each refresh raises. A refresh token has a generation n, that of the session when the token was issued. The
 * effect of a refresh with this token:
 *
 *     generation of the session                effect of the refresh
 *     n                                        the session moves to generation n + 1
 *     n + 1, for 60 s                          the same answer is sent again, on every replica
 *     n + 1, and its tokens were never used    the session moves to generation n + 2
 *     n + 1 otherwise, or a later generation   the session ends for good, together with its key
 *
 * If n is later than the generation in the store, the store was restored from a backup. Then the session continues.
 */

/**
 * How long a program can get the next token again with an old refresh token, in ms. This is needed because programs of
 * one person share the token, and because responses get lost.
 */
const graceMs = 60_000

/** How long one server may query the provider about a session before another server queries it, in ms. */
const claimMs = 5_000

/** Why a session ended, for the audit trail and for lists. */
export type SessionEnd = 'signed_out' | 'ended' | 'revoked' | 'reuse' | 'provider' | 'person_erased'

/** Makes the session for an approved grant, and the session's key. */
export function openSession(facts: Facts, grant: GrantRow, { absoluteMs, accessMs }: SessionLives) {
  const { nowMs } = facts
  const { agent, address, sealed, models } = grant
  const [accountId, personId, role] = [grant.accountId!, grant.personId!, grant.role!]
  const { secret, digest, prefix } = createSecret()
  const [id, keyId, expiresMs] = [`ses_${randomText(16)}`, `key_${randomText(16)}`, nowMs + absoluteMs]
  const session: SignInRow = {
    ...{ id, keyId, accountId, personId, role, generation: 0, refreshedMs: nowMs, createdMs: nowMs, expiresMs },
    ...{ endedMs: undefined, endedWhy: undefined, agent, address, sealed, askedMs: nowMs, claimedMs: undefined },
  }
  const key: KeyRow = {
    ...{ id: keyId, accountId, digest, prefix, label: agent, createdMs: nowMs, session: id, scope: keyId },
    ...{ expiresMs, ownExpiresMs: expiresMs, revokedMs: undefined, lastUsedMs: undefined, origin: undefined },
    ...{ accountName: undefined, personName: undefined, spend: undefined, heldNanos: undefined },
    ...noPerson,
    bounds: { ...keyBounds.none, person: personId, models: models?.split(',') },
  }
  const writes: BookWrite[] = [
    { kind: 'insert_key', accountId, key },
    { kind: 'insert_sign_in', signIn: session },
  ]
  const after = { person: personId, account: accountId, role, agent: agent ?? null, from: address ?? null }
  const trail = { operation: 'session.create', object: id, after }
  const result: IssuedTokens = { session, secret, generation: 0, accessExpiresMs: nowMs + accessMs }
  return { writes, result, trail }
}

/** A refresh token after parsing. `isAsking` says whether the identity provider must be queried. */
type Refreshing = { digest: string; generation: number; isAsking: boolean }

/**
 * The answer to a refresh. `ask`: this server queries the provider and then calls `settleRefresh`. `wait`: another
 * server is querying the provider.
 */
export type Refresh =
  | ({ kind: 'issued' } & IssuedTokens)
  | { kind: 'ended'; why: SessionEnd | 'unknown' | 'expired' | 'idle' | 'suspended' }
  | { kind: 'ask'; session: SignInRow; issuer: string | undefined; subject: string | undefined }
  | { kind: 'wait' }
  /**
   * The provider does not answer, and its last confirmation is older than `offlineMs`. The refresh token stays valid.
   */
  | { kind: 'silent' }

/** Refreshes a session. If the provider must be queried first, the result is `ask` or `wait` (see `Refresh`). */
export function refreshSession({ digest, generation, isAsking }: Refreshing, lives: SessionLives): BookChange<Refresh> {
  return {
    about: { signIn: { digest } },
    decide(facts) {
      const found = judge(facts, generation, lives)
      if ('answer' in found) return found.answer
      const { signIn } = found
      if (!isAsking) return advance(signIn, generation, facts.nowMs, lives, {})
      const { claimedMs = Number.NEGATIVE_INFINITY } = signIn
      if (facts.nowMs - claimedMs < claimMs && facts.nowMs >= claimedMs) return answered({ kind: 'wait' })
      const { issuer, subject } = facts.persons[0] ?? {}
      const writes: BookWrite[] = [{ kind: 'set_sign_in', signInId: signIn.id, fields: { claimedMs: facts.nowMs } }]
      return { writes, result: { kind: 'ask', session: signIn, issuer, subject } }
    },
  }
}

/**
 * The provider's answer about a person.
 * @property signedIn the person's rights by the current rules; undefined means no change
 * @property isUnasked true if the session ends because the provider cannot be queried, not because it rejects the
 *   person
 */
export type ProviderWord =
  | { kind: 'yes'; signedIn?: SignedIn | undefined }
  | { kind: 'no'; isUnasked?: boolean }
  | { kind: 'silent' }

/**
 * Completes a refresh after the provider was asked about the person. If the provider does not answer, its last
 * confirmation stays valid for `offlineMs`. After a confirmation, the current rules set role, models, budget and
 * requests a minute.
 */
export function settleRefresh(
  { digest, generation }: Pick<Refreshing, 'digest' | 'generation'>,
  word: ProviderWord,
  lives: SessionLives & { offlineMs: number },
  counting: PersonCounting,
): BookChange<Refresh | Uncounted> {
  const told = word.kind === 'yes' ? word.signedIn : undefined
  return {
    about: { signIn: { digest }, ...(told && aboutSignedIn(told)) },
    decide(facts) {
      const found = judge(facts, generation, lives)
      if ('answer' in found) return found.answer
      const { signIn } = found
      const { nowMs } = facts
      if (word.kind === 'no' || isMoved(facts, found, told))
        return ended(found, 'provider', nowMs, word.kind === 'no' && word.isUnasked)
      if (word.kind === 'yes') {
        const advanced = advance(signIn, generation, nowMs, lives, confirmedFields(facts, found, told))
        const writes = confirmed(facts, found, told, counting, advanced.writes)
        return writes instanceof Uncounted ? { writes: [], result: writes } : { ...advanced, writes }
      }
      if (nowMs < signIn.askedMs + lives.offlineMs) return advance(signIn, generation, nowMs, lives, {})
      const writes: BookWrite[] = [{ kind: 'set_sign_in', signInId: signIn.id, fields: { claimedMs: undefined } }]
      return { writes, result: { kind: 'silent' } }
    },
  }
}

function aboutSignedIn({ account, issuer, subject }: SignedIn) {
  return { accounts: [account], identity: { issuer, subject } }
}

/** Whether the rules now give the person another account than that of the session. */
function isMoved({ accounts }: Facts, { signIn }: SignInFacts, signedIn: SignedIn | undefined): boolean {
  return signedIn !== undefined && !accounts.some(({ id }) => id === signIn.accountId)
}

/** The fields of a session that change when the provider confirms its person. */
function confirmedFields({ nowMs }: Facts, { signIn }: SignInFacts, signedIn: SignedIn | undefined) {
  const { role, sealed = signIn.sealed } = signedIn ?? signIn
  return { askedMs: nowMs, sealed, role }
}

/**
 * Makes all writes of a confirmation by the provider. The current rules set models and bounds, and the person's own
 * keys last longer.
 * @param own the writes of the session itself
 */
function confirmed(
  facts: Facts,
  found: SignInFacts,
  signedIn: SignedIn | undefined,
  counting: PersonCounting,
  own: readonly BookWrite[],
): BookWrite[] | Uncounted {
  const bound = signedIn ? bind(facts, found.signIn, signedIn, counting) : []
  if (bound instanceof Uncounted) return bound
  const narrowed = signedIn ? [found.key, ...found.ownKeys].flatMap((one) => narrow(one, signedIn)) : []
  return [...bound, ...own, ...narrowed, ...confirmOwnKeys(found, facts.nowMs)]
}

/** Limits a key to the models that the rules now grant its person. */
function narrow({ accountId, scope, bounds }: KeyRow, { models }: SignedIn): BookWrite[] {
  if (models?.join() === bounds.models?.join()) return []
  return [{ kind: 'set_bounds', accountId, scope, bounds: { ...bounds, models } }]
}

/**
 * Sets the bounds that the rules grant the person now. If the person has keys of another account too, the bounds stay.
 */
function bind(
  facts: Facts,
  { personId, accountId }: SignInRow,
  signedIn: SignedIn,
  counting: PersonCounting,
): BookWrite[] | Uncounted {
  const person = facts.persons.find(({ id }) => id === personId)
  const { budget, requestsPerMinute } = signedIn
  const bounds = person && personBounds.after(person.bounds, { budget, requestsPerMinute })
  // Writing unchanged bounds would lock the account without need.
  if (!bounds || !whatDiffers(personBounds.tell(person.bounds), personBounds.tell(bounds))) return []
  try {
    const found = personOfIdentity(facts, signedIn, accountId, counting)
    return 'uncounted' in found ? found.uncounted : found.writes
  } catch (error) {
    if (error instanceof BookError && error.code === 'person_elsewhere') return []
    throw error
  }
}

type RefreshDecision = ReturnType<BookChange<Refresh>['decide']>

const answered = (result: Refresh): RefreshDecision => ({ writes: [], result })

/**
 * Judges a refresh token. Returns the session if it must get new tokens. Otherwise returns the answer to the client:
 * the tokens of the last refresh once more, or the reason why the session has ended.
 * @param generation the number of refreshes before this token was issued
 */
function judge(facts: Facts, generation: number, lives: SessionLives): SignInFacts | { answer: RefreshDecision } {
  const { signIn: found, account, nowMs } = facts
  if (!found) return { answer: answered({ kind: 'ended', why: 'unknown' }) }
  const { signIn, key } = found
  const end = endOf(found, nowMs, lives.idleMs) ?? (account?.state === 'active' ? undefined : 'suspended')
  if (end !== undefined) return { answer: answered({ kind: 'ended', why: end }) }
  if (generation >= signIn.generation) return found
  const isPrevious = generation === signIn.generation - 1
  if (isPrevious && nowMs < signIn.refreshedMs + graceMs) return { answer: answered(issue(signIn, lives)) }
  // If nobody has used the new token since the last refresh, the response with it was lost, for example in a sleep of
  // the machine.
  if (isPrevious && (key.lastUsedMs ?? 0) < signIn.refreshedMs) return found
  return { answer: ended(found, 'reuse', nowMs) }
}

/** Returns why a session has ended; undefined if it has not. */
function endOf({ signIn, key }: SignInFacts, nowMs: number, idleMs: number) {
  if (signIn.endedMs !== undefined) return (signIn.endedWhy ?? 'ended') as SessionEnd
  if (key.revokedMs !== undefined) return 'revoked'
  if (hasEnded(signIn.expiresMs, nowMs) || hasEnded(key.expiresMs, nowMs)) return 'expired'
  return hasEnded(signIn.refreshedMs + idleMs, nowMs) ? 'idle' : undefined
}

function advance(
  signIn: SignInRow,
  shown: number,
  nowMs: number,
  lives: SessionLives,
  more: Partial<SignInRow>,
): RefreshDecision {
  const generation = Math.max(shown, signIn.generation) + 1
  const fields = { ...more, generation, refreshedMs: nowMs, claimedMs: undefined }
  const writes: BookWrite[] = [{ kind: 'set_sign_in', signInId: signIn.id, fields }]
  return { writes, result: issue({ ...signIn, ...fields }, lives) }
}

/**
 * Returns the facts from which the session's present tokens are computed. Every call returns the same facts, and so the
 * same tokens.
 */
function issue(session: SignInRow, { accessMs }: SessionLives): Refresh {
  const accessExpiresMs = Math.min(session.refreshedMs + accessMs, session.expiresMs)
  return { kind: 'issued', session, secret: undefined, generation: session.generation, accessExpiresMs }
}

function ended(found: SignInFacts, why: SessionEnd, nowMs: number, isUnasked?: boolean): RefreshDecision {
  return { ...endWrites(found, why, nowMs, isUnasked), result: { kind: 'ended', why } }
}

/**
 * Ends a session and revokes its key, so that the session ends on every replica at once. If the provider rejected the
 * person, the person's own keys stop working too.
 */
function endWrites(found: SignInFacts, why: SessionEnd, nowMs: number, isUnasked = false) {
  const { signIn, key } = found
  const { accountId, id: keyId } = key
  const writes: BookWrite[] = [
    { kind: 'set_sign_in', signInId: signIn.id, fields: { endedMs: nowMs, endedWhy: why, sealed: undefined } },
    { kind: 'set_key', accountId, keyId, fields: { revokedMs: key.revokedMs ?? nowMs } },
    ...(why === 'provider' && !isUnasked ? pauseOwnKeys(found, nowMs) : []),
  ]
  const operation = why === 'reuse' ? 'session.reuse' : 'session.end'
  return { writes, trail: { operation, object: signIn.id, after: { person: signIn.personId, why } } }
}

/**
 * Ends a session. A second call changes nothing. @returns the session as it is now; undefined for an unknown token
 * @throws BookError `no_session`, except for an unknown token. The answer must not reveal whether the session exists
 *   (RFC 7009 2.2)
 */
export function endSession(name: SessionName, why: SessionEnd): BookChange<SignInRow | undefined> {
  return {
    about: { signIn: name },
    decide({ signIn: found, nowMs }) {
      if (!found && 'digest' in name) return { writes: [], result: undefined }
      if (!found) throw new BookError('no_session', Object.values(name)[0] ?? '')
      if (found.signIn.endedMs !== undefined) return { writes: [], result: found.signIn }
      return { ...endWrites(found, why, nowMs), result: { ...found.signIn, endedMs: nowMs, endedWhy: why } }
    },
  }
}

/**
 * Applies a confirmation of the provider that arrived after the time limit of a refresh. It has the effects of one that
 * arrived in time, except for new tokens. The refresh token in the answer replaces the stored token, which is no longer
 * valid.
 */
export function keepAnswer(
  id: string,
  signedIn: SignedIn,
  counting: PersonCounting,
): BookChange<undefined | Uncounted> {
  return {
    about: { signIn: { id }, ...aboutSignedIn(signedIn) },
    decide(facts) {
      const { signIn: found, nowMs } = facts
      if (!found || endOf(found, nowMs, Number.POSITIVE_INFINITY) !== undefined)
        return { writes: [], result: undefined }
      if (isMoved(facts, found, signedIn)) return { ...endWrites(found, 'provider', nowMs), result: undefined }
      const fields = confirmedFields(facts, found, signedIn)
      const own: BookWrite[] = [{ kind: 'set_sign_in', signInId: id, fields }]
      const writes = confirmed(facts, found, signedIn, counting, own)
      return writes instanceof Uncounted ? { writes: [], result: writes } : { writes, result: undefined }
    },
  }
}
