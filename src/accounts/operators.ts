import { randomText } from '../ids/base62.ts'
import { digestKey } from './keys.ts'

/** The roles of operators: a `viewer` reads, an `admin` also changes. */
export const operatorRoles = ['admin', 'viewer'] as const

export type OperatorRole = (typeof operatorRoles)[number]

/** A person who may operate the gateway. The books have the digest of the token, never the token. Times in Unix milliseconds. */
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
 * A browser that has shown a token or a key, known by its cookie, or the command line with a token of one minute. A
 * session ends with the operator or key that it was made for.
 */
export type SessionRow = {
  digest: string
  kind: 'cookie' | 'command'
  operatorId: string | undefined
  keyId: string | undefined
  /** For a `command`: the person who runs it, as named in the audit trail. */
  actor: string | undefined
  createdMs: number
  /** Time of the last request, to within some minutes. */
  seenMs: number
  /** The session ends then, however often it is used. */
  expiresMs: number
}

/** A cookie ends after the first time if it is not used, and after the second in any case, in ms (operate §6). */
export const [sessionIdleMs, sessionMaxMs] = [12 * 3_600_000, 7 * 86_400_000]

/** The most cookies for one token or key. */
export const sessionsMax = 20

/** How long a token of the command line is valid, in ms; it makes one for each question. */
export const commandTokenMs = 60_000

/** How far `seenMs` may lag, in ms: each write is a commit. */
export const seenLagMs = 300_000

const scheme = 'tri-op-'
/** Gives a little more than 256 random bits. */
const randomChars = 43
const form = new RegExp(`^${scheme}[0-9A-Za-z]{${randomChars}}$`)

type NewToken = { token: string; prefix: string; digest: string }

/** A token of an operator or of a session. The token is shown once and kept nowhere. */
export function createToken(): NewToken {
  const token = scheme + randomText(randomChars)
  return { token, prefix: token.slice(0, scheme.length + 6), digest: digestKey(token) }
}

/** @returns the digest of a text that has the form of a token; garbage costs no digest and no lookup. */
export function readToken(text: string): string | undefined {
  return form.test(text) ? digestKey(text) : undefined
}
