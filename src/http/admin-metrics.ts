import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

/** What a scraper may have of a running server. */
export type ScrapedMetrics = {
  /** The listener is on loopback: who reaches it is on this machine. */
  isLoopback: boolean
  /** What a scraper has to bring; a reload may change it. */
  token(): string | undefined
  contentType: string
  write(): string | Promise<string>
}

/**
 * Who may read the metrics (ruling X9), and nowhere else is that judged: whoever brings the token. Where none is
 * configured it is everybody on this machine, and nobody where the listener is reached from others.
 */
export function mayScrape(request: IncomingMessage, { isLoopback, token }: ScrapedMetrics): boolean {
  const wanted = token()
  if (wanted === undefined) return isLoopback
  const [, brought] = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '') ?? []
  return brought !== undefined && timingSafeEqual(digestOf(brought), digestOf(wanted))
}

/** Of equal length, whatever was brought. */
function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
