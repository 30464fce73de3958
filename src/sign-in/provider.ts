import type * as OpenId from 'openid-client'
import type { PersonFacts } from './mapping.ts'
import { discover, judge, ProviderError, type ProviderSettings, skewSeconds } from './provider-client.ts'

/** A person at the provider. `issuer` and `subject` identify them; all other facts can change. */
export type PersonIdentity = PersonFacts & {
  issuer: string
  subject: string
  name: string | undefined
  /** The source of the groups at the sign-in. If it was the ID token, a refresh without an ID token shows no groups. */
  groupsFrom: 'id_token' | 'userinfo' | undefined
  /** The provider's refresh token. It is never shown or sent to a client. */
  refreshToken: string | undefined
  idToken: string | undefined
}

/** The secrets of a sign-in attempt, which the provider's response must match. */
type AttemptSecrets = { state: string; nonce: string; verifier: string }

/** @property clockMs a monotonic clock @property renewalMs the time limit for a whole refresh */
type ProviderLimits = { clockMs: () => number; renewalMs?: number }

/**
 * The result of a refresh at the provider. `silent`: no reliable response came in time.
 * @property late a response that comes after the time limit; it may contain another refresh token
 */
export type Renewal =
  | { kind: 'yes'; identity: PersonIdentity }
  | { kind: 'no'; why: string }
  | { kind: 'silent'; why: string; late?: Promise<Renewal> }

/** The part of an identity that is stored for later refreshes. */
export type RenewalBase = Pick<PersonIdentity, 'subject' | 'groupsFrom'> & { refreshToken: string }

/**
 * Times in ms. Metadata older than `metadataMs` is read again. After an invalid response, metadata older than `pauseMs`
 * is read again. After a failed read, no other read begins for `retryMs`, because anybody can begin a sign-in.
 */
const [metadataMs, pauseMs, retryMs] = [3_600_000, 30_000, 2_000]

/**
 * Creates the client for OpenID Connect: authorization codes with PKCE, `state` and `nonce`, and refreshes (decision
 * 64). Metadata and keys are cached; old ones are used while the provider is down.
 * @param settings called for each request, because a reload can change `groupsClaim`. The rest changes only at a restart.
 */
export function createProvider(settings: () => ProviderSettings, { clockMs, renewalMs = 3_000 }: ProviderLimits) {
  let known: { config: OpenId.Configuration; sinceMs: number } | undefined
  let failed: { error: ProviderError; atMs: number } | undefined
  let reading: Promise<void> | undefined
  return { begin, finish, renew, endSessionUrl }

  /** Begins an attempt. @returns the URL to redirect the browser to @throws ProviderError */
  async function begin({ state, nonce, verifier }: AttemptSecrets, redirectUri: string): Promise<URL> {
    const { openid, config } = await open()
    const { scopes_supported: scopes } = config.serverMetadata()
    const offers = (scope: string) => scopes?.includes(scope) === true
    const wished = ['openid', 'profile', 'email']
    if (offers('groups') && settings().groupsClaim !== undefined) wished.push('groups')
    // Google has its own parameter to ask for refresh tokens (developers.google.com, Web Server Applications).
    const isOffline = scopes === undefined || offers('offline_access')
    if (isOffline) wished.push('offline_access')
    return openid.buildAuthorizationUrl(config, {
      ...{ redirect_uri: redirectUri, scope: wished.join(' '), state, nonce, response_mode: 'query' },
      ...{ code_challenge: await openid.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256' },
      ...(!isOffline && { access_type: 'offline', prompt: 'consent' }),
    })
  }

  /**
   * Completes an attempt with the response that the browser brought.
   * @param answer the URL of the callback with the query of the response
   * @throws ProviderError
   */
  async function finish(attempt: AttemptSecrets, answer: URL): Promise<PersonIdentity> {
    const opened = await open()
    const { openid, config } = opened
    return trust(openid, async () => {
      const checks = { expectedState: attempt.state, expectedNonce: attempt.nonce, pkceCodeVerifier: attempt.verifier }
      const tokens = await openid.authorizationCodeGrant(config, answer, { ...checks, idTokenExpected: true })
      const claims = checkClaims(tokens.claims()!, settings().clientId)
      return identify(opened, tokens, claims, claims.sub)
    })
  }

  /** Asks the provider whether a person may continue, within `renewalMs`. It never throws. */
  async function renew(base: RenewalBase): Promise<Renewal> {
    const limit = Promise.withResolvers<Renewal>()
    const late = ask(base)
    const silent = { kind: 'silent', why: `no answer in ${renewalMs} ms`, late } as const
    const timer = setTimeout(() => limit.resolve(silent), renewalMs)
    try {
      return await Promise.race([late, limit.promise])
    } finally {
      clearTimeout(timer)
    }
  }

  async function ask(base: RenewalBase): Promise<Renewal> {
    try {
      const opened = await open()
      const { openid, config } = opened
      const identity = await trust(openid, async () => {
        const tokens = await openid.refreshTokenGrant(config, base.refreshToken)
        const claims = tokens.claims()
        if (claims && checkClaims(claims, settings().clientId).sub !== base.subject)
          throw new ProviderError('refused', 'the refreshed ID token is of another person')
        return identify(opened, tokens, claims ?? {}, base.subject, base.groupsFrom)
      })
      return { kind: 'yes', identity: { ...identity, refreshToken: identity.refreshToken ?? base.refreshToken } }
    } catch (error) {
      if (!(error instanceof ProviderError)) return { kind: 'silent', why: 'a bug of ours' }
      return { kind: error.problem === 'refused' ? 'no' : 'silent', why: error.message }
    }
  }

  /** Returns the URL that ends the session at the provider (RP-Initiated Logout 1.0). Undefined if there is none. */
  async function endSessionUrl(idToken: string | undefined, returnTo: string): Promise<URL | undefined> {
    const { openid, config } = await open()
    if (config.serverMetadata().end_session_endpoint === undefined) return undefined
    return openid.buildEndSessionUrl(config, {
      post_logout_redirect_uri: returnTo,
      ...(idToken !== undefined && { id_token_hint: idToken }),
    })
  }

  /** Calls the library. @throws ProviderError if the library throws */
  async function trust<T>(openid: typeof OpenId, act: () => Promise<T>): Promise<T> {
    try {
      return await act()
    } catch (error) {
      const judged = judge(openid, error)
      // The provider's keys or endpoints may have changed since its metadata was read. So the metadata is read again.
      if (judged.problem === 'invalid' && known && clockMs() - known.sinceMs >= pauseMs) known = undefined
      throw judged
    }
  }

  /** Returns the metadata. Old metadata is returned at once while it is read again. Only the first read is awaited. */
  async function open(): Promise<OpenProvider> {
    const openid = await import('openid-client')
    if (!known || clockMs() - known.sinceMs >= metadataMs) {
      reading ??= read(openid).finally(() => {
        reading = undefined
      })
      if (known) reading.catch(() => {})
      else await reading
    }
    return { openid, config: known!.config, groupsClaim: settings().groupsClaim }
  }

  async function read(openid: typeof OpenId): Promise<void> {
    if (failed && clockMs() - failed.atMs < retryMs) throw failed.error
    try {
      known = { config: await discover(openid, settings()), sinceMs: clockMs() }
    } catch (error) {
      failed = { error: judge(openid, error), atMs: clockMs() }
      throw failed.error
    }
  }
}

export type Provider = ReturnType<typeof createProvider>

type OpenProvider = { openid: typeof OpenId; config: OpenId.Configuration; groupsClaim: string | undefined }

/**
 * Makes an identity from the claims of the ID token. The userinfo endpoint supplies the facts that the token lacks.
 * @param before the source of the groups at the sign-in; set only for a refresh
 */
async function identify(
  { openid, config, groupsClaim }: OpenProvider,
  tokens: OpenId.TokenEndpointResponse,
  claims: Claims,
  subject: string,
  before?: PersonIdentity['groupsFrom'],
): Promise<PersonIdentity> {
  const groupsIn = (found: Claims) => (groupsClaim === undefined ? [] : readGroups(found, groupsClaim))
  const { issuer, userinfo_endpoint: endpoint } = config.serverMetadata()
  const own = groupsIn(claims)
  const lacks = own === undefined || claims['email'] === undefined
  const more: Claims =
    lacks && endpoint !== undefined ? await openid.fetchUserInfo(config, tokens.access_token, subject) : {}
  const others = own ?? groupsIn(more)
  // Some providers send groups only in the first ID token. If a refresh has no ID token, the groups are unknown.
  if (others === undefined && before === 'id_token' && claims['sub'] === undefined)
    throw new ProviderError('invalid', 'the refresh has no ID token, and userinfo has no groups')
  return {
    ...{ issuer, subject, groups: others ?? [] },
    groupsFrom: own !== undefined ? 'id_token' : others !== undefined ? 'userinfo' : undefined,
    email: readEmail(claims['email'] === undefined ? { ...more, ...claims } : claims),
    name: readName(claims) ?? readName(more),
    ...{ refreshToken: tokens.refresh_token, idToken: tokens.id_token },
  }
}

/** Makes the checks that the library omits (OpenID Connect Core §3.1.3.7, rules 5 and 10). @throws ProviderError */
function checkClaims(claims: OpenId.IDToken, clientId: string): OpenId.IDToken {
  if (claims.azp !== undefined && claims.azp !== clientId)
    throw new ProviderError('invalid', 'the ID token was issued to another client')
  if (claims.iat > Date.now() / 1_000 + skewSeconds)
    throw new ProviderError('invalid', 'the ID token is of a later time: compare the clocks')
  return claims
}

/** The claims of an ID token or of the userinfo endpoint. */
type Claims = Readonly<Record<string, unknown>>

/**
 * Returns the groups in a claim. The claim is a name, such as `cognito:groups`, or else a path, such as
 * `realm_access.roles`.
 * @returns `too_many` if the provider sent a link instead of the list; undefined if it sent nothing about groups
 */
function readGroups(claims: Claims, claim: string): PersonFacts['groups'] | undefined {
  const found = Object.hasOwn(claims, claim) ? claims[claim] : claim.split('.').reduce<unknown>(memberOf, claims)
  if (Array.isArray(found)) return found.filter((one) => typeof one === 'string')
  if (typeof found === 'string') return [found]
  // The provider sent a link to the groups (OpenID Connect Core §5.6.2); Entra may send `hasgroups` instead.
  const elsewhere = memberOf(claims['_claim_names'], claim) !== undefined
  return elsewhere || claims['hasgroups'] === true ? 'too_many' : undefined
}

/** Returns the e-mail address in lower case, unless it is unverified. `email_verified` may be a text. */
function readEmail({ email, email_verified: isVerified }: Claims): string | undefined {
  const isEmail = typeof email === 'string' && email.length <= 254 && /^[^\s@\p{C}]+@[^\s@\p{C}]+$/u.test(email)
  return isEmail && isVerified !== false && isVerified !== 'false' ? email.toLowerCase() : undefined
}

/** Returns a name to show to people. */
function readName({ name, preferred_username: userName }: Claims): string | undefined {
  return [name, userName].find((one) => typeof one === 'string' && one.trim() !== '') as string | undefined
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined
}
