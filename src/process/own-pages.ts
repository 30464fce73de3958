import { createThrottle, createWindows, ipKey } from '../accounts/limits.ts'
import type { ApiParts } from '../admin/api.ts'
import { createConsole, isBrowsing, toConsole } from '../admin/console.ts'
import type { KnownSite } from '../admin/guard.ts'
import { giveWay, type SideRoute } from '../admin/side.ts'
import type { Config } from '../config/config.ts'
import type { HttpExchange } from '../http/http-exchange.ts'
import { namesOf, openApi } from './admin-api.ts'

/**
 * Three limits: wrong keys of one address in a minute, requests of one owner in a minute, and concurrent requests of
 * all owners.
 */
const [failuresMax, questionsMax, atOnceMax] = [10, 240, 32]

type OwnPagesParts = {
  /** A monotonic clock, in ms. */
  clockMs: () => number
  /** Whether the process is overloaded. Requests to models then come first, and these pages are refused. */
  isShedding: () => boolean
}

/**
 * Creates the pages on which owners of keys see their own use, and the API of these pages (rulings Y19, Y22). Both are
 * on the clients' listener. They have limits of their own, so that they do not delay requests to models.
 */
export function createOwnPages(
  config: Config,
  shared: ApiParts,
  { clockMs, isShedding }: OwnPagesParts,
): { routes: readonly SideRoute[]; site: KnownSite; adopt(next: Config): void } {
  const site: KnownSite = { isForOwners: true, hasSignIn: config.signIn !== undefined }
  adopt(config)
  const minute = { windowMs: 60_000, clockMs, tableMax: 10_000 }
  const api = openApi({
    ...shared,
    ...{ site, isForOwners: true },
    throttle: createThrottle({ limit: failuresMax, ...minute }),
    ownerRates: createWindows({ limit: questionsMax, ...minute, unitOf: ipKey }),
  })
  const pages = createConsole({ site })
  const isOn = ({ ownPages, signIn }: Config) => ownPages || signIn !== undefined
  const routes = [
    {
      ...{ path: '/', answer: async () => toConsole },
      isOn: (config: Config, exchange: HttpExchange) => isOn(config) && isBrowsing(exchange),
    },
    { path: '/console', answer: pages, isOn },
    { path: '/console/', answer: pages, isOn },
    { path: '/console/api/', answer: giveWay(api, atOnceMax, isShedding), isOn },
  ]
  return { routes, site, adopt }

  /** Applies a reloaded configuration. From now on its `api_url` and certificate decide which hosts are accepted. */
  function adopt({ apiUrl, tls }: Config): void {
    site.publicUrl = apiUrl === undefined ? undefined : new URL(apiUrl)
    site.names = namesOf(tls)
  }
}
