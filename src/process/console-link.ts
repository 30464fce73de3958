import { hostname, userInfo } from 'node:os'
import { originOf } from '../config/client-url.ts'
import type { Address, Config } from '../config/config.ts'
import { isLoopback } from '../config/values.ts'
import { openBooks } from '../store/open-books.ts'

type AdminPlaces = { adminAddress: Address; ownAddress?: Address | undefined }

/**
 * Finds the address at which operators open the console. This is the configured address, or else an address that works
 * on this machine.
 * @returns undefined if tokens would be sent unencrypted, or if the address is not known
 */
export function findConsole(config: Config, { adminAddress, ownAddress }: AdminPlaces): string | undefined {
  const { adminUrl, adminTls } = config
  if (adminUrl !== undefined) return `${adminUrl.replace(/\/$/, '')}/console/`
  if (adminTls) return `${originOf(adminAddress, 'https')}/console/`
  const own = isLoopback(adminAddress) ? adminAddress : ownAddress
  return own && `${originOf(own)}/console/`
}

/**
 * Makes a link that signs in the person who starts the server, as an admin. The link works once, within ten minutes. It
 * is made only if the output is a terminal or the person asked for it, because programs could collect the output.
 * @param url the result of `findConsole`
 * @returns the link, or the plain address if no link can or may be made
 */
export async function makeConsoleLink(
  config: Config,
  url: string | undefined,
  isAsked: boolean,
): Promise<string | undefined> {
  if (url === undefined || !(isAsked || process.stdout.isTTY) || !isPrivate(url)) return url
  try {
    const { books, close } = await openBooks(config.store, { create: false })
    try {
      const { token } = await books.as({ actor: `link:${nameUser()}@${hostname()}` }).makeLinkToken()
      return `${url}#t=${token}`
    } finally {
      await close()
    }
  } catch {
    // The store does not answer, which another message reports. The console also opens without a token.
    return url
  }
}

/** Whether requests to the address use TLS or stay on this machine. */
function isPrivate(url: string): boolean {
  const { protocol, hostname: host } = new URL(url)
  return protocol === 'https:' || isLoopback({ host: host.replace(/^\[|\]$/g, ''), port: 0 })
}

function nameUser(): string {
  try {
    return userInfo().username
  } catch {
    return 'unknown'
  }
}
