import { createServer, type RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { Provider } from 'oidc-provider'
import type { Pair } from './certificates.ts'
import { listen } from './listen.ts'

/** A person at the provider. */
export type ProviderPerson = { sub: string; email: string; name: string; groups: string[] }

export const providerSecret = 'a-provider-secret-of-ours'

/**
 * Starts a real identity provider (oidc-provider) on loopback, with one client, `triwire`. Each browser is signed in as
 * the person `now`, and refresh tokens rotate.
 * @param site another address, on port 443, and its certificate
 */
export async function startIdentityProvider(
  redirectUris: readonly string[],
  first: ProviderPerson,
  site?: { name: string; address: string; pair: Pair },
) {
  const people = new Map([[first.sub, first]])
  const state = { now: first, isDown: false }
  const answer: RequestListener = (request, response) => {
    if (state.isDown) return void request.socket.destroy()
    handle(request, response)
  }
  const server = site ? createSecureServer(site.pair, answer) : createServer(answer)
  const issuer = site ? `https://${site.name}` : `http://127.0.0.1:${await listen(server)}`
  if (site) await new Promise<void>((resolve) => server.listen(443, site.address, resolve))
  const provider = new Provider(issuer, {
    clients: [
      {
        ...{ client_id: 'triwire', client_secret: providerSecret, redirect_uris: [...redirectUris] },
        post_logout_redirect_uris: redirectUris.map((uri) => uri.replace('/callback', '/signed-out')),
        grant_types: ['authorization_code', 'refresh_token'],
      },
    ],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'], groups: ['groups'] },
    scopes: ['openid', 'offline_access', 'email', 'profile', 'groups'],
    conformIdTokenClaims: false,
    cookies: { keys: ['canary-cookie-key'] },
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: async () => true,
    findAccount: async (_, sub) => {
      const person = people.get(sub)
      return person && { accountId: sub, claims: async () => ({ ...person, email_verified: true }) }
    },
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    features: { devInteractions: { enabled: false }, rpInitiatedLogout: { enabled: true } },
  })
  const callback = provider.callback()

  async function handle(...[request, response]: Parameters<typeof callback>): Promise<void> {
    if (!request.url!.startsWith('/interaction/')) return callback(request, response)
    const { prompt, params, session } = await provider.interactionDetails(request, response)
    if (prompt.name === 'login') {
      people.set(state.now.sub, state.now)
      return provider.interactionFinished(request, response, { login: { accountId: state.now.sub } })
    }
    const grant = new provider.Grant({ accountId: session!.accountId, clientId: `${params['client_id']}` })
    grant.addOIDCScope('openid email profile groups offline_access')
    await provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } })
  }

  return {
    issuer,
    state,
    /** Changes the facts about a person. Undefined removes the person. */
    set: (sub: string, person: ProviderPerson | undefined) =>
      void (person ? people.set(sub, person) : people.delete(sub)),
  }
}
