import type { HttpExchange } from '../http/http-exchange.ts'
import type { AdminHandler, AdminRequest, ApiAnswer } from './answer.ts'
import type { ConsoleFiles, OpenConsole } from './console-files.ts'
import { isOurHost, type KnownSite, siteOf } from './guard.ts'

/** The path of the console on the admin listener. */
export const consolePrefix = '/console/'

/** The content security policy: what a page may load, run and connect to. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const guard = {
  'content-security-policy': policy,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

/** Files of a page may be cached for ever, because their names are digests of their contents. */
const immutable = 'public, max-age=31536000, immutable'

/** Whether a browser requests a page. Programs that request data do not accept HTML. */
export function isBrowsing(exchange: HttpExchange): boolean {
  return exchange.method === 'GET' && /\btext\/html\b/.test(exchange.header('accept') ?? '')
}

/**
 * The answer at `/`, for people who type only the address (CON-16). Its location is relative, because a proxy may add a
 * path before ours.
 */
export const toConsole: ApiAnswer = {
  status: 307,
  headers: { ...guard, 'cache-control': 'no-store', location: 'console/' },
}

type ConsoleParts = {
  /** The names under which people reach the listener. */
  site: KnownSite
  /** Opens the files. A test passes its own function. */
  open?: () => OpenConsole
}

/**
 * Serves the web console: its files, and one page for every other path. The page shows what its URL names. No file is
 * read before the first request. The page gets its data from the admin API, which checks permissions.
 */
export function createConsole({ site: known, open }: ConsoleParts): AdminHandler {
  let opening: Promise<OpenConsole> | undefined
  return answer

  async function answer({ exchange, path, query }: AdminRequest): Promise<ApiAnswer> {
    const { method } = exchange
    const site = siteOf(exchange, known)
    const isTls = site.isSecure || site.publicUrl?.protocol === 'https:'
    const common = { ...guard, ...(isTls && { 'strict-transport-security': 'max-age=31536000' }) }
    const tell = (status: number, body: string, more: Record<string, string> = {}): ApiAnswer => {
      const type = { 'content-type': 'text/plain; charset=utf-8' }
      return { status, headers: { ...common, 'cache-control': 'no-store', ...type, ...more }, body }
    }
    if (!isOurHost(exchange.header('host'), site)) return tell(421, 'Ask by the address of this listener.\n')
    if (method !== 'GET' && method !== 'HEAD') return tell(405, 'It is only read.\n', { allow: 'GET, HEAD' })
    // The location is relative, because a proxy may add a path that is not known here.
    if (path === '/console') return tell(307, '', { location: `console/${query}` })
    const files = await openFiles()
    if (typeof files === 'string') return tell(503, files)
    const below = path.slice(consolePrefix.length)
    if (below.startsWith('assets/')) return tellAsset(below.slice('assets/'.length), files)
    const depth = below.split('/').length - 1
    if (depth > 1) return tell(404, 'There is no such page.\n')
    return tell(200, files.page('../'.repeat(depth), site.isForOwners ? 'console/api' : 'api/v1', site.hasSignIn), {
      'content-type': 'text/html; charset=utf-8',
    })

    async function tellAsset(name: string, { read }: ConsoleFiles): Promise<ApiAnswer> {
      const asset = await read(name)
      if (!asset) return tell(404, 'There is no such file.\n')
      const etag = `"${name}"`
      const kept = { ...common, 'cache-control': immutable, etag, vary: 'accept-encoding' }
      if (exchange.header('if-none-match') === etag) return { status: 304, headers: kept }
      const takesBrotli = /(^|[\s,])br\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/.test(exchange.header('accept-encoding') ?? '')
      const headers = { ...kept, 'content-type': asset.type, ...(takesBrotli && { 'content-encoding': 'br' }) }
      return { status: 200, headers, body: takesBrotli ? asset.brotli : asset.plain }
    }
  }

  /** Opens the files at the first call. @returns a message for the user if there are none */
  async function openFiles(): Promise<ConsoleFiles | string> {
    opening ??= open ? Promise.resolve(open()) : import('./console-files.ts').then((files) => files.openConsole())
    try {
      return (await opening)()
    } catch (error) {
      // If opening failed, the next request tries again.
      opening = undefined
      throw error
    }
  }
}
