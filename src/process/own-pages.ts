import { createConsole } from '../admin/console.ts'
import type { KnownSite } from '../admin/guard.ts'
import type { SideRoute } from '../admin/side.ts'
import type { Config } from '../config/config.ts'
import { namesOf } from './admin-api.ts'

/** The pages of the public listener, on which the owner of a key sees their own use (rulings Y19, Y22). */
export function createOwnPages(config: Config): { routes: readonly SideRoute[]; adopt(next: Config): void } {
  const site: KnownSite = {}
  adopt(config)
  const pages = createConsole({ site })
  const isOn = ({ ownPages }: Config) => ownPages
  return { routes: ['/console', '/console/'].map((path) => ({ path, answer: pages, isOn })), adopt }

  /** A reload has put this configuration in force: hosts are checked by its `api_url` and certificate. */
  function adopt({ apiUrl, tls }: Config): void {
    site.publicUrl = apiUrl === undefined ? undefined : new URL(apiUrl)
    site.names = namesOf(tls)
  }
}
