import { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import type { Books } from '../accounts/books.ts'
import { createCalendar } from '../accounts/calendar.ts'
import { createThrottle, createWindows, ipKey } from '../accounts/limits.ts'
import type { AdminHandler, AdminRequest } from '../admin/answer.ts'
import type { ApiParts } from '../admin/api.ts'
import { createConsole } from '../admin/console.ts'
import type { AdminOperations } from '../admin/listener.ts'
import type { Config, TlsPair } from '../config/config.ts'
import { version } from '../host/version.ts'
import { createPeerReader } from '../http/paths.ts'
import type { Edge } from '../http/server.ts'
import { type OpenBooks, openServingBooks } from '../store/open-books.ts'

type AdminApiParts = {
  config: Config
  operations: AdminOperations
  /** The time in Unix milliseconds. */
  nowMs: () => number
  /** A monotonic clock, in ms. */
  clockMs: () => number
  expectedMs?: ApiParts['expectedMs']
  play: ApiParts['play']
  readAccess: ApiParts['readAccess']
  bodyBytesMax: () => number
  bodies: ApiParts['bodies']
  turns: ApiParts['turns']
  /** The demo: a store with invented requests, which has an API of its own. */
  demo: { books(): Promise<Books>; view: ApiParts['running'] }
}

/** Limits per minute: wrong tokens from one address, requests of one operator, and requests of one owner of a key. */
const [failuresMax, questionsMax, ownersMax] = [5, 600, 60]

/** Returns the path below which people reach the admin listener. */
export function prefixOf({ adminUrl }: Config): string {
  return adminUrl === undefined ? '' : new URL(adminUrl).pathname.replace(/\/$/, '')
}

/** Returns a function that tells whether a listener's certificate covers a host; undefined without TLS. */
export function namesOf(tls: TlsPair | undefined): ((host: string) => boolean) | undefined {
  if (!tls) return undefined
  const certificate = new X509Certificate(tls.cert)
  return (host) => (isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host)) !== undefined
}

/** Makes the API. Its table of operations is loaded by the first request, so that a server starts sooner. */
export function openApi(parts: ApiParts): AdminHandler {
  const open = async () => (await import('../admin/api.ts')).createApi(parts)
  let opening: Promise<AdminHandler> | undefined
  return async (request: AdminRequest) => {
    opening ??= open()
    const answer = await opening.catch((error) => {
      // If opening failed, the next request tries again, because the file may be available by then.
      opening = undefined
      throw error
    })
    return answer(request)
  }
}

/** Creates the admin API and the console of a gateway. The first request that needs the store opens it. */
export function createAdminApi(parts: AdminApiParts) {
  const { config, operations, nowMs, clockMs, expectedMs, play, bodyBytesMax, bodies, turns, readAccess } = parts
  let opened: Promise<OpenBooks> | undefined
  const site = {
    publicUrl: config.adminUrl === undefined ? undefined : new URL(config.adminUrl),
    names: namesOf(config.adminTls),
    hasSignIn: config.signIn !== undefined,
  }
  let readPeer = createPeerReader(config.trustedProxies)
  const minute = { windowMs: 60_000, clockMs, tableMax: 10_000 }
  const apiParts: ApiParts = {
    books,
    running: operations,
    reportBug: operations.reportBug,
    throttle: createThrottle({ limit: failuresMax, ...minute }),
    rates: createWindows({ limit: questionsMax, ...minute }),
    ownerRates: createWindows({ limit: ownersMax, ...minute, unitOf: ipKey }),
    ...{ nowMs, expectedMs, readAccess },
    peerOf: (peer, forwarded) => readPeer(peer, forwarded),
    version,
    calendar: createCalendar(config.reporting),
    site,
    play,
    bodyBytesMax,
    bodies,
    turns,
  }
  const pages = createConsole({ site })
  const demoApi = openApi({ ...apiParts, running: parts.demo.view, demoBooks: parts.demo.books })
  return { api: openApi(apiParts), demoApi, pages, books, adopt, close, apiParts }

  /** Applies a reloaded configuration. The listener uses its certificate and settings from now on. */
  function adopt(next: Config, listener: Edge): void {
    if (next.adminTls) {
      listener.renew(next.adminTls)
      site.names = namesOf(next.adminTls)
    }
    readPeer = createPeerReader(next.trustedProxies)
  }

  async function books(): Promise<Books> {
    opened ??= openServingBooks(config.store, nowMs, config.reporting)
    try {
      return (await opened).books
    } catch (error) {
      opened = undefined
      throw error
    }
  }

  async function close(): Promise<void> {
    await (await opened?.catch(() => undefined))?.close()
  }
}
