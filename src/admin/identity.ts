import type { AccessReader } from '../accounts/account.ts'
import type { Books } from '../accounts/books.ts'
import type { LocalThrottle, Windows } from '../accounts/limits.ts'
import type { Principal } from '../accounts/principals.ts'
import type { CallRecord } from '../gateway/record.ts'
import { roleText } from '../operations/openapi.ts'
import { type Running, serves } from '../operations/operation.ts'
import { challenge, ProblemError } from '../operations/problem.ts'
import { digestOf, digestOfCookie } from '../operations/session.ts'
import type { AdminRequest } from './answer.ts'
import { cookieName, readCookie, type Site } from './guard.ts'
import type { Matched } from './request.ts'

export type IdentityParts = {
  /** Opens the books (accounts and keys) at the first call. @throws StoreSilent, or another error of the store */
  books(): Promise<Books>
  /** Set for the clients' listener, where only owners of keys are served (ruling Y19). */
  isForOwners?: boolean
  /** Unix milliseconds. */
  nowMs(): number
  /** Reads the access tokens that people get when they sign in (ruling Y20). */
  readAccess?: AccessReader | undefined
  running: Pick<Running, 'hasForeignKeys'>
  /** Counts invalid tokens. */
  throttle: LocalThrottle
  /**
   * Counts the requests of each operator. `ownerRates` below counts the requests of each owner of a key, and sign-ins of
   * each address (IPv6 by /64).
   */
  rates: Windows
  ownerRates: Windows
}

/** Makes the functions that identify the caller of a request and count failures. */
export function createIdentity(parts: IdentityParts) {
  return { identify, failed }

  /** Identifies the caller. @throws ProblemError without a valid token, or if the caller sends too many requests */
  async function identify(
    { exchange: request, record, countFor }: Pick<AdminRequest, 'exchange' | 'record' | 'countFor'>,
    site: Site,
    address: string,
  ): Promise<{ who: Principal; isCookie: boolean; isStillGood: () => Promise<boolean> }> {
    const authorization = request.header('authorization')
    const bearer = authorization === undefined ? undefined : /^Bearer +(\S+) *$/i.exec(authorization)?.[1]
    const cookie = authorization === undefined ? readCookie(request, cookieName(site)) : undefined
    if (authorization === undefined && cookie === undefined)
      throw new ProblemError(
        'unauthenticated',
        parts.isForOwners
          ? 'Show a key: Authorization: Bearer sk-tri-….'
          : 'Show a token: Authorization: Bearer tri-op-….',
        challenge,
      )
    const access = bearer === undefined ? undefined : parts.readAccess?.(bearer)
    if (access && parts.nowMs() >= access.expiresMs) throw sessionEnded()
    const digest =
      cookie === undefined
        ? (access?.digest ?? digestOf(bearer ?? '', parts.running.hasForeignKeys()))
        : digestOfCookie(cookie)
    const kind = cookie === undefined ? 'bearer' : 'cookie'
    const who = digest === undefined ? undefined : await findPrincipal(digest, kind)
    if (access && !who) throw sessionEnded()
    // An invalid cookie does not count as a guess of a token. An office may share one address, and all its cookies may
    // expire overnight (issue 47).
    if (cookie !== undefined && digest !== undefined && !who) throw sessionEnded()
    if (digest === undefined || !who || (parts.isForOwners && who.kind !== 'owner')) throw failed(address)
    if (record && who.kind === 'owner') noteOwner(record, who)
    const place = takePlace(who)
    if (!place.ok) throw tooMany('You ask too often.', place.retryAfterSeconds)
    if (who.kind === 'owner') countFor?.(who.account.id)
    return { who, isCookie: cookie !== undefined, isStillGood }

    /** Whether the token is still valid. Long answers check this, and continue if the store does not respond. */
    async function isStillGood(): Promise<boolean> {
      try {
        return (await findPrincipal(digest!, kind)) !== undefined
      } catch {
        return true
      }
    }
  }

  function takePlace(who: Principal) {
    return who.kind === 'owner' ? parts.ownerRates.take(who.key.id) : parts.rates.take(who.actor)
  }

  async function findPrincipal(digest: string, kind: 'bearer' | 'cookie'): Promise<Principal | undefined> {
    return (await parts.books()).findPrincipal(digest, kind)
  }

  function failed(address: string): ProblemError {
    const { throttled, retryAfterSeconds } = parts.throttle.fail(address)
    return throttled
      ? tooMany('Too many wrong tokens from your address.', retryAfterSeconds)
      : new ProblemError('unauthenticated', parts.isForOwners ? noKey : noToken, challenge)
  }
}

/** Records the account and the key of a request for the log. */
function noteOwner(record: CallRecord, { account, key }: Extract<Principal, { kind: 'owner' }>): void {
  record.account = account.name
  record.accountId = account.id
  record.keyId = key.id
  record.keyPrefix = key.prefix
}

const noToken = 'This is no token and no key, or no longer.'
const noKey = 'This is no key, or no longer. Operators sign in on the admin listener.'

/** Makes the refusal of an ended session. It does not count as a failed authentication (ruling Y28). */
function sessionEnded(): ProblemError {
  return new ProblemError('unauthenticated', 'Your session has ended, or its token has: sign in again.', challenge)
}

/** Returns the operation. @throws ProblemError if it does not exist, or the caller may not use it */
export function permit(matched: Matched, who: Principal | undefined): Extract<Matched, { operation: unknown }> {
  if (!matched) throw new ProblemError('not_found', 'Nothing is served at this path.')
  if ('allow' in matched) {
    const allow = matched.allow.join(', ')
    throw new ProblemError('method_not_allowed', `It takes ${allow}.`, { headers: { allow } })
  }
  const { role } = matched.operation
  if (!serves(role, who)) throw new ProblemError('forbidden', roleText(role))
  return matched
}

export function tooMany(detail: string, seconds: number): ProblemError {
  return new ProblemError('rate_limited', detail, { headers: { 'retry-after': `${seconds}` } })
}
