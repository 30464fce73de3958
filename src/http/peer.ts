import { BlockList, isIP, isIPv6 } from 'node:net'
import { ownCopy } from '../bytes/own-copy.ts'

/**
 * Makes a function that finds the client's address: the peer's, unless the peer is a configured proxy. Then it is the last
 * address in `x-forwarded-for` that is not a configured proxy too (ruling R4). So a client cannot choose its own address.
 */
export function createPeerReader(
  trustedProxies: readonly string[],
): (peer: string, forwarded: string | undefined) => string {
  const trusted = new BlockList()
  for (const range of trustedProxies) {
    const [address = '', bits] = range.split('/')
    const family = isIPv6(address) ? 'ipv6' : 'ipv4'
    if (bits === undefined) trusted.addAddress(address, family)
    else trusted.addSubnet(address, Number(bits), family)
  }
  return (peer, forwarded) => {
    const address = plain(peer)
    if (forwarded === undefined || trustedProxies.length === 0 || !isTrusted(address)) return address
    for (const hop of forwarded.split(',').reverse()) {
      const candidate = plain(hop.trim())
      // Addresses before an unreadable one cannot be trusted.
      if (isIP(candidate) === 0) return address
      // A copy, because a part of the header would keep the whole head in memory.
      if (!isTrusted(candidate)) return ownCopy(candidate)
    }
    return address
  }

  function isTrusted(address: string): boolean {
    return isIP(address) !== 0 && trusted.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
  }
}

/** Returns an IPv4 address that came over an IPv6 socket in its IPv4 form. */
export function plain(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}
