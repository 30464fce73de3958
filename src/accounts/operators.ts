import { randomText } from '../ids/base62.ts'
import { digestKey } from './keys.ts'

/** What an operator may do: `viewer` reads, `admin` also changes. */
export const operatorRoles = ['admin', 'viewer'] as const

export type OperatorRole = (typeof operatorRoles)[number]

/** Who may operate, as the books have it: by the digest of the token, never itself. Times in Unix milliseconds. */
export type OperatorRow = {
  id: string
  name: string
  role: OperatorRole
  digest: string
  /** The token's first characters. */
  prefix: string
  createdMs: number
  expiresMs: number
  revokedMs: number | undefined
}

/**
 * Somebody who has shown a token, for a while: a browser by its cookie, or the command line by a token of one minute. It ends
 * with the operator or key that it was made for.
 */
export type SessionRow = {
  digest: string
  kind: 'cookie' | 'command'
  operatorId: string | undefined
  keyId: string | undefined
  /** Of a `command`: who runs it, as the audit names him. */
  actor: string | undefined
  createdMs: number
  /** Of the last request, to within some minutes. */
  seenMs: number
  /** However often it is used. */
  expiresMs: number
}

/** A cookie that nobody uses ends after so long, and any after so long (operate §6). */
export const [sessionIdleMs, sessionMaxMs] = [12 * 3_600_000, 7 * 86_400_000]

/** So many cookies may stand for one token or key. */
export const sessionsMax = 20

/** What the command line makes for itself is good for one question. */
export const commandTokenMs = 60_000

/** How far `seenMs` may lag: each write is a commit. */
export const seenLagMs = 300_000

const scheme = 'tri-op-'
/** 256 bits, a little more. */
const randomChars = 43
const form = new RegExp(`^${scheme}[0-9A-Za-z]{${randomChars}}$`)

export type NewToken = { token: string; prefix: string; digest: string }

/** A token of an operator, or of a session: shown once, kept nowhere. */
export function createToken(): NewToken {
  const token = scheme + randomText(randomChars)
  return { token, prefix: token.slice(0, scheme.length + 6), digest: digestKey(token) }
}

/** @returns the digest of what has the form of a token; garbage costs no digest and no lookup. */
export function readToken(text: string): string | undefined {
  return form.test(text) ? digestKey(text) : undefined
}
