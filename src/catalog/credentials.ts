/** The parts of a request to an upstream. Some credentials are computed from these parts, for example a signature. */
type SignedParts = {
  /** The base URL of the upstream, without a slash at its end. */
  baseUrl: string
  /** The path from the host's root, with the query. */
  path: string
  /** All headers except those of the credential. Each value follows its name. */
  headers: readonly string[]
  body: Buffer
}

/**
 * Makes the headers that identify the paying account to an upstream.
 * @param key the key of the account, as the operator configured it
 */
export type CredentialHeaders = (key: string, parts: SignedParts) => readonly (readonly [name: string, value: string])[]

/** Sends the key as `authorization: Bearer` (RFC 6750 2.1). */
export const bearer: CredentialHeaders = (key) => [['authorization', `Bearer ${key}`]]

/** Sends the key as `x-api-key` (spec 9.2). */
export const apiKeyHeader: CredentialHeaders = (key) => [['x-api-key', key]]
