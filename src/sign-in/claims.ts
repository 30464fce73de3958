import type { PersonFacts } from './mapping.ts'

/** The claims of an ID token or of the userinfo endpoint. */
export type Claims = Readonly<Record<string, unknown>>

/**
 * Returns the groups in a claim. The claim is a name, such as `cognito:groups`, or else a path, such as
 * `realm_access.roles`.
 * @returns `too_many` if the provider sent a link instead of the list; undefined if it sent nothing about groups
 */
export function readGroups(claims: Claims, claim: string): PersonFacts['groups'] | undefined {
  const found = Object.hasOwn(claims, claim) ? claims[claim] : claim.split('.').reduce<unknown>(memberOf, claims)
  if (Array.isArray(found)) return found.filter((one) => typeof one === 'string')
  if (typeof found === 'string') return [found]
  // The provider sent a link to the groups (OpenID Connect Core §5.6.2); Entra may send `hasgroups` instead.
  const elsewhere = memberOf(claims['_claim_names'], claim) !== undefined
  return elsewhere || claims['hasgroups'] === true ? 'too_many' : undefined
}

/** Returns the e-mail address in lower case, unless it is unverified. `email_verified` may be a text. */
export function readEmail({ email, email_verified: isVerified }: Claims): string | undefined {
  const isEmail = typeof email === 'string' && email.length <= 254 && /^[^\s@\p{C}]+@[^\s@\p{C}]+$/u.test(email)
  return isEmail && isVerified !== false && isVerified !== 'false' ? email.toLowerCase() : undefined
}

/** Returns a name to show to people. */
export function readName({ name, preferred_username: userName }: Claims): string | undefined {
  return [name, userName].find((one) => typeof one === 'string' && one.trim() !== '') as string | undefined
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined
}
