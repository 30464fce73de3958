import { StoreSilent } from '../accounts/account.ts'
import type { Books } from '../accounts/books.ts'
import { pollSeconds } from '../accounts/sign-in/grant-rules.ts'
import type { IssuedTokens, SessionLives, SignInRow } from '../accounts/sign-in/rows.ts'
import type { ProviderWord, Refresh } from '../accounts/sign-in/session-rules.ts'
import type { createTokens } from '../accounts/sign-in/tokens.ts'
import type { ApiAnswer } from '../admin/answer.ts'
import type { SideRequest } from '../admin/side.ts'
import type { SignInSettings } from '../config/config.ts'
import { GatewayError } from '../errors.ts'
import type { SignInLimits } from './limits.ts'

/*
 * The OAuth endpoints for programs: device codes (RFC 8628), authorization codes with PKCE (RFC 7636), refresh tokens,
 * and revocation (RFC 7009). Clients are public: they have no ids and no secrets. Unknown fields are ignored. Errors
 * are JSON (RFC 6749 §5.2).
 */

/** Asks the provider whether a person may stay signed in. The result comes within a few seconds. */
export type AskAgain = (session: SignInRow, books: Books) => Promise<ProviderWord>

type OAuthParts = {
  books(): Promise<Books>
  tokens: ReturnType<typeof createTokens>
  limits: SignInLimits
  settings(): SignInSettings
  /** Returns the URL at which clients reach the gateway, without a final slash. */
  baseOf(request: SideRequest): string
  nowMs(): number
  /** Undefined: the provider is not asked when a token is refreshed. */
  askAgain?: AskAgain | undefined
}

/** The largest form, in bytes (ruling Y19). */
const formBytesMax = 16_384

/**
 * The pause between two looks at the store, in ms, and the most looks. While another server asks the provider, this
 * server looks for the result.
 */
const [lookMs, looksMax] = [150, 40]

/** Makes a response to a program, which must not be cached. */
export function oauthAnswer(status: number, body: object | undefined, more: Record<string, string> = {}): ApiAnswer {
  return {
    status,
    headers: {
      ...(body && { 'content-type': 'application/json' }),
      ...{ 'cache-control': 'no-store', pragma: 'no-cache', 'x-content-type-options': 'nosniff' },
      ...more,
    },
    ...(body && { body: JSON.stringify(body) }),
  }
}

type OAuthError = readonly [status: number, text: string]

/** For each error, its status and a message for people (RFC 6749 §5.2, RFC 8628 §3.5). */
const errors = {
  invalid_request: [400, 'The request lacks a field.'],
  unsupported_grant_type: [
    400,
    'This grant is not served: use a device code, an authorization code or a refresh token.',
  ],
  authorization_pending: [400, 'Nobody has approved it yet.'],
  slow_down: [429, 'This is too often: wait, then try again.'],
  access_denied: [400, 'The sign-in was denied in the browser.'],
  expired_token: [400, 'The sign-in has ended, or was used: begin a new one.'],
  invalid_grant: [400, 'The gateway does not know this token or code, or no longer accepts it.'],
  temporarily_unavailable: [503, 'The gateway cannot check the sign-in right now: try again.'],
  invalid_method: [405, 'Use POST.'],
} satisfies Record<string, OAuthError>

function refuse(error: keyof typeof errors, more: Record<string, string> = {}, text?: string): ApiAnswer {
  const [status, usual] = errors[error]
  const name = error === 'invalid_method' ? 'invalid_request' : error
  return oauthAnswer(status, { error: name, error_description: text ?? usual }, more)
}

/** Makes the error for a form that is too large or too slow (ruling Y19). The connection is closed after it. */
function refuseForm({ status, code, message }: GatewayError, { record }: SideRequest): ApiAnswer {
  Object.assign(record, { code, message })
  const text = status === 413 ? `The form is larger than ${formBytesMax} bytes.` : message
  return oauthAnswer(status, { error: 'invalid_request', error_description: text }, { connection: 'close' })
}

/** A sentence for each reason why a session ended. `triwire token` shows it in a text that also says what to do. */
const ends = {
  ended: 'An operator ended it, or you did in the console.',
  signed_out: 'You signed out.',
  revoked: 'Its key was revoked.',
  reuse: 'An old token of it was used again.',
  provider: 'Your organisation does not confirm it any more.',
  person_erased: 'The data of its person were erased.',
  suspended: 'The account is not active: ask its operator.',
  idle: 'It was not used for too long.',
  expired: 'It has reached its longest duration.',
  unknown: errors.invalid_grant[1],
} satisfies Record<Extract<Refresh, { kind: 'ended' }>['why'], string>

/** Returns the handlers of the OAuth endpoints. The keys of the object are the paths. */
export function createOAuth(parts: OAuthParts) {
  const { tokens, limits } = parts
  const { booksFor, refresh, tellTokens, lives } = createRefreshing(parts)
  return {
    '/oauth/device_authorization': posted(authorize),
    '/oauth/token': posted(redeem),
    '/oauth/revoke': posted(revoke),
  }

  /** Reads the form. If the store does not respond, the error tells programs to retry and not to sign in again. */
  function posted(answer: (form: URLSearchParams, request: SideRequest) => Promise<ApiAnswer>) {
    return async (request: SideRequest): Promise<ApiAnswer> => {
      const answered = await read(request).catch((error) => {
        if (error instanceof StoreSilent) return refuse('temporarily_unavailable')
        if (error instanceof GatewayError) return refuseForm(error, request)
        throw error
      })
      return { ...answered, headers: { 'x-request-id': request.id, ...answered.headers } }
    }

    async function read(request: SideRequest): Promise<ApiAnswer> {
      if (request.exchange.method !== 'POST') return refuse('invalid_method', { allow: 'POST' })
      const form = new URLSearchParams((await request.readBody(formBytesMax)).toString('utf8'))
      return answer(form, request)
    }
  }

  async function authorize(form: URLSearchParams, request: SideRequest): Promise<ApiAnswer> {
    const { ip } = request.record
    const place = limits.begin(ip)
    if (!place.ok)
      return refuse(
        'slow_down',
        { 'retry-after': `${place.retryAfterSeconds}` },
        `Too many sign-ins were begun from your address and not finished: try again in ${place.retryAfterSeconds} seconds.`,
      )
    const agent = form.get('surface') || form.get('client_id') || request.exchange.header('user-agent')
    const begin = async () => (await booksFor(ip)).beginGrant({ kind: 'device', agent, address: ip })
    const grant = await begin().catch((error) => {
      // No sign-in was begun, so nothing is counted.
      place.giveBack()
      throw error
    })
    limits.begun(grant.code, place)
    const page = `${parts.baseOf(request)}/console/device`
    return oauthAnswer(200, {
      device_code: grant.code,
      user_code: grant.userCode,
      verification_uri: page,
      verification_uri_complete: `${page}?user_code=${grant.userCode}`,
      expires_in: Math.round((grant.expiresMs - parts.nowMs()) / 1000),
      interval: pollSeconds,
    })
  }

  function redeem(form: URLSearchParams, request: SideRequest): Promise<ApiAnswer> {
    switch (form.get('grant_type')) {
      case null:
      case '':
        return Promise.resolve(refuse('invalid_request', {}, 'The request lacks `grant_type`.'))
      case 'urn:ietf:params:oauth:grant-type:device_code':
        return redeemGrant(form.get('device_code'), 'device_code', request)
      case 'authorization_code':
        return redeemGrant(form.get('code'), 'code', request, {
          verifier: form.get('code_verifier') ?? '',
          redirectUri: form.get('redirect_uri') ?? '',
        })
      case 'refresh_token':
        return redeemRefresh(form.get('refresh_token'), request)
      default:
        return Promise.resolve(refuse('unsupported_grant_type'))
    }
  }

  async function redeemGrant(
    code: string | null,
    field: string,
    { record }: SideRequest,
    shown?: { verifier: string; redirectUri: string },
  ): Promise<ApiAnswer> {
    if (!code) return refuse('invalid_request', {}, `The request lacks \`${field}\`.`)
    const own = await booksFor(record.ip)
    const redeemed = shown ? await own.redeemCode(code, shown, lives()) : await own.pollGrant(code, lives())
    if ('error' in redeemed) {
      const { error } = redeemed
      if (error === 'expired_token' || error === 'invalid_grant') return wrong(error, record.ip)
      if (error === 'access_denied') limits.finish(code)
      return refuse(error, error === 'slow_down' ? { 'retry-after': `${pollSeconds}` } : {})
    }
    limits.finish(code)
    const { session } = redeemed
    Object.assign(record, { accountId: session.accountId, keyId: session.keyId })
    const email = (await own.findPerson(session.personId)).email
    return tellTokens(redeemed, redeemed.secret!, email === undefined ? {} : { email })
  }

  async function redeemRefresh(token: string | null, { record }: SideRequest): Promise<ApiAnswer> {
    if (!token) return refuse('invalid_request', {}, 'The request lacks `refresh_token`.')
    const shown = tokens.readRefresh(token)
    return shown ? refresh(token, shown, record.ip) : wrong('invalid_grant', record.ip)
  }

  /** Ends the session of an access or refresh token. The response is the same for every text (RFC 7009 §2.2). */
  async function revoke(form: URLSearchParams, { record }: SideRequest): Promise<ApiAnswer> {
    const token = form.get('token') ?? ''
    const shown = tokens.readAccess(token) ?? tokens.readRefresh(token)
    if (shown) await (await booksFor(record.ip)).endSession({ digest: shown.digest }, 'signed_out')
    return oauthAnswer(200, undefined)
  }

  /** Counts an unknown code or token of this address. @returns the refusal, which asks for a wait after too many */
  function wrong(error: 'expired_token' | 'invalid_grant', ip: string): ApiAnswer {
    const seconds = limits.fail(ip)
    return seconds === undefined ? refuse(error) : refuse('slow_down', { 'retry-after': `${seconds}` })
  }
}

type ShownRefresh = NonNullable<ReturnType<OAuthParts['tokens']['readRefresh']>>

/** Makes the functions that refresh sessions and that write tokens into a response. */
function createRefreshing({ books, tokens, settings, nowMs, askAgain }: OAuthParts) {
  const refreshing = new Map<string, Promise<ApiAnswer>>()
  return { booksFor, refresh, tellTokens, lives }

  /** Refreshes a session. Programs of a person may share a token, so concurrent refreshes get the same response. */
  function refresh(token: string, shown: ShownRefresh, ip: string): Promise<ApiAnswer> {
    const running = refreshing.get(token) ?? askRefresh(shown, ip).finally(() => refreshing.delete(token))
    refreshing.set(token, running)
    return running
  }

  async function askRefresh({ secret, ...shown }: ShownRefresh, ip: string): Promise<ApiAnswer> {
    const own = await booksFor(ip)
    for (let looks = 0; looks < looksMax; looks++) {
      let answer = await own.refreshSession({ ...shown, isAsking: askAgain !== undefined }, lives())
      if (answer.kind === 'ask') {
        const word = await askAgain!(answer.session, own).catch((): ProviderWord => ({ kind: 'silent' }))
        answer = await own.settleRefresh(shown, word, { ...lives(), offlineMs: settings().offlineMs })
      }
      if (answer.kind === 'issued') return tellTokens(answer, secret)
      // After `invalid_grant` a program forgets its tokens. They work again when the account is active again.
      if (answer.kind === 'ended' && answer.why === 'suspended')
        return refuse('temporarily_unavailable', { 'retry-after': '30' }, ends.suspended)
      if (answer.kind === 'ended') return refuse('invalid_grant', {}, ends[answer.why])
      if (answer.kind === 'silent') return refuse('temporarily_unavailable', { 'retry-after': '30' })
      await new Promise((resolve) => setTimeout(resolve, lookMs))
    }
    return refuse('temporarily_unavailable', { 'retry-after': '5' })
  }

  function tellTokens(issued: IssuedTokens, secret: string, more: object = {}): ApiAnswer {
    const { access, refresh } = tokens.issue(secret, issued.generation, issued.accessExpiresMs)
    const seconds = Math.max(1, Math.round((issued.accessExpiresMs - nowMs()) / 1000))
    const body = { access_token: access, token_type: 'Bearer', expires_in: seconds, refresh_token: refresh }
    return oauthAnswer(200, { ...body, ...more })
  }

  /** Opens the books (accounts, keys and sessions). The audit trail records the address of the request. */
  async function booksFor(address: string): Promise<Books> {
    return (await books()).as({ actor: 'sign_in', address })
  }

  function lives(): SessionLives {
    const { accessMs, idleMs, absoluteMs } = settings()
    return { accessMs, idleMs, absoluteMs }
  }
}
