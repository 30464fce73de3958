import { parseObject } from '../../bytes/json.ts'
import { ask, explainFailure } from '../ask.ts'
import { SignInFault } from './fault.ts'
import { isSafe } from './gateway-url.ts'
import { isBearer, type KeptTokens } from './kept.ts'

/*
 * The requests of the sign-in protocol: discovery (RFC 8414) and the forms (RFC 6749, 8628 and 7009). The discovery
 * document is at a path below the gateway's address. Redirects are not followed.
 */

type OauthJson = Readonly<Record<string, unknown>>

/** A response of an endpoint. `body` is an empty object if the response is not a JSON object. */
export type OauthAnswer = { status: number; body: OauthJson; location: string | undefined }

/** The endpoints of a gateway for sign-in. */
export type SignInOffer = {
  url: string
  deviceEndpoint: string
  tokenEndpoint: string
  revocationEndpoint?: string
  authorizationEndpoint?: string
}

const answerBytesMax = 1_048_576

/** The longest wait for a response of sign-in and discovery, in ms. */
export const patienceMs = 10_000

/**
 * Sends a form by POST, or sends a GET if there is no form.
 * @throws SignInFault with the reason if no complete response arrives in time
 */
export async function askEndpoint(
  url: string,
  form: Readonly<Record<string, string>> | undefined,
  limitMs: number,
): Promise<OauthAnswer> {
  try {
    const response = await ask(url, {
      method: form ? 'POST' : 'GET',
      headers: { accept: 'application/json', ...(form && { 'content-type': 'application/x-www-form-urlencoded' }) },
      ...(form && { body: new URLSearchParams(form).toString() }),
      signal: AbortSignal.timeout(Math.ceil(limitMs)),
    })
    const text = await response.text(answerBytesMax)
    return { status: response.status, body: parseObject(text) ?? {}, location: response.headers.get('location') }
  } catch (error) {
    const why = explainFailure(error, url, `no answer within ${Math.round(limitMs / 1_000)} s`)
    throw new SignInFault(1, `${new URL(url).origin} cannot be reached: ${why}`)
  }
}

/**
 * Asks a gateway for its endpoints. Endpoints of another origin are ignored, because tokens are for this gateway only.
 * @throws SignInFault if the gateway offers no sign-in, or cannot be reached
 */
export async function discover(url: string): Promise<SignInOffer> {
  const { status, body, location } = await askEndpoint(
    `${url}/.well-known/oauth-authorization-server`,
    undefined,
    patienceMs,
  )
  if (status >= 300 && status < 400) {
    const to = URL.parse(location ?? '', url)?.origin
    throw new SignInFault(3, `${url} redirects${to ? ` to ${to}` : ''}, which is not followed: name that address`)
  }
  if (status !== 200)
    throw new SignInFault(
      status >= 500 ? 1 : 3,
      `${url} offers no sign-in (status ${status}): is it the address of the gateway, and is sign_in configured there?`,
    )
  const own = (name: string): string | undefined => {
    const found = URL.parse(String(body[name] ?? ''))
    return found && found.origin === new URL(url).origin && isSafe(found) ? found.href : undefined
  }
  const [revocationEndpoint, authorizationEndpoint] = [own('revocation_endpoint'), own('authorization_endpoint')]
  return {
    url,
    deviceEndpoint: own('device_authorization_endpoint') ?? `${url}/oauth/device_authorization`,
    tokenEndpoint: own('token_endpoint') ?? `${url}/oauth/token`,
    ...(revocationEndpoint && { revocationEndpoint }),
    ...(authorizationEndpoint && { authorizationEndpoint }),
  }
}

/** The tokens in a response, and the person whom the response names. */
export type TokenGrant = { tokens: KeptTokens; email: string | undefined }

/**
 * Reads the response of a token endpoint.
 * @param askedMs the Unix time before the request, from which the lifetime of the tokens counts
 * @returns undefined if the response has no token with a lifetime in seconds
 */
export function readGranted({ status, body }: OauthAnswer, askedMs: number): TokenGrant | undefined {
  const { access_token: access, refresh_token: refresh, expires_in: lifeSeconds, email } = body
  if (status !== 200 || !isBearer(access) || typeof lifeSeconds !== 'number' || !(lifeSeconds > 0)) return undefined
  return {
    tokens: {
      access_token: access,
      ...(typeof refresh === 'string' && refresh !== '' && { refresh_token: refresh }),
      ...{ obtained_ms: askedMs, expires_ms: askedMs + Math.min(lifeSeconds, lifeSecondsMax) * 1_000 },
    },
    email: typeof email === 'string' ? plainText(email) : undefined,
  }
}

/** One year. No token of a session is valid for longer, and times up to this limit stay exact in JSON. */
const lifeSecondsMax = 31_536_000

/** Makes one line of a server's text, without control characters, which a terminal would obey. */
export function plainText(text: unknown): string {
  return String(text ?? '')
    .replace(/[\s\p{C}]+/gu, ' ')
    .trim()
    .slice(0, 300)
}

/** Returns the server's reason for an error in brackets, or an empty text if the server gave no reason. */
export function reasonOf({ body }: OauthAnswer): string {
  const said = plainText(body['error_description'] ?? body['error'])
  return said === '' ? '' : ` (${said})`
}
