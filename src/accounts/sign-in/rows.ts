import type { KeyRow } from '../book-rows.ts'
import type { Budget } from '../budget.ts'
import type { BookRow } from '../registers.ts'

/** The roles of people who sign in (ruling Y22). The first three are also roles of operators. */
export const signInRoles = ['admin', 'finance', 'viewer', 'lead', 'member'] as const

export type SignInRole = (typeof signInRoles)[number]

/** A person as the identity provider describes them, and what the rules of the configuration grant them. */
export type SignedIn = {
  issuer: string
  /** The provider's id of the person. Together with the issuer, it is the person's identity. */
  subject: string
  email?: string | undefined
  name?: string | undefined
  /** The name or id of the account. */
  account: string
  role: SignInRole
  models?: readonly string[] | undefined
  /** Bounds of the person, shared by all their keys and sessions (ruling Y20). */
  budget?: Budget | undefined
  requestsPerMinute?: number | undefined
  /** The provider's refresh token, encrypted. */
  sealed?: string | undefined
}

/** A session of a person on a machine. The tokens are computed from this row and the secret in the client's token. */
export type SignInRow = BookRow<'sign_ins'>

/** A grant: the sign-in of a program that a person approves in a browser. */
export type GrantRow = BookRow<'oauth_grants'>

/** The prefix of the labels of keys that people made for their agents (own-keys.ts). */
export const ownKeyMark = 'own: '

/** The most characters in the name of such a key. With the mark it is a label, which has 100 at most. */
export const ownNameMax = 100 - ownKeyMark.length

/**
 * A session with its key. @property ownKeys the keys, even expired ones, that the person of the session has made for
 * agents in the account
 */
export type SignInFacts = { signIn: SignInRow; key: KeyRow; ownKeys: readonly KeyRow[] }

/** Finds a session by its id, its key's id, or the digest of its tokens. */
export type SessionName = { id: string } | { keyId: string } | { digest: string }

/** A session as lists show it. */
export type ListedSession = SignInRow & {
  accountName: string | undefined
  personName: string | undefined
  lastUsedMs: number | undefined
}

/** A request for a page of sessions, the newest first. @property isLive only sessions that have not ended */
export type SessionPage = {
  id?: string | undefined
  keyId?: string | undefined
  personId?: string | undefined
  accountId?: string | undefined
  isLive?: { nowMs: number; idleMs: number } | undefined
  beyond?: readonly (string | number)[] | undefined
  limit: number
}

/** The longest lifetimes in ms: of an access token, of a session that is not refreshed, and of any session. */
export type SessionLives = { accessMs: number; idleMs: number; absoluteMs: number }

/** A session with everything that its tokens are computed from (`SessionTokens.issue`). */
export type IssuedTokens = {
  session: SignInRow
  /** The session's secret. Undefined after a refresh, because the client's refresh token contains it already. */
  secret: string | undefined
  generation: number
  accessExpiresMs: number
}
