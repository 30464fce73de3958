/** The origin for clients on this machine. A listener on all addresses is reached by the loopback address. */
export function originOf({ host, port }: { host: string; port: number }, scheme: 'http' | 'https' = 'http'): string {
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return `${scheme}://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}
