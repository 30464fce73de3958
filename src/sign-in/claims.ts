import type { PersonFacts } from './mapping.ts'

/** The claims of an ID token or of userinfo, as JSON. */
export type Claims = Readonly<Record<string, unknown>>

/**
 * Returns the groups in a claim. The name of the claim is taken as it is, such as `cognito:groups`, and else as a path, such as
 * `realm_access.roles`.
 * @returns `too_many` for a link in place of the list; undefined if nothing is said of groups
 */
export function readGroups(claims: Claims, claim: string): PersonFacts['groups'] | undefined {
  const found = Object.hasOwn(claims, claim) ? claims[claim] : claim.split('.').reduce<unknown>(memberOf, claims)
  if (Array.isArray(found)) return found.filter((one) => typeof one === 'string')
  if (typeof found === 'string') return [found]
  // OpenID Connect Core 5.6.2, and `hasgroups` of Entra in tokens that came through a browser.
  const elsewhere = memberOf(claims['_claim_names'], claim) !== undefined
  return elsewhere || claims['hasgroups'] === true ? 'too_many' : undefined
}

/** Returns the address, in lower case, unless it is said to be unverified. Some providers write the boolean as a text. */
export function readEmail({ email, email_verified: isVerified }: Claims): string | undefined {
  const isEmail = typeof email === 'string' && email.length <= 254 && /^[^\s@\p{C}]+@[^\s@\p{C}]+$/u.test(email)
  return isEmail && isVerified !== false && isVerified !== 'false' ? email.toLowerCase() : undefined
}

/** Returns a name for people to read. */
export function readName({ name, preferred_username: userName }: Claims): string | undefined {
  return [name, userName].find((one) => typeof one === 'string' && one.trim() !== '') as string | undefined
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined
}
