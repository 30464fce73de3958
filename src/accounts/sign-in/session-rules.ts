import { randomText } from '../../ids/base62.ts'
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
 * Sessions of people (ruling Y20). A session is a key with a person, and its row in `sign_ins` counts the refreshes:
 *
 *     refresh of generation n     at n: n + 1       at n + 1, for 60 s: the same answer again      later: the session ends
 *
 * So all who show one token at once get one successor, on every replica. A token of a later generation than the store has is of a
 * store that was put back, and goes on. A session ends once, with its key, and never goes on.
 */

/** How long the tokens that follow a refresh token are sent again, in ms. Programs of one person share it, and networks fail. */
export const graceMs = 60_000

/** How long a server may ask the provider for a session before another asks, in ms. */
const claimMs = 5_000

/** Why a session ended, for the audit and for lists. */
export type SessionEnd = 'signed_out' | 'ended' | 'revoked' | 'reuse' | 'provider' | 'person_erased'

/** Makes the session of a grant that is approved, with its key. */
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

/** A refresh token as it was read, and whether the identity provider is to be asked. */
type Refreshing = { digest: string; generation: number; isAsking: boolean }

/**
 * The answer to a refresh. `ask`: this server asks the provider and then calls `settleRefresh`. `wait`: another server is asking.
 */
export type Refresh =
  | ({ kind: 'issued' } & IssuedTokens)
  | { kind: 'ended'; why: SessionEnd | 'unknown' | 'expired' | 'idle' | 'suspended' }
  | { kind: 'ask'; session: SignInRow; issuer: string | undefined; subject: string | undefined }
  | { kind: 'wait' }
  /** The provider is silent for longer than `offline`: the token is as good as before. */
  | { kind: 'silent' }

/** Refreshes a session, or finds that the provider is to be asked first. */
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
 * The provider's word about a person.
 * @property signedIn how the rules map them now; undefined: as before
 * @property isUnasked the session must end because the provider cannot be asked; it has said nothing of the person
 */
export type ProviderWord =
  | { kind: 'yes'; signedIn?: SignedIn | undefined }
  | { kind: 'no'; isUnasked?: boolean }
  | { kind: 'silent' }

/**
 * Ends a refresh by what the provider said. Silence counts as a yes for `offlineMs` since its last good answer. With a yes, role,
 * models, budget and requests a minute are those of the rules of now.
 */
export function settleRefresh(
  { digest, generation }: Pick<Refreshing, 'digest' | 'generation'>,
  word: ProviderWord,
  lives: SessionLives & { offlineMs: number },
  counting: PersonCounting,
): BookChange<Refresh | Uncounted> {
  const told = word.kind === 'yes' ? word.signedIn : undefined
  const account = told?.account
  return {
    about: {
      signIn: { digest },
      ...(told && { accounts: [told.account], identity: { issuer: told.issuer, subject: told.subject } }),
    },
    decide(facts) {
      const found = judge(facts, generation, lives)
      if ('answer' in found) return found.answer
      const { signIn, key } = found
      const { nowMs } = facts
      const isMoved = account !== undefined && !facts.accounts.some(({ id }) => id === signIn.accountId)
      if (word.kind === 'no' || isMoved) return ended(found, 'provider', nowMs, word.kind === 'no' && word.isUnasked)
      if (word.kind === 'yes') {
        const { signedIn } = word
        const { role, sealed = signIn.sealed } = signedIn ?? signIn
        const fields = { askedMs: nowMs, sealed, role }
        const advanced = advance(signIn, generation, nowMs, lives, fields)
        const narrowed = signedIn ? [key, ...found.ownKeys].flatMap((one) => narrow(one, signedIn)) : []
        const bound = signedIn ? bind(facts, signIn, signedIn, counting) : []
        if (bound instanceof Uncounted) return { writes: [], result: bound }
        return { ...advanced, writes: [...bound, ...advanced.writes, ...narrowed, ...confirmOwnKeys(found, nowMs)] }
      }
      if (nowMs < signIn.askedMs + lives.offlineMs) return advance(signIn, generation, nowMs, lives, {})
      const writes: BookWrite[] = [{ kind: 'set_sign_in', signInId: signIn.id, fields: { claimedMs: undefined } }]
      return { writes, result: { kind: 'silent' } }
    },
  }
}

/** The models that the rules give now. */
function narrow({ accountId, scope, bounds }: KeyRow, { models }: SignedIn): BookWrite[] {
  if (models?.join() === bounds.models?.join()) return []
  return [{ kind: 'set_bounds', accountId, scope, bounds: { ...bounds, models } }]
}

/** The bounds that the rules give the person now. Those of a person who has keys of another account too stay as they are. */
function bind(
  facts: Facts,
  { personId, accountId }: SignInRow,
  signedIn: SignedIn,
  counting: PersonCounting,
): BookWrite[] | Uncounted {
  const person = facts.persons.find(({ id }) => id === personId)
  const { budget, requestsPerMinute } = signedIn
  const bounds = person && personBounds.after(person.bounds, { budget, requestsPerMinute })
  // A write of the same bounds would lock the account for nothing.
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

/** Finds the session of a refresh token, or the answer that needs no new generation. */
function judge(facts: Facts, generation: number, lives: SessionLives): SignInFacts | { answer: RefreshDecision } {
  const { signIn: found, account, nowMs } = facts
  if (!found) return { answer: answered({ kind: 'ended', why: 'unknown' }) }
  const { signIn, key } = found
  const end = endOf(found, nowMs, lives.idleMs) ?? (account?.state === 'active' ? undefined : 'suspended')
  if (end !== undefined) return { answer: answered({ kind: 'ended', why: end }) }
  if (generation >= signIn.generation) return found
  const isPrevious = generation === signIn.generation - 1
  if (isPrevious && nowMs < signIn.refreshedMs + graceMs) return { answer: answered(issue(signIn, lives)) }
  // Nobody has used what followed: its answer was lost, as when a machine slept.
  if (isPrevious && (key.lastUsedMs ?? 0) < signIn.refreshedMs) return found
  return { answer: ended(found, 'reuse', nowMs) }
}

/** Returns why a session has ended, if it has. */
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

/** The tokens of the present generation: the same whenever they are asked for. */
function issue(session: SignInRow, { accessMs }: SessionLives): Refresh {
  const accessExpiresMs = Math.min(session.refreshedMs + accessMs, session.expiresMs)
  return { kind: 'issued', session, secret: undefined, generation: session.generation, accessExpiresMs }
}

function ended(found: SignInFacts, why: SessionEnd, nowMs: number, isUnasked?: boolean): RefreshDecision {
  return { ...endWrites(found, why, nowMs, isUnasked), result: { kind: 'ended', why } }
}

/** Ends a session with its key, on every replica at once, as a revoked key. A no of the provider is about the person's own keys too. */
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
 * Ends a session; doing it again does no harm. @returns the session as it is now
 * @throws BookError `no_session`, unless it is named by a token: the answer must not tell whether there is one (RFC 7009 2.2)
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

/** Keeps an answer of the provider that came after the limit of a refresh, because its token replaces the one that was kept. */
export function keepAnswer(id: string, sealed: string | undefined): BookChange<void> {
  return {
    about: { signIn: { id } },
    decide({ signIn: found, nowMs }) {
      if (!found || found.signIn.endedMs !== undefined) return { writes: [], result: undefined }
      const fields = { sealed: sealed ?? found.signIn.sealed, askedMs: nowMs }
      return { writes: [{ kind: 'set_sign_in', signInId: id, fields }], result: undefined }
    },
  }
}
