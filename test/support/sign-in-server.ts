import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { Pair } from './certificates.ts'
import { listen } from './listen.ts'

/** A scripted response: a status and a body. A text is sent unchanged, and any other body as JSON. */
export type Scripted = {
  status: number
  body?: unknown
  headers?: Record<string, string>
  hangsUp?: boolean
}

type Form = Record<string, string>

export type SignInServer = {
  url: string
  /** All requests, in the order of arrival. */
  asked: { path: string; form: Form; headers: IncomingMessage['headers'] }[]
  /** Sets the responses of a path: one after the other, then always the last one. */
  script(path: string, ...answers: (Scripted | ((form: Form) => Scripted))[]): void
  /** Returns the forms that were sent to a path. */
  formsOf(path: string): Form[]
  /** The generation of the only session. A refresh makes the next one. */
  generation: number
  /** Whether the discovery document has the page for browsers. */
  hasPage: boolean
  /** The lifetime of tokens, in seconds. */
  lifeSeconds: number
}

export const accessToken = (generation: number) => `tri-at-access${generation}`
export const refreshToken = (generation: number) => `tri-rt-refresh${generation}`

/**
 * Starts a server with exactly the forms and responses of the sign-in protocol, version 1. Refresh tokens rotate. The
 * previous one gets the same new tokens, as within a gateway's grace period. Older ones end the session.
 */
export async function startSignInServer(tls?: Pair): Promise<SignInServer> {
  const scripts = new Map<string, (Scripted | ((form: Form) => Scripted))[]>()
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    let text = ''
    for await (const chunk of request) text += chunk
    const path = new URL(request.url!, 'http://127.0.0.1').pathname
    const form = Object.fromEntries(new URLSearchParams(text))
    server.asked.push({ path, form, headers: request.headers })
    const script = scripts.get(path)
    const next = script && (script.length > 1 ? script.shift()! : script[0]!)
    const { status, body, headers, hangsUp } = next
      ? typeof next === 'function'
        ? next(form)
        : next
      : answer(path, form)
    if (hangsUp) return void request.socket.destroy()
    response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers })
    response.end(typeof body === 'string' ? body : JSON.stringify(body ?? {}))
  }

  const answer = (path: string, form: Form): Scripted => {
    if (path === '/.well-known/oauth-authorization-server') return { status: 200, body: document() }
    if (path === '/oauth/device_authorization') {
      const page = { verification_uri: `${server.url}/console/device` }
      return {
        status: 200,
        body: { device_code: 'device-1', user_code: 'BCDF-GHJK', ...page, expires_in: 600, interval: 1 },
      }
    }
    if (path === '/oauth/token') return grant(form)
    if (path === '/oauth/revoke') return { status: 200 }
    return { status: 404, body: { error: 'not_found' } }
  }

  const document = () => ({
    issuer: server.url,
    device_authorization_endpoint: `${server.url}/oauth/device_authorization`,
    token_endpoint: `${server.url}/oauth/token`,
    revocation_endpoint: `${server.url}/oauth/revoke`,
    ...(server.hasPage && { authorization_endpoint: `${server.url}/console/authorize` }),
    gateway_protocol_version: 1,
  })

  const grant = (form: Form): Scripted => {
    if (form['grant_type'] !== 'refresh_token') return { status: 200, body: tokens() }
    const asked = Number(/^tri-rt-refresh(\d+)$/.exec(form['refresh_token'] ?? '')?.[1] ?? Number.NaN)
    if (asked === server.generation) server.generation++
    else if (asked !== server.generation - 1) return { status: 401, body: { error: 'invalid_grant' } }
    return { status: 200, body: tokens() }
  }

  const tokens = () => ({
    access_token: accessToken(server.generation),
    token_type: 'Bearer',
    expires_in: server.lifeSeconds,
    refresh_token: refreshToken(server.generation),
    email: 'dev@corp.test',
  })

  const server: SignInServer = {
    url: '',
    asked: [],
    script: (path, ...answers) => void scripts.set(path, answers),
    formsOf: (path) => server.asked.filter((one) => one.path === path).map(({ form }) => form),
    generation: 1,
    hasPage: false,
    lifeSeconds: 3_600,
  }
  const listener = tls ? createSecureServer({ cert: tls.cert, key: tls.key }, handle) : createServer(handle)
  server.url = `${tls ? 'https' : 'http'}://127.0.0.1:${await listen(listener)}`
  return server
}
