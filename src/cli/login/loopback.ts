import { createHash, randomBytes } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { createEdge } from '../../http/server.ts'
import { SignInFault } from './fault.ts'

/** An authorization request that redirects to a listener on loopback (RFC 8252 §7.3), with PKCE (RFC 7636). */
type LoopbackRequest = {
  /** The page that the person opens. It contains no secret. */
  pageUrl: string
  /** Resolves with the form that exchanges the code for tokens. @throws SignInFault on a refusal or a timeout */
  answered: Promise<Record<string, string>>
  close(): void
}

const limits = {
  ...{ headersMs: 10_000, keepAliveMs: 5_000, lingerMs: 0 },
  ...{ connectionsMax: 50, headerBytesMax: 16_384, headersMax: 200 },
}

/** How long the person may take to sign in at the gateway and its identity provider, in ms. */
const answerMs = 600_000

const word = () => randomBytes(32).toString('base64url')

export async function askOnLoopback(authorizationEndpoint: string, surface: string): Promise<LoopbackRequest> {
  const [state, verifier] = [word(), word()]
  const code = Promise.withResolvers<string>()
  const edge = createEdge({
    limits,
    handle(exchange) {
      // Pages of any site can send requests to this listener, even with an invalid target.
      const asked = URL.parse(exchange.target, 'http://127.0.0.1')
      const isOurs =
        exchange.method === 'GET' && asked?.pathname === '/callback' && asked.searchParams.get('state') === state
      if (!isOurs) return exchange.answer(404, pageLines, page('This page belongs to no sign-in that is under way.'))
      const { searchParams } = asked
      // A response of another server is refused even if its `state` is right (RFC 9207).
      const issuer = URL.parse(searchParams.get('iss') ?? authorizationEndpoint)?.origin
      const found = searchParams.get('code')
      const isGranted = found !== null && issuer === new URL(authorizationEndpoint).origin
      exchange.answer(
        200,
        pageLines,
        page(
          isGranted
            ? 'You are signed in. You can close this window and go back to the terminal.'
            : 'You are not signed in. Go back to the terminal.',
        ),
      )
      if (isGranted) code.resolve(found)
      else code.reject(refused(searchParams.get('error')))
    },
    formError: () => ({ lines: '', body: '' }),
  })
  const timer = setTimeout(
    () => code.reject(new SignInFault(1, 'the sign-in timed out: nobody answered in the browser')),
    answerMs,
  )
  const close = () => {
    clearTimeout(timer)
    edge.server.close()
    edge.closeIdle()
  }
  edge.server.listen(0, '127.0.0.1')
  await new Promise((resolve, reject) => edge.server.once('listening', resolve).once('error', reject))
  const redirect = `http://127.0.0.1:${(edge.server.address() as AddressInfo).port}/callback`
  const pageUrl = new URL(authorizationEndpoint)
  const asked = {
    ...{ response_type: 'code', surface, redirect_uri: redirect, state },
    ...{ code_challenge: createHash('sha256').update(verifier).digest('base64url'), code_challenge_method: 'S256' },
  }
  for (const [name, value] of Object.entries(asked)) pageUrl.searchParams.set(name, value)
  const answered = code.promise.then((found) => ({
    ...{ grant_type: 'authorization_code', code: found, redirect_uri: redirect, code_verifier: verifier },
  }))
  return { pageUrl: pageUrl.href, answered, close }
}

function refused(error: string | null): SignInFault {
  return new SignInFault(
    1,
    error === 'access_denied'
      ? 'the sign-in was denied in the browser'
      : 'the gateway refused the sign-in in the browser',
  )
}

const pageLines = [
  'content-type: text/html; charset=utf-8',
  'cache-control: no-store',
  "content-security-policy: default-src 'none'",
  'referrer-policy: no-referrer',
]
  .map((line) => `${line}\r\n`)
  .join('')

function page(text: string): string {
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>triwire</title><p>${text}</p></html>`
}
