import type { Target } from './target.ts'

/** The header in which a wire expects the key. */
export type CredentialScheme = 'x-api-key' | 'bearer'

/**
 * Makes the header with the key of the account that pays for an attempt. The key is added here, for one known target, and
 * nowhere before, so that no request can carry one provider's key to another (U14). An upstream may have a header of its
 * own for it (ruling P8).
 * @returns undefined if the account has no key, as for local servers
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
