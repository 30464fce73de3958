import type { Target } from './target.ts'

/** The header by which a wire's servers are told who pays. */
export type CredentialScheme = 'x-api-key' | 'bearer'

/**
 * The key of the account that pays for an attempt. It goes on here, with the target in hand, and nowhere before: so that
 * no request can carry one provider's key to another (U14).
 * An upstream may have a header of its own for it (ruling P8).
 * @returns no header where the account has no key, as local servers need none.
 */
export function credentialOf(
  { key: live, upstream }: Target,
  scheme: CredentialScheme,
): readonly [string, string] | undefined {
  const key = live?.value
  if (!key) return undefined
  const { keyHeader } = upstream
  if (keyHeader !== undefined) return [keyHeader, keyHeader === 'authorization' ? `Bearer ${key}` : key]
  return scheme === 'bearer' ? ['authorization', `Bearer ${key}`] : ['x-api-key', key]
}
