import type * as OpenId from 'openid-client'
import type { DialRoute } from '../upstream/dial.ts'
import { fetchHttp } from '../upstream/http-fetch.ts'

/*
 * Configures the OpenID Connect library: which tokens it trusts, how it reaches the provider, and what its errors mean
 * (decision 64).
 */

/** The identity provider of the configuration, and how to reach it. */
export type ProviderSettings = {
  /** The issuer, exactly as in its metadata. `http:` is only for loopback. */
  issuer: string
  clientId: string
  clientSecret: string | undefined
  /** The claim that contains the groups. Undefined if no rule uses groups. */
  groupsClaim: string | undefined
  /** Returns the proxy and the trusted certificates for a URL of the provider. */
  routeTo(url: URL): DialRoute
}

/**
 * Why a request to the provider failed. `declined`: the browser came back with an error. `refused`: the provider no
 * longer accepts the code or the refresh token. `invalid`: its response cannot be trusted.
 */
export type ProviderProblem = 'declined' | 'refused' | 'unreachable' | 'invalid'

/** An error of the provider. @property message for the log, without secrets */
export class ProviderError extends Error {
  readonly problem: ProviderProblem

  constructor(problem: ProviderProblem, message: string) {
    super(message)
    this.problem = problem
  }
}

/** The accepted signature algorithms. `none` and algorithms with a shared secret are refused (RFC 8725 §3.1). */
const algorithms = ['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519']

/** The largest accepted difference between the provider's clock and ours, in s. */
export const skewSeconds = 60

/** The time limit for one request of a sign-in, in s. */
const requestSeconds = 10

/** The largest response of a provider, in bytes. Usual ones have a few KB. */
const answerBytesMax = 1_048_576

/** Reads the provider's metadata, and limits the signature algorithms. @throws ProviderError, or a library error */
export async function discover(openid: typeof OpenId, settings: ProviderSettings): Promise<OpenId.Configuration> {
  const { issuer, clientId, clientSecret } = settings
  const isLocal = new URL(issuer).protocol === 'http:'
  const options = {
    [openid.customFetch]: fetchBy(settings),
    execute: isLocal ? [openid.allowInsecureRequests] : [],
    timeout: requestSeconds,
  }
  const found = (await openid.discovery(new URL(issuer), clientId, undefined, openid.None(), options)).serverMetadata()
  // The library accepts metadata for many tenants (Entra: `common`). We refuse it, since any tenant could then sign in.
  if (found.issuer.replace(/\/$/, '') !== issuer.replace(/\/$/, ''))
    throw new ProviderError('invalid', `the metadata is of ${found.issuer}: name that issuer, of one tenant`)
  const signed = found.id_token_signing_alg_values_supported ?? ['RS256']
  const believed = signed.filter((one) => algorithms.includes(one))
  if (believed.length === 0)
    throw new ProviderError('invalid', `it signs by ${signed.join(', ')}, and we believe ${algorithms.join(', ')}`)
  const config = new openid.Configuration(
    { ...found, id_token_signing_alg_values_supported: believed } as object as OpenId.ServerMetadata,
    clientId,
    { [openid.clockTolerance]: skewSeconds },
    authenticate(openid, clientSecret, found.token_endpoint_auth_methods_supported),
  )
  config[openid.customFetch] = options[openid.customFetch]
  config.timeout = requestSeconds
  if (isLocal) openid.allowInsecureRequests(config)
  openid.enableNonRepudiationChecks(config)
  return config
}

/** Chooses how our client authenticates. `client_secret_basic` is the default (OpenID Connect Core §9). */
function authenticate(openid: typeof OpenId, secret: string | undefined, methods = ['client_secret_basic']) {
  if (secret === undefined) return openid.None()
  return methods.includes('client_secret_basic') ? openid.ClientSecretBasic(secret) : openid.ClientSecretPost(secret)
}

/** Makes a `fetch` for the library that uses the gateway's own HTTP client. It follows no redirects. */
function fetchBy({ issuer, routeTo }: ProviderSettings): OpenId.CustomFetch {
  const ownHost = new URL(issuer).hostname
  return async (address, { method, headers, body, signal }) => {
    const url = new URL(address)
    // The metadata may name other hosts only with TLS, and never a link-local address.
    if (url.hostname !== ownHost && (url.protocol !== 'https:' || isLinkLocal(url)))
      throw new ProviderError('invalid', `its metadata names ${url.origin}, which is not https: or is link-local`)
    const response = await fetchHttp(url, {
      ...routeTo(url),
      ...{ method, headers, body: body === undefined || body === null ? '' : `${body}` },
      ...(signal && { signal }),
    })
    const text = await response.text(answerBytesMax)
    const type = response.headers.get('content-type')
    const kept = { ...(type !== undefined && { 'content-type': type }) }
    const challenge = response.headers.get('www-authenticate')
    if (challenge !== undefined) Object.assign(kept, { 'www-authenticate': challenge })
    return new Response([204, 205, 304].includes(response.status) ? null : text, {
      status: response.status,
      headers: kept,
    })
  }
}

/** Converts an error of the library `openid-client` into a `ProviderError` without secrets. */
export function judge(openid: typeof OpenId, error: unknown): ProviderError {
  if (error instanceof ProviderError) return error
  const { cause } = error as Error
  if (cause instanceof ProviderError) return cause
  if (error instanceof openid.AuthorizationResponseError)
    return new ProviderError('declined', `it sent the browser back with ${word(error.error)}`)
  // Errors of the token endpoint except `invalid_grant` concern our settings, not the person (RFC 6749 §5.2).
  if (error instanceof openid.ResponseBodyError)
    return new ProviderError(
      error.error === 'invalid_grant' ? 'refused' : 'unreachable',
      `its token endpoint answers ${word(error.error)}`,
    )
  const { code, message } = error as NodeJS.ErrnoException
  const isSilence = !(error instanceof openid.ClientError) || ['OAUTH_TIMEOUT', undefined].includes(error.code)
  const isBroken = code === 'OAUTH_RESPONSE_IS_NOT_CONFORM' || code === 'OAUTH_RESPONSE_IS_NOT_JSON'
  const { code: systemCode, message: inner } = (cause ?? {}) as NodeJS.ErrnoException
  const text = [message === 'something went wrong' ? '' : message, systemCode ?? inner].filter(Boolean).join(': ')
  return new ProviderError(isSilence || isBroken ? 'unreachable' : 'invalid', text)
}

/** Sanitizes a text of the provider for the log. */
function word(text: string): string {
  return text.replace(/[^\w.-]/g, '?').slice(0, 60)
}

/** Whether an address is link-local. Clouds serve the credentials of machines at such addresses (ruling Y27). */
function isLinkLocal({ hostname }: URL): boolean {
  return /^(169\.254\.|\[fe[89ab])/.test(hostname)
}
