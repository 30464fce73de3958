import { z } from 'zod'
import { digestOfKey } from '../accounts/account.ts'
import { digestKey } from '../accounts/keys.ts'
import { type IssuedSession, operatorRoles, readToken } from '../accounts/operators.ts'
import * as field from './fields.ts'
import { operation } from './operation.ts'
import { challenge, ProblemError } from './problem.ts'

/** Returns the digest of a token or a key. Undefined if the text is neither. @param takesForeign see `digestOfKey` */
export function digestOf(shown: string, takesForeign: boolean): string | undefined {
  return readToken(shown) ?? digestOfKey(shown, takesForeign)
}

/** Returns the digest of a cookie's value. */
export function digestOfCookie(value: string): string | undefined {
  return readToken(value) === undefined ? undefined : digestKey(value)
}

/** A token that we made is no guess, even after its end (ruling Y28). */
const ofSession =
  'This is the token of a session, which is for programs. Sign in with a key, or at your identity provider.'

/** Makes the answer to a sign-in, with the cookie. */
function toldSession<Who extends object>({ session: { expiresMs }, token }: IssuedSession, who: Who) {
  return { body: { ...who, expires: field.formatTime(expiresMs)! }, session: { token, expiresMs } }
}

/** Sign-in and sign-out for browsers. After the sign-in, the browser sends a cookie instead of the token or key. */
export const sessionOperations = [
  operation({
    id: 'session.create',
    http: 'POST /session',
    role: 'anyone',
    input: z.strictObject({
      token: field
        .text('must be a text')
        .max(300)
        .describe('the token of an operator, the token of a sign-in link, or a key of an account'),
    }),
    output: z.object({
      kind: z.enum(['operator', 'owner']),
      name: z.string(),
      role: z.enum(operatorRoles).nullable(),
      expires: field.when,
    }),
    problems: ['unauthenticated', 'rate_limited'],
    text: 'sign in with a token or a key: the answer sets a cookie that further requests send instead of the token or key',
    async run({ books, isForOwners, running, readAccess }, { token }) {
      const shown = token.trim()
      if (readAccess?.(shown)) throw new ProblemError('unauthenticated', ofSession, { ...challenge, isGuess: false })
      const digest = digestOf(shown, running.hasForeignKeys())
      const whose = digest === undefined ? undefined : await books.findPrincipal(digest, 'bearer')
      if (!whose && digest !== undefined && !isForOwners) {
        const opened = await books.openLink(digest)
        if (opened)
          return toldSession(opened, { kind: 'operator', name: opened.session.actor!, role: 'admin' } as const)
      }
      if (!whose || (whose.kind === 'operator' && (isForOwners || whose.operatorId === undefined)))
        throw new ProblemError('unauthenticated', 'This is no token and no key, or no longer.')
      const name = whose.kind === 'operator' ? whose.name : whose.account.name
      const role = whose.kind === 'operator' ? whose.role : null
      return toldSession(await books.signIn(whose), { kind: whose.kind, name, role })
    },
  }),
  operation({
    id: 'session.sign_out',
    http: 'DELETE /session',
    role: 'anyone',
    output: z.object({}),
    text: 'sign out, which makes the cookie invalid',
    async run({ books, cookie }) {
      if (cookie !== undefined) await books.signOut(cookie)
      return { body: {}, session: 'ended' as const }
    },
  }),
]
