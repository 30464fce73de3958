export type Place = { ok: true; giveBack(): void } | { ok: false; retryAfterSeconds: number }

/** Counts per key in fixed windows: a window opens at the key's first request and all is forgotten at its end (spec 8). */
export interface Windows {
  take(key: string): Place
}

export type WindowOptions = {
  limit: number
  windowMs: number
  /** Monotonic: a step of the wall clock must not open or close a window. */
  clockMs: () => number
  /** Keys remembered at once; beyond it the oldest window is forgotten. */
  tableMax?: number
}

type Window = { endsMs: number; taken: number }

export function createWindows({ limit, windowMs, clockMs, tableMax = 100_000 }: WindowOptions): Windows {
  // In the order of opening, which is also the order of ending.
  const windows = new Map<string, Window>()
  return { take }

  function take(key: string): Place {
    const nowMs = clockMs()
    const window = findOpen(key, nowMs) ?? open(key, nowMs)
    if (window.taken >= limit) {
      return { ok: false, retryAfterSeconds: Math.max(1, Math.ceil((window.endsMs - nowMs) / 1000)) }
    }
    window.taken++
    let isTaken = true
    return {
      ok: true,
      giveBack() {
        if (isTaken) window.taken--
        isTaken = false
      },
    }
  }

  function findOpen(key: string, nowMs: number): Window | undefined {
    const window = windows.get(key)
    return window && nowMs < window.endsMs ? window : undefined
  }

  function open(key: string, nowMs: number): Window {
    windows.delete(key)
    for (const [oldest, window] of windows) {
      if (nowMs < window.endsMs && windows.size < tableMax) break
      windows.delete(oldest)
    }
    const window = { endsMs: nowMs + windowMs, taken: 0 }
    windows.set(key, window)
    return window
  }
}

/** Counts failed authentications per address (ruling R4). Only who fails is ever throttled. */
export interface Throttle {
  /** Notes a failure. The one after the limit, and every later one in the window, is throttled. */
  fail(ip: string): { throttled: boolean; retryAfterSeconds: number }
}

export function createThrottle(options: WindowOptions): Throttle {
  const windows = createWindows(options)
  return {
    fail(ip) {
      const place = windows.take(ipKey(ip))
      return place.ok ? { throttled: false, retryAfterSeconds: 0 } : { throttled: true, ...place }
    },
  }
}

/**
 * What counts as one address (ruling R4): an IPv4 address, also in its IPv6 clothes, or the /64 of an IPv6 address, since
 * whoever has one of its addresses has them all.
 */
export function ipKey(ip: string): string {
  if (!ip.includes(':')) return ip
  const groups = readGroups(ip)
  const isMappedIpv4 = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff
  if (isMappedIpv4)
    return groups
      .slice(6)
      .flatMap((group) => [group >> 8, group & 255])
      .join('.')
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(':')}::/64`
}

/** The eight 16-bit groups of an IPv6 address in any of its spellings, a zone left out. */
function readGroups(ip: string): number[] {
  const [head = '', tail] = ip
    .replace(/%.*$/, '')
    .replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, toHexGroups)
    .split('::')
  const front = readHex(head)
  const back = readHex(tail ?? '')
  const gap = Math.max(0, 8 - front.length - back.length)
  return [...front, ...new Array<number>(gap).fill(0), ...back]
}

function toHexGroups(_: string, ...octets: string[]): string {
  const [a, b, c, d] = octets.map(Number) as [number, number, number, number]
  return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
}

function readHex(text: string): number[] {
  return text ? text.split(':').map((group) => Number.parseInt(group, 16)) : []
}
