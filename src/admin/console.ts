import type { IncomingMessage, ServerResponse } from 'node:http'
import { pathOf } from '../http/paths.ts'
import type { ConsoleFiles, OpenConsole } from './console-files.ts'
import { isOurHost, type Site } from './guard.ts'

/** Where the console is, on the admin listener. */
export const consolePrefix = '/console/'

/** All that a page of ours may load, run and ask; it reports nothing to anybody. */
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

/** What is loaded of a page may be kept for ever: its name says what is in it. */
const immutable = 'public, max-age=31536000, immutable'

export type ConsoleParts = {
  /** Where people reach the listener. */
  site: Pick<Site, 'publicUrl' | 'names'>
  /** Logs a bug of ours. */
  reportBug(bug: Error): void
  /** Where the pages are; a test has its own. */
  open?: () => OpenConsole
}

/**
 * Answers for the web console: its files, and for every other path one page, which shows what its address says. Nothing of it
 * is read, or loaded, before somebody opens it. What is told there is the admin API's, and so is who may see it.
 */
export function createConsole({ site: known, reportBug, open }: ConsoleParts) {
  let opening: Promise<OpenConsole> | undefined

  return (request: IncomingMessage, response: ServerResponse): void => {
    request.resume()
    // Who has left hears nothing.
    response.on('error', () => {})
    answer(request, response).catch((bug: Error) => {
      reportBug(bug)
      response.destroy()
    })
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', headers, socket } = request
    const site: Site = { ...known, port: socket.localPort ?? 0, isSecure: 'encrypted' in socket }
    const path = pathOf(request.url)
    const isTls = site.isSecure || site.publicUrl?.protocol === 'https:'
    const common = { ...guard, ...(isTls && { 'strict-transport-security': 'max-age=31536000' }) }
    const tell = (status: number, text: string, more: Record<string, string | number> = {}) => {
      const length = { 'content-type': 'text/plain; charset=utf-8', 'content-length': Buffer.byteLength(text) }
      response.writeHead(status, { ...common, 'cache-control': 'no-store', ...length, ...more })
      response.end(method === 'HEAD' ? undefined : text)
    }
    if (!isOurHost(headers.host, site)) return tell(421, 'Ask by the address of this listener.\n')
    if (method !== 'GET' && method !== 'HEAD') return tell(405, 'It is only read.\n', { allow: 'GET, HEAD' })
    // Where it is behind a path of a proxy's nobody here knows: what is told is told from where it stands.
    if (path === '/console') return tell(307, '', { location: `console/${queryOf(request.url)}` })
    const files = await openFiles()
    if (typeof files === 'string') return tell(503, files)
    const below = path.slice(consolePrefix.length)
    if (below.startsWith('assets/')) return sendAsset(below.slice('assets/'.length), files)
    const depth = below.split('/').length - 1
    if (depth > 1) return tell(404, 'There is no such page.\n')
    return tell(200, files.page('../'.repeat(depth)), { 'content-type': 'text/html; charset=utf-8' })

    async function sendAsset(name: string, { read }: ConsoleFiles): Promise<void> {
      const asset = await read(name)
      if (!asset) return tell(404, 'There is no such file.\n')
      const etag = `"${name}"`
      const kept = { ...common, 'cache-control': immutable, etag, vary: 'accept-encoding' }
      if (headers['if-none-match'] === etag) {
        response.writeHead(304, kept)
        response.end()
        return
      }
      const takesBrotli = /(^|[\s,])br\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/.test(String(headers['accept-encoding'] ?? ''))
      const body = takesBrotli ? asset.brotli : asset.plain
      response.writeHead(200, {
        ...kept,
        'content-type': asset.type,
        'content-length': body.length,
        ...(takesBrotli && { 'content-encoding': 'br' }),
      })
      response.end(method === 'HEAD' ? undefined : body)
    }
  }

  /** @returns a text where there are none. */
  async function openFiles(): Promise<ConsoleFiles | string> {
    opening ??= open ? Promise.resolve(open()) : import('./console-files.ts').then((files) => files.openConsole())
    try {
      return (await opening)()
    } catch (error) {
      // Where no file can be opened just now it can later.
      opening = undefined
      throw error
    }
  }
}

function queryOf(url = ''): string {
  const at = url.indexOf('?')
  return at < 0 ? '' : url.slice(at)
}
