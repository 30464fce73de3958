import { randomText } from '../ids.ts'
import { hasEnded } from './account.ts'
import { BookError } from './book-error.ts'
import type { BookChange, BookWrite, Facts } from './book-rules.ts'
import { formatTime } from './calendar.ts'
import { digestKey, mayHoldKey } from './keys.ts'
import type { BookRow } from './registers.ts'

/*
 * The rules for operators and their sessions. book-rules.ts has the rules for accounts.
 */

/** A newly created operator. The token is shown only once, in the response to the creation. */
export type IssuedOperator = { operator: OperatorRow; token: string }

export type IssuedSession = { session: SessionRow; token: string }

export function createOperator(
  name: string,
  role: OperatorRole,
  expiresMs: number,
  nowMs: number,
): BookChange<IssuedOperator> {
  return {
    about: { operator: name },
    decide({ operators }) {
      if (!/^[\p{L}\p{N}][\p{L}\p{N}._@-]{0,63}$/u.test(name) || mayHoldKey(name))
        throw new BookError('operator_name_invalid', name)
      if (operators.some((one) => one.name === name && isLive(one, nowMs)))
        throw new BookError('operator_name_taken', name)
      const { token, prefix, digest } = createToken()
      const id = `op_${randomText(16)}`
      const operator: OperatorRow = {
        id,
        name,
        role: role === 'admin' ? 'admin' : 'viewer',
        duty: role === 'finance' ? 'finance' : undefined,
        digest,
        prefix,
        createdMs: nowMs,
        expiresMs,
        revokedMs: undefined,
      }
      return {
        writes: [{ kind: 'insert_operator', operator }],
        result: { operator, token },
        trail: {
          operation: 'operator.create',
          object: id,
          after: { name, role, prefix, expires: formatTime(expiresMs) },
        },
      }
    },
  }
}

/**
 * Revokes an operator for good. Repeating the call does no harm. If several operators have the name, the one with a valid
 * token is meant, or else the newest.
 */
export function revokeOperator(idOrName: string, nowMs: number): BookChange<OperatorRow> {
  return {
    about: { operator: idOrName },
    decide({ operators }) {
      const operator =
        operators.find(({ id }) => id === idOrName) ?? operators.find((one) => isLive(one, nowMs)) ?? operators.at(-1)
      if (!operator) throw new BookError('no_operator', idOrName)
      if (operator.revokedMs !== undefined) return { writes: [], result: operator }
      return {
        writes: [{ kind: 'revoke_operator', operatorId: operator.id, revokedMs: nowMs }],
        result: { ...operator, revokedMs: nowMs },
        trail: { operation: 'operator.revoke', object: operator.id, after: { name: operator.name, revoked: true } },
      }
    },
  }
}

/** Opens a session for a browser that has shown a token or a key. */
export function signIn(whose: { operatorId: string; expiresMs: number } | { keyId: string }, nowMs: number) {
  const endMs = 'operatorId' in whose ? whose.expiresMs : Number.POSITIVE_INFINITY
  return openSession(
    {
      kind: 'cookie',
      operatorId: 'operatorId' in whose ? whose.operatorId : undefined,
      keyId: 'keyId' in whose ? whose.keyId : undefined,
      actor: undefined,
      expiresMs: Math.min(nowMs + sessionMaxMs, endMs),
    },
    nowMs,
  )
}

/**
 * A person who has signed in at the identity provider. @property keyId the key of the person's session; undefined for a
 * person who signed in as an operator
 */
export type PersonSession = {
  personId: string
  role: PersonRole
  keyId?: string | undefined
  sealed?: string | undefined
}

/**
 * Opens a browser session for a person. The session is short, because the provider does not confirm the person again
 * during the session.
 */
export function signInPerson({ personId, role, keyId, sealed }: PersonSession, nowMs: number) {
  const expiresMs = nowMs + sessionIdleMs
  const own = { kind: 'cookie', operatorId: undefined, keyId, actor: undefined, expiresMs } as const
  const opened = openSession(own, nowMs, { personId, role, sealed })
  const trail = { operation: 'session.browser', object: personId, after: { role } }
  return { ...opened, decide: (facts: Facts) => ({ ...opened.decide(facts), trail }) }
}

/** Makes a token for the command line, which has direct access to the store and therefore needs no permission. */
export function makeCommandToken(actor: string, nowMs: number) {
  const expiresMs = nowMs + commandTokenMs
  return openSession({ kind: 'command', operatorId: undefined, keyId: undefined, actor, expiresMs }, nowMs)
}

/**
 * Makes the token of a link that signs in one browser. No permission is needed, because the person at the server's
 * terminal has direct access to the store.
 * @param actor the name of that person in the audit trail
 */
export function makeLinkToken(actor: string, nowMs: number) {
  const own = { kind: 'command', operatorId: undefined, keyId: undefined, actor } as const
  const ofLink = { personId: undefined, role: linkRole, sealed: undefined }
  return openSession({ ...own, expiresMs: nowMs + linkTokenMs }, nowMs, ofLink)
}

/**
 * Opens the session of a sign-in link, with the role of an admin. The link is then used up. @returns undefined if the
 * link has expired, was used, or does not exist
 */
export function openLink(digest: string, nowMs: number): BookChange<IssuedSession | undefined> {
  return {
    about: { session: digest },
    decide(facts) {
      const link = facts.session
      if (!link || !isLink(link) || hasEnded(link.expiresMs, nowMs)) return { writes: [], result: undefined }
      const own = { kind: 'cookie', operatorId: undefined, keyId: undefined, actor: link.actor } as const
      const opened = openSession({ ...own, expiresMs: nowMs + linkSessionMs }, nowMs).decide(facts)
      return { ...opened, writes: [{ kind: 'delete_session', digest }, ...opened.writes] }
    },
  }
}

/** Whether a session is a sign-in link that no browser has opened yet. */
export function isLink({ kind, role }: Pick<SessionRow, 'kind' | 'role'>): boolean {
  return kind === 'command' && role === linkRole
}

export function signOut(digest: string): BookChange<void> {
  return { about: {}, decide: () => ({ writes: [{ kind: 'delete_session', digest }], result: undefined }) }
}

function openSession(
  own: Pick<SessionRow, 'kind' | 'operatorId' | 'keyId' | 'actor' | 'expiresMs'>,
  nowMs: number,
  ofPerson: Pick<SessionRow, 'personId' | 'role' | 'sealed'> = {
    ...{ personId: undefined, role: undefined, sealed: undefined },
  },
): BookChange<IssuedSession> {
  return {
    about: {},
    decide() {
      const { token, digest } = createToken()
      const session: SessionRow = { ...own, ...ofPerson, digest, createdMs: nowMs, seenMs: nowMs }
      const writes: BookWrite[] = [{ kind: 'insert_session', session }]
      return { writes, result: { session, token } }
    },
  }
}

function isLive({ revokedMs, expiresMs }: OperatorRow, nowMs: number): boolean {
  return revokedMs === undefined && !hasEnded(expiresMs, nowMs)
}

/**
 * Roles of operators (Y22). An admin may do everything. A viewer reads everything except cost and margin. Finance reads
 * sums, prices, statements, cost and margin of all accounts.
 */
export const operatorRoles = ['admin', 'viewer', 'finance'] as const

export type OperatorRole = (typeof operatorRoles)[number]

/**
 * Roles of key owners who have signed in (Y22). A member sees their own data. A lead also sees the people of the
 * account.
 */
export const ownerRoles = ['lead', 'member'] as const

export type OwnerRole = (typeof ownerRoles)[number]

type PersonRole = OperatorRole | OwnerRole

export function roleOf({ role, duty }: OperatorRow): OperatorRole {
  return duty ?? role
}

export type OperatorRow = BookRow<'operators'>
export type SessionRow = BookRow<'sessions'>

/** How long a browser session lasts without use, and how long it lasts at most, in ms (operate §6). */
export const [sessionIdleMs, sessionMaxMs] = [12 * 3_600_000, 7 * 86_400_000]

/** The most browser sessions of one token or key. */
export const sessionsMax = 20

/** How long a token of the command line is valid, in ms. The command line makes one for each query. */
const commandTokenMs = 60_000

/** The role that the store records for the token of a sign-in link. Such a token can be used only with `openLink`. */
const linkRole = 'link'

/**
 * How long a sign-in link can be opened, and how long the session that it opens lasts at most, in ms. A session of that
 * length is enough to create an operator with a token.
 */
export const [linkTokenMs, linkSessionMs] = [600_000, 86_400_000]

/** How far the stored `seenMs` may lag, in ms. Each write is a commit, so not every use of a token is written. */
export const seenLagMs = 300_000

const scheme = 'tri-op-'
/** The number of random characters in a token. Together they have a little more than 256 random bits. */
const randomChars = 43
const form = new RegExp(`^${scheme}[0-9A-Za-z]{${randomChars}}$`)

type NewToken = { token: string; prefix: string; digest: string }

/** Makes a token of an operator or of a session. The token is shown once and stored nowhere. */
export function createToken(): NewToken {
  const token = scheme + randomText(randomChars)
  return { token, prefix: token.slice(0, scheme.length + 6), digest: digestKey(token) }
}

/** Returns the digest of a text in the form of a token; undefined for any other text, so garbage costs no lookup. */
export function readToken(text: string): string | undefined {
  return form.test(text) ? digestKey(text) : undefined
}
