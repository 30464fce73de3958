/** The parts of a request to an upstream that its credential may depend on, such as a signature. */
type SignedParts = {
  /** Of the upstream, without a slash at its end. */
  baseUrl: string
  /** From the host's root, with the query. */
  path: string
  /** Names and values in turn, of all other headers. */
  headers: readonly string[]
  body: Buffer
}

/** The headers that show an upstream which of its accounts pays. @param key of the account, as the operator has it */
export type CredentialHeaders = (key: string, parts: SignedParts) => readonly (readonly [name: string, value: string])[]

/** The key as `authorization: Bearer` (RFC 6750 2.1). */
export const bearer: CredentialHeaders = (key) => [['authorization', `Bearer ${key}`]]

/** The key as `x-api-key` (spec 9.2). */
export const apiKeyHeader: CredentialHeaders = (key) => [['x-api-key', key]]
