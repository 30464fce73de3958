import type { Target } from './target.ts'

/** The header by which a wire's servers are told who pays. */
export type CredentialScheme = 'x-api-key' | 'bearer'

/**
 * The key of the account that pays for an attempt. It goes on here, with the target in hand, and nowhere before: so that
 * no request can carry one provider's key to another (U14).
 * @returns no header where the account has no key, as local servers need none.
 */
export function credentialOf({ account }: Target, scheme: CredentialScheme): readonly [string, string] | undefined {
  const key = account?.key.reveal()
  if (!key) return undefined
  return scheme === 'bearer' ? ['authorization', `Bearer ${key}`] : ['x-api-key', key]
}
