import type { Books } from '../accounts/books.ts'
import type { AdminHandler } from '../admin/answer.ts'
import type { ApiParts } from '../admin/api.ts'
import type { KnownSite } from '../admin/guard.ts'
import type { SideRoute } from '../admin/side.ts'
import type { Config, SignInSettings } from '../config/config.ts'
import { environmentProxy, parseProxy } from '../config/egress.ts'
import type { Log } from '../log/log.ts'
import { createSignInLimits } from '../sign-in/limits.ts'
import type { SignInPagesParts } from '../sign-in/pages.ts'
import type { ProviderSettings } from '../sign-in/provider-client.ts'

type SignInParts = {
  /** Returns the configuration in use. */
  config(): Config
  sealKey: Uint8Array
  books(): Promise<Books>
  api: Pick<ApiParts, 'peerOf' | 'nowMs' | 'expectedMs'>
  /** A monotonic clock, in ms. */
  clockMs: () => number
  log: Pick<Log, 'event'>
  env?: NodeJS.ProcessEnv
}

/** The limits if the configuration has no `sign_in`. Nothing uses them, because the limited paths do not exist then. */
const noLimits = { codes: 1, grants: 1 }

/** The paths of sign-in on the clients' listener, and those on the operators' listener. */
const [publicNames, adminNames] = [
  ['device', 'authorize', 'callback', 'sign-in', 'sign-out', 'signed-out'],
  ['callback', 'sign-in', 'sign-out', 'signed-out'],
].map((names) => names.map((name) => `/console/${name}`)) as [string[], string[]]

/** Creates sign-in at the configured identity provider. The first request that needs the modules loads them. */
export function createSignIn(parts: SignInParts) {
  const { config, sealKey, api, clockMs, log } = parts
  const { nowMs } = api
  // `settings` is called only if the configuration has `sign_in`.
  const settings = () => config().signIn!
  const limits = createSignInLimits({ limits: () => config().signIn?.limits ?? noLimits, clockMs })
  let opening: ReturnType<typeof open> | undefined
  return { routes, admin, askAgain, limits }

  /** Returns the routes of sign-in on the public listener. @param site the listener's names */
  function routes(site: KnownSite): SideRoute[] {
    const answer = pagesOf('public', site)
    return publicNames.map((path) => ({ path, answer, isOn: ({ signIn }) => signIn !== undefined }))
  }

  /**
   * Returns the handler of the operators' listener. It serves the paths of sign-in, and passes all other paths to
   * `rest`.
   */
  function admin(site: KnownSite, rest: AdminHandler): AdminHandler {
    const answer = pagesOf('admin', site)
    return (request) => (adminNames.includes(request.path) && config().signIn ? answer(request) : rest(request))
  }

  async function askAgain(...asked: Parameters<Awaited<ReturnType<typeof open>>['askAgain']>) {
    return (await opened()).askAgain(...asked)
  }

  function pagesOf(place: SignInPagesParts['place'], site: KnownSite): AdminHandler {
    let pages: ReturnType<Awaited<ReturnType<typeof open>>['createPages']> | undefined
    return async (request) => {
      const { createPages } = await opened()
      pages ??= createPages(place, site)
      return pages.get(request.path)?.(request)
    }
  }

  function opened(): ReturnType<typeof open> {
    opening ??= open().catch((error) => {
      // If opening failed, the next request tries again.
      opening = undefined
      throw error
    })
    return opening
  }

  async function open() {
    const [{ createProvider }, { createTickets }, { createAskAgain }, { createSignInPages }] = await Promise.all([
      import('../sign-in/provider.ts'),
      import('../sign-in/tickets.ts'),
      import('../sign-in/signed-in.ts'),
      import('../sign-in/pages.ts'),
    ])
    const provider = createProvider(() => toProvider(settings(), parts.env ?? process.env), { clockMs })
    const tickets = createTickets(sealKey, nowMs)
    const createPages = (place: SignInPagesParts['place'], site: KnownSite) =>
      createSignInPages({
        ...{ settings, provider, tickets, place, site, limits, nowMs },
        books: async (address) =>
          (await parts.books()).as({ actor: 'sign_in', address, expectedMs: api.expectedMs?.() }),
        addressOf: ({ exchange }) =>
          api.peerOf(exchange.socket.remoteAddress ?? '', exchange.header('x-forwarded-for')),
        note: (event, fields) => log.event('info', event, fields),
      })
    return { createPages, askAgain: createAskAgain(settings, provider, tickets, nowMs) }
  }
}

function toProvider(settings: SignInSettings, env: NodeJS.ProcessEnv): ProviderSettings {
  const { issuer, clientId, clientSecret, proxy, ca, rules } = settings
  return {
    ...{ issuer, clientId, clientSecret: clientSecret?.reveal() },
    groupsClaim: rules.some(({ groups }) => groups !== undefined) ? settings.groupsClaim : undefined,
    routeTo: ({ href }) => {
      const said =
        proxy === undefined ? environmentProxy(href, env)?.value : proxy === 'none' ? undefined : proxy.reveal()
      return { ca, proxy: said === undefined || said === 'none' ? undefined : new URL(parseProxy(said)) }
    },
  }
}
