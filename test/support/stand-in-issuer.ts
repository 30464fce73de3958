import { createHash, createHmac, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { text } from 'node:stream/consumers'
import type { Pair } from './certificates.ts'
import { listen } from './listen.ts'

type Json = Record<string, unknown>

/** An issued code, and the request for it. */
type GivenCode = { nonce: string | undefined; challenge: string | undefined; redirectUri: string }

/** Functions that change the correct behaviour. They are called for every request. */
export type Hostility = {
  metadata?: (honest: Json) => Json
  /** The parameters of the redirect to the gateway. */
  redirect?: (honest: Record<string, string>) => Record<string, string>
  claims?: (honest: Json) => Json
  header?: (honest: Json) => Json
  /** Returns another signature. */
  signature?: (signed: string) => string
  token?: (honest: Json) => Json
  /** Returns the status and body with which the token endpoint refuses a request. */
  refuse?: () => [number, Json] | undefined
  userinfo?: (honest: Json) => Json
  /** A response waits for this promise. */
  hold?: () => Promise<void>
  /** While it returns true, every connection is cut. */
  isDown?: () => boolean
}

export const standInSecret = 'a-client-secret-of-ours'

/**
 * Starts a small identity provider that a test can make lie. By default it checks PKCE, codes and the client's secret.
 * @param tls its certificate, and a host name that only a proxy can resolve
 */
export async function startStandIn(hostility: Hostility = {}, tls?: { name: string; pair: Pair }) {
  let issuer = ''
  const keys: { kid: string; key: KeyObject; jwk: Json }[] = []
  const codes = new Map<string, GivenCode>()
  const refreshTokens = new Set<string>()
  const asked: string[] = []
  const person: Json = {
    sub: 'u-1',
    email: 'dev@corp.test',
    email_verified: true,
    name: 'Dev One',
    groups: ['developers'],
  }
  rotate()

  const answer: RequestListener = async (request, response) => {
    if (hostility.isDown?.()) return void request.socket.destroy()
    await hostility.hold?.()
    const url = new URL(request.url!, issuer)
    asked.push(`${request.method} ${url.pathname}`)
    const tell = (status: number, body: Json) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    const form = new URLSearchParams(request.method === 'POST' ? await text(request) : '')
    if (url.pathname === '/.well-known/openid-configuration') {
      const honest = {
        ...{ issuer, authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token` },
        ...{
          jwks_uri: `${issuer}/jwks`,
          userinfo_endpoint: `${issuer}/userinfo`,
          end_session_endpoint: `${issuer}/end`,
        },
        ...{ response_types_supported: ['code'], subject_types_supported: ['public'] },
        id_token_signing_alg_values_supported: ['RS256', 'ES256', 'HS256', 'none'],
        ...{ scopes_supported: ['openid', 'profile', 'email', 'offline_access', 'groups'] },
        authorization_response_iss_parameter_supported: true,
      }
      return void tell(200, hostility.metadata?.(honest) ?? honest)
    }
    if (url.pathname === '/jwks') return void tell(200, { keys: keys.map(({ jwk }) => jwk) })
    if (url.pathname === '/authorize') {
      const { searchParams: query } = url
      const code = randomBytes(16).toString('hex')
      const redirectUri = query.get('redirect_uri')!
      const [nonce, challenge] = [query.get('nonce') ?? undefined, query.get('code_challenge') ?? undefined]
      codes.set(code, { nonce, challenge, redirectUri })
      const honest = { code, state: query.get('state')!, iss: issuer }
      const location = `${redirectUri}?${new URLSearchParams(hostility.redirect?.(honest) ?? honest)}`
      return void response.writeHead(302, { location }).end()
    }
    if (url.pathname === '/userinfo') {
      const isOurs = request.headers.authorization?.startsWith('Bearer at-')
      return void (isOurs ? tell(200, hostility.userinfo?.(person) ?? person) : tell(401, {}))
    }
    if (url.pathname !== '/token') return void response.writeHead(404).end()
    const basic = Buffer.from(request.headers.authorization?.slice('Basic '.length) ?? '', 'base64').toString()
    // Both parts are form-encoded (RFC 6749 §2.3.1).
    if (decodeURIComponent(basic) !== `triwire:${standInSecret}`) return void tell(401, { error: 'invalid_client' })
    const refused = hostility.refuse?.()
    if (refused) return void tell(...refused)
    const nonce = takeGrant(form)
    if (nonce === false) return void tell(400, { error: 'invalid_grant' })
    const nowSeconds = Math.floor(Date.now() / 1_000)
    const times = { iat: nowSeconds, exp: nowSeconds + 300 }
    const honest = { ...person, iss: issuer, aud: 'triwire', ...times, ...(nonce !== undefined && { nonce }) }
    const refreshToken = `canary-rt-${randomBytes(8).toString('hex')}`
    refreshTokens.add(refreshToken)
    const token = {
      ...{ access_token: `at-${randomBytes(8).toString('hex')}`, token_type: 'Bearer', expires_in: 300 },
      ...{ refresh_token: refreshToken, id_token: formToken(hostility.claims?.(honest) ?? honest) },
    }
    tell(200, hostility.token?.(token) ?? token)
  }
  const server = tls ? createSecureServer({ cert: tls.pair.cert, key: tls.pair.key }, answer) : createServer(answer)
  const port = await listen(server)
  issuer = tls ? `https://${tls.name}` : `http://127.0.0.1:${port}`
  return { issuer, port, person, asked, hostility, rotate, close }

  /** Closes the server, for programs that are no tests. */
  function close(): void {
    server.closeAllConnections()
    server.close()
  }

  /** Signs with a new key from now on. @param isKept whether the old keys are still published */
  function rotate(isKept = false): void {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const kid = `k${randomBytes(4).toString('hex')}`
    if (!isKept) keys.length = 0
    keys.push({ kid, key: privateKey, jwk: { ...publicKey.export({ format: 'jwk' }), kid, alg: 'ES256', use: 'sig' } })
  }

  /** @returns the nonce of the ID token, or false to refuse */
  function takeGrant(form: URLSearchParams): string | undefined | false {
    if (form.get('grant_type') === 'refresh_token')
      return refreshTokens.delete(form.get('refresh_token') ?? '') ? undefined : false
    const code = form.get('code') ?? ''
    const given = codes.get(code)
    codes.delete(code)
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    return given && given.challenge === challenge && given.redirectUri === form.get('redirect_uri')
      ? given.nonce
      : false
  }

  function formToken(claims: Json): string {
    const { kid, key } = keys.at(-1)!
    const honest = { alg: 'ES256', typ: 'JWT', kid }
    const parts = [hostility.header?.(honest) ?? honest, claims].map((part) => Buffer.from(JSON.stringify(part)))
    const signed = parts.map((part) => part.toString('base64url')).join('.')
    const own = () => sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')
    return `${signed}.${hostility.signature?.(signed) ?? own()}`
  }
}

/** Signs like an attacker who has only the client's secret, or the public key as text. */
export function signByHmac(secret: string): (signed: string) => string {
  return (signed) => createHmac('sha256', secret).update(signed).digest('base64url')
}
