import type { ResponseHeaders } from './upstreams.ts'

/**
 * Whether a refusal was written by the proxy that was asked in absolute form, and not by the upstream behind it: nothing else
 * tells its "no such host" or "wrong credentials" from the upstream's own (N-F4). A proxy names itself in `via` of all that
 * it brings (RFC 9110 §7.6.3), its own answers are pages, and models refuse in JSON.
 */
export function isProxysAnswer(status: number, headers: ResponseHeaders): boolean {
  if (status < 400) return false
  const [via, server, type, told] = ['via', 'server', 'content-type', 'proxy-status'].map((name) =>
    `${headers[name] ?? ''}`.toLowerCase(),
  ) as [string, string, string, string]
  // By RFC 9110 and RFC 9209 it says so.
  if (status === 407 || headers['proxy-authenticate'] !== undefined || /;\s*error=/.test(told)) return true
  const [program = ''] = server.split(/[\s/]/, 1)
  if (program !== '' && via.includes(`(${program}`)) return true
  return via === '' && type.startsWith('text/html') && (status < 404 || status >= 500)
}
