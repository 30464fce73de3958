import { X509Certificate } from 'node:crypto'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { isIP } from 'node:net'
import type { Books } from '../accounts/books.ts'
import { createCalendar } from '../accounts/calendar.ts'
import { createThrottle, createWindows } from '../accounts/limits.ts'
import type { ApiParts, createApi } from '../admin/api.ts'
import { createConsole } from '../admin/console.ts'
import { type AdminOperations, renewAdmin } from '../admin/listener.ts'
import type { Config } from '../config/config.ts'
import { version } from '../host/version.ts'
import { createPeerReader } from '../http/peer.ts'
import { type OpenBooks, openServingBooks } from '../store/open-books.ts'

type Parts = {
  config: Config
  operations: AdminOperations
  /** Unix milliseconds. */
  nowMs: () => number
  /** Monotonic. */
  clockMs: () => number
  isClockRight?: ApiParts['isClockRight']
  /** Of the process that has started this one. */
  parentDigest?: string | undefined
  /** Answers an operator's request for an account. */
  play: ApiParts['play']
  bodyBytesMax: () => number
  bodies: ApiParts['bodies']
}

/** Wrong tokens of an address, questions of an operator, and of an owner, in a minute. */
const [failuresMax, questionsMax, ownersMax] = [5, 600, 60]

/** What stands before all paths of the admin listener where people reach it. */
export function prefixOf({ adminUrl }: Config): string {
  return adminUrl === undefined ? '' : new URL(adminUrl).pathname.replace(/\/$/, '')
}

/** Whether the listener's certificate is for a host. */
function namesOf({ adminTls }: Config): ((host: string) => boolean) | undefined {
  if (!adminTls) return undefined
  const certificate = new X509Certificate(adminTls.cert)
  return (host) => (isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host)) !== undefined
}

/** The admin API around what is known of the running gateway. The books are opened when somebody first asks for them. */
export function createAdminApi(parts: Parts) {
  const { config, operations, nowMs, clockMs, isClockRight, parentDigest, play, bodyBytesMax, bodies } = parts
  let opened: Promise<OpenBooks> | undefined
  const site = {
    publicUrl: config.adminUrl === undefined ? undefined : new URL(config.adminUrl),
    names: namesOf(config),
  }
  let readPeer = createPeerReader(config.trustedProxies)
  const minute = { windowMs: 60_000, clockMs, tableMax: 10_000 }
  const open = async () => (await import('../admin/api.ts')).createApi(apiParts)
  const apiParts: ApiParts = {
    books,
    running: operations,
    reportBug: operations.reportBug,
    throttle: createThrottle({ limit: failuresMax, ...minute }),
    rates: createWindows({ limit: questionsMax, ...minute }),
    ownerRates: createWindows({ limit: ownersMax, ...minute }),
    ...{ nowMs, isClockRight },
    peerOf: (peer, forwarded) => readPeer(peer, forwarded),
    version,
    calendar: createCalendar(config.reporting),
    site,
    play,
    bodyBytesMax,
    bodies,
    parentDigest,
  }
  let opening: Promise<ReturnType<typeof createApi>> | undefined
  const pages = createConsole({ site, reportBug: operations.reportBug })
  return { api, pages, books, adopt, close }

  /** The table of operations is loaded when somebody first asks: a start, and a server that nobody asks, do without it. */
  function api(request: IncomingMessage, response: ServerResponse): void {
    opening ??= open()
    opening
      .then((handle) => handle(request, response))
      .catch((error) => {
        // Where no file can be opened just now it can later.
        opening = undefined
        operations.reportBug(error)
        response.destroy()
      })
  }

  /** A reload has made this configuration the one in force: from now on the listener shows its certificate, and answers by it. */
  function adopt(next: Config, listener: Server): void {
    // One that takes TLS away wants a restart, and the listener goes on with what it has.
    if (next.adminTls) {
      renewAdmin(listener, next.adminTls)
      site.names = namesOf(next)
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
