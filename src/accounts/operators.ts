import { randomText } from '../ids/base62.ts'
import { digestKey } from './keys.ts'
import type { BookRow } from './registers.ts'

export type OperatorRole = OperatorRow['role']

export const operatorRoles = ['admin', 'viewer'] as const satisfies readonly OperatorRole[]

export type OperatorRow = BookRow<'operators'>
export type SessionRow = BookRow<'sessions'>

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
