import { createHash, randomInt } from 'node:crypto'
import { randomText } from '../../ids.ts'
import { hasEnded } from '../account.ts'
import { BookError } from '../book-error.ts'
import type { BookChange, BookWrite, Facts } from '../book-rules.ts'
import { digestKey, mayHoldKey } from '../keys.ts'
import type { PersonCounting, Uncounted } from '../person-budgets.ts'
import { personOfIdentity } from '../person-rules.ts'
import { isShownWhole } from '../shown-text.ts'
import type { GrantRow, IssuedTokens, SessionLives, SignedIn } from './rows.ts'
import { openSession } from './session-rules.ts'

/*
 * Grants: sign-ins that a program begins on a machine and a person approves in a browser. They use device codes (RFC
 * 8628) or authorization codes (RFC 6749 4.1 with RFC 7636). A grant is pending, then approved or denied, and finally
 * used. Its session is made when its code is redeemed, which is possible once. Everything is in the store, so any
 * replica answers any poll, and a server that is killed loses nothing.
 */

/** How long a code is valid, in ms. */
const grantMs = 600_000

/** The interval at which a client may poll, in s. A poll that is more than a second too early is refused. */
export const pollSeconds = 5

/** The letters of user codes. Without vowels a code spells no word, and no two letters look alike (RFC 8628 6.1). */
const codeLetters = 'BCDFGHJKLMNPQRSTVWXZ'
const codeChars = 8

/**
 * The start of a sign-in. @property agent the program's own name @property challenge the S256 challenge of an
 * authorization code
 */
export type GrantWishes = {
  kind: GrantRow['kind']
  agent?: string | undefined
  address?: string | undefined
  challenge?: string | undefined
  redirectUri?: string | undefined
}

/**
 * A sign-in that has begun. @property code the device code or authorization code, shown only once @property userCode
 * the code that a person compares with the one in the browser
 */
export type BegunGrant = { id: string; code: string; userCode: string | undefined; expiresMs: number }

export function beginGrant(wishes: GrantWishes): BookChange<BegunGrant> {
  return {
    about: {},
    decide({ nowMs }) {
      const code = randomText(43)
      const userCode = wishes.kind === 'device' ? createUserCode() : undefined
      const grant: GrantRow = {
        ...blank,
        id: `grt_${randomText(16)}`,
        kind: wishes.kind,
        digest: digestKey(code),
        userDigest: userCode && digestUserCode(userCode),
        state: 'pending',
        createdMs: nowMs,
        expiresMs: nowMs + grantMs,
        agent: nameAgent(wishes.agent),
        address: wishes.address,
        challenge: wishes.challenge,
        redirectUri: wishes.redirectUri,
      }
      const { id, expiresMs } = grant
      return { writes: [{ kind: 'insert_grant', grant }], result: { id, code, userCode, expiresMs } }
    },
  }
}

const blank = {
  ...{ polledMs: undefined, personId: undefined, accountId: undefined },
  ...{ role: undefined, models: undefined, sealed: undefined },
}

/**
 * Shortens a program's name to a form that lists can show. Anybody may write a program, so its name can be any text.
 */
function nameAgent(agent: string | undefined): string | undefined {
  const shown = agent
    ?.replace(/[^\w .:/@()-]+/g, ' ')
    .trim()
    .slice(0, 60)
    .trim()
  return shown && isShownWhole(shown) && !mayHoldKey(shown) ? shown : undefined
}

function createUserCode(): string {
  const letters = Array.from({ length: codeChars }, () => codeLetters[randomInt(codeLetters.length)]).join('')
  return `${letters.slice(0, codeChars / 2)}-${letters.slice(codeChars / 2)}`
}

/**
 * Reads a code as people type it, in lower or upper case, with or without the dash. @returns undefined if the text does
 * not have the form of a code
 */
export function digestUserCode(typed: string): string | undefined {
  const letters = typed.toUpperCase().replace(/[\s-]/g, '')
  return new RegExp(`^[${codeLetters}]{${codeChars}}$`).test(letters) ? digestKey(letters) : undefined
}

/**
 * Approves or denies a grant, which is the sign-in that a program has begun. The person who has signed in is found by
 * their identity, or is created.
 * @throws BookError `no_grant`, `grant_decided`, `no_account`, `person_elsewhere`
 */
export function decideGrant(
  id: string,
  decision: SignedIn | 'denied',
  counting: PersonCounting,
): BookChange<{ personId: string | undefined } | Uncounted> {
  const { issuer, subject, account } = decision === 'denied' ? ({} as Partial<SignedIn>) : decision
  return {
    about: {
      oauthGrant: { id },
      ...(account !== undefined && { account }),
      ...(issuer !== undefined && subject !== undefined && { identity: { issuer, subject } }),
    },
    decide(facts) {
      const grant = pendingGrant(facts, id)
      if (decision === 'denied') {
        const write: BookWrite = { kind: 'set_grant', grantId: id, fields: { state: 'denied', sealed: undefined } }
        const trail = { operation: 'session.deny', object: id, after: sayWhere(grant) }
        return { writes: [write], result: { personId: undefined }, trail }
      }
      const { role, models, sealed } = decision
      if (!facts.account) throw new BookError('no_account', decision.account)
      const { id: accountId } = facts.account
      const found = personOfIdentity(facts, decision, accountId, counting)
      if ('uncounted' in found) return { writes: [], result: found.uncounted }
      const { person, writes } = found
      const fields = {
        state: 'approved' as const,
        personId: person.id,
        accountId,
        role,
        models: models?.join(),
        sealed,
      }
      const after = { person: person.id, account: accountId, role, ...sayWhere(grant) }
      return {
        writes: [...writes, { kind: 'set_grant', grantId: id, fields }],
        result: { personId: person.id },
        trail: { operation: 'session.approve', object: id, after },
      }
    },
  }
}

/**
 * Stores the encrypted data of the person who is about to sign in, until they approve the grant.
 * @throws BookError `no_grant`, `grant_decided`
 */
export function holdGrant(id: string, sealed: string): BookChange<void> {
  return {
    about: { oauthGrant: { id } },
    decide(facts) {
      pendingGrant(facts, id)
      return { writes: [{ kind: 'set_grant', grantId: id, fields: { sealed } }], result: undefined }
    },
  }
}

function pendingGrant({ oauthGrant: grant, nowMs }: Facts, id: string): GrantRow {
  if (!grant || hasEnded(grant.expiresMs, nowMs)) throw new BookError('no_grant', id)
  if (grant.state !== 'pending') throw new BookError('grant_decided', id)
  return grant
}

/** Finds the person record of an operator who has signed in, or makes one without account and bounds. */
export function identifyOperator(
  { issuer, subject, name, email }: Pick<SignedIn, 'issuer' | 'subject' | 'name' | 'email'>,
  counting: PersonCounting,
): BookChange<{ personId: string } | Uncounted> {
  return {
    about: { identity: { issuer, subject } },
    decide(facts) {
      const found = personOfIdentity(facts, { issuer, subject, name, email }, undefined, counting)
      if ('uncounted' in found) return { writes: [], result: found.uncounted }
      return { writes: found.writes, result: { personId: found.person.id } }
    },
  }
}

function sayWhere({ agent, address }: GrantRow) {
  return { agent: agent ?? null, from: address ?? null }
}

/** The errors of RFC 8628 3.5 and RFC 6749 5.2 that a poll or a redemption can get. */
type GrantError = 'authorization_pending' | 'slow_down' | 'access_denied' | 'expired_token' | 'invalid_grant'

export type Redemption = { error: GrantError } | IssuedTokens

/**
 * Returns the error of a code for which the store need not change. Such a code is unknown, ended or used, or it is polled
 * too early. An unknown code gets the same answer as an expired code, so nobody learns which codes exist.
 * @returns undefined for any other code
 */
export function judgeCode(grant: GrantRow | undefined, kind: GrantRow['kind'], nowMs: number): GrantError | undefined {
  const isOpen = grant?.kind === kind && grant.state !== 'used' && !hasEnded(grant.expiresMs, nowMs)
  if (kind === 'code') return isOpen && grant.state === 'approved' ? undefined : 'invalid_grant'
  if (!isOpen) return 'expired_token'
  const sinceMs = nowMs - (grant.polledMs ?? Number.NEGATIVE_INFINITY)
  // A negative time means that the clock was set back. The program need not wait until the clock has caught up.
  const isEarly = sinceMs >= 0 && sinceMs < (pollSeconds - 1) * 1000
  return grant.state === 'pending' && isEarly ? 'slow_down' : undefined
}

/** Answers a poll. If the grant is decided, its result is returned even if the poll is too early. */
export function pollGrant(code: string, lives: SessionLives): BookChange<Redemption> {
  return {
    about: { oauthGrant: { digest: digestKey(code) } },
    decide(facts) {
      const refusal = judgeCode(facts.oauthGrant, 'device', facts.nowMs)
      if (refusal) return refused(refusal)
      const grant = facts.oauthGrant!
      const use = (fields: Partial<GrantRow>): BookWrite => ({ kind: 'set_grant', grantId: grant.id, fields })
      if (grant.state === 'denied') return { ...refused('access_denied'), writes: [use({ state: 'used' })] }
      if (grant.state === 'approved') return redeem(facts, grant, lives)
      return { ...refused('authorization_pending'), writes: [use({ polledMs: facts.nowMs })] }
    },
  }
}

/**
 * Redeems an authorization code. A wrong verifier or address shows that another program has the code. The code is then
 * used up.
 */
export function redeemCode(
  code: string,
  shown: { verifier: string; redirectUri: string },
  lives: SessionLives,
): BookChange<Redemption> {
  return {
    about: { oauthGrant: { digest: digestKey(code) } },
    decide(facts) {
      const refusal = judgeCode(facts.oauthGrant, 'code', facts.nowMs)
      if (refusal) return refused(refusal)
      const grant = facts.oauthGrant!
      const challenge = createHash('sha256').update(shown.verifier).digest('base64url')
      const isRight = grant.challenge === challenge && grant.redirectUri === shown.redirectUri
      if (isRight) return redeem(facts, grant, lives)
      return {
        ...refused('invalid_grant'),
        writes: [{ kind: 'set_grant', grantId: grant.id, fields: { state: 'used' } }],
      }
    },
  }
}

function refused(error: GrantError) {
  return { writes: [] as BookWrite[], result: { error } }
}

function redeem(facts: Facts, grant: GrantRow, lives: SessionLives): ReturnType<BookChange<Redemption>['decide']> {
  const used: BookWrite = { kind: 'set_grant', grantId: grant.id, fields: { state: 'used', sealed: undefined } }
  const opened = openSession(facts, grant, lives)
  return { ...opened, writes: [used, ...opened.writes] }
}
