import type { LookupAddress } from 'node:dns'
import { lookup } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'
import { environmentProxy, parseProxy } from '../../config/egress.ts'

/*
 * Claude Code signs in by itself only at gateways in private networks. It refuses hosts and proxies that have a
 * public address (observed with 2.1.332 on 27 November 2026).
 */

/** The addresses that Claude Code considers private. An IPv4 address inside an IPv6 address counts as IPv4. */
const privateRanges: readonly [address: string, prefix: number, family: 'ipv4' | 'ipv6'][] = [
  ['10.0.0.0', 8, 'ipv4'],
  ['172.16.0.0', 12, 'ipv4'],
  ['192.168.0.0', 16, 'ipv4'],
  ['127.0.0.0', 8, 'ipv4'],
  ['169.254.0.0', 16, 'ipv4'],
  ['100.64.0.0', 10, 'ipv4'],
  ['fc00::', 7, 'ipv6'],
  ['fe80::', 10, 'ipv6'],
  ['::1', 128, 'ipv6'],
]

const privateList = new BlockList()
for (const range of privateRanges) privateList.addSubnet(...range)

export function isPrivateAddress(address: string): boolean {
  const [plain = ''] = address.split('%')
  return privateList.check(plain, isIP(plain) === 6 ? 'ipv6' : 'ipv4')
}

/** Whether a gateway's network is private. `reason` ends a sentence after "since" and names the deciding address. */
type NetworkOfGateway = { isPrivate: boolean; reason: string }

/**
 * Looks up the addresses of a gateway, and of the environment's proxy if it is used.
 * @param find looks up a host; a test passes its own
 * @throws the system's error if the host does not exist
 */
export async function findNetwork(url: string, env = process.env, find = findAddresses): Promise<NetworkOfGateway> {
  const proxy = environmentProxy(url, env)
  const proxyUrl = proxy && URL.parse(parseProxy(proxy.value))
  if (proxy && proxyUrl) {
    const through = await judge(proxyUrl.hostname, find)
    if (!through.isPrivate) return { ...through, reason: `its proxy (${proxy.source}) is public: ${through.reason}` }
  }
  return judge(new URL(url).hostname, find)
}

async function judge(hostname: string, find: typeof findAddresses): Promise<NetworkOfGateway> {
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  const addresses = isIP(host) ? [host] : await find(host)
  const open = addresses.find((address) => !isPrivateAddress(address))
  const shown = (address: string) => (address === host ? `${host} is` : `${host} resolves to ${address},`)
  if (open !== undefined) return { isPrivate: false, reason: `${shown(open)} a public address` }
  return {
    isPrivate: true,
    reason: `${shown(addresses.join(' and '))} ${addresses.length > 1 ? 'private addresses' : 'a private address'}`,
  }
}

async function findAddresses(host: string): Promise<string[]> {
  const found: LookupAddress[] = await lookup(host, { all: true })
  return found.map(({ address }) => address)
}
