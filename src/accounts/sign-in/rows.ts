import type { KeyRow } from '../book-rows.ts'
import type { Budget } from '../budget.ts'
import type { BookRow } from '../registers.ts'

/** The roles of people who sign in (ruling Y22). The first three are those of operators. */
export const signInRoles = ['admin', 'finance', 'viewer', 'lead', 'member'] as const

export type SignInRole = (typeof signInRoles)[number]

/** A person as the identity provider knows them, and what the rules of the configuration give them. */
export type SignedIn = {
  issuer: string
  /** With the issuer this is the identity of the person. */
  subject: string
  email?: string | undefined
  name?: string | undefined
  /** By name or id. */
  account: string
  role: SignInRole
  models?: readonly string[] | undefined
  /** Bounds of the person, shared by all their keys and sessions (ruling Y20). */
  budget?: Budget | undefined
  requestsPerMinute?: number | undefined
  /** The provider's token for refreshes, sealed. */
  sealed?: string | undefined
}

/** A session of a person on a machine. Its tokens are made of it (tokens.ts). */
export type SignInRow = BookRow<'sign_ins'>

/** A sign-in that was begun. */
export type GrantRow = BookRow<'oauth_grants'>

/** The beginning of the labels of keys that people made for their agents (own-keys.ts). */
export const ownKeyMark = 'own: '

/** A session with its key. @property ownKeys keys that its person made in the account, paused ones too */
export type SignInFacts = { signIn: SignInRow; key: KeyRow; ownKeys: readonly KeyRow[] }

/** Finds a session by its id, its key's id, or the digest of its tokens. */
export type SessionName = { id: string } | { keyId: string } | { digest: string }

/** A session as lists show it. */
export type ListedSession = SignInRow & {
  accountName: string | undefined
  personName: string | undefined
  lastUsedMs: number | undefined
}

/** A page of sessions, the newest first. @property isLive only those that have not ended */
export type SessionPage = {
  id?: string | undefined
  keyId?: string | undefined
  personId?: string | undefined
  accountId?: string | undefined
  isLive?: { nowMs: number; idleMs: number } | undefined
  beyond?: readonly (string | number)[] | undefined
  limit: number
}

/** How long sessions live, in ms: an access token, a session that nobody refreshes, and any session. */
export type SessionLives = { accessMs: number; idleMs: number; absoluteMs: number }

/** A session with all that its tokens are made of (`SessionTokens.issue`). */
export type IssuedTokens = {
  session: SignInRow
  /** Undefined after a refresh: the client has shown it. */
  secret: string | undefined
  generation: number
  accessExpiresMs: number
}
