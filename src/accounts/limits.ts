/** The length of a rate window, in ms (spec 8). */
export const windowMs = 60_000

export type WindowPlace = { ok: true; giveBack(): void } | { ok: false; retryAfterSeconds: number }

/** Returns the window in which fewer requests are left (ruling R13). */
export function narrower(one: WindowFigures | undefined, other: WindowFigures | undefined): WindowFigures | undefined {
  if (!one || !other) return one ?? other
  return other.left < one.left ? other : one
}

/** The present figures of a window. A window that is not open has all its places left. */
export type WindowFigures = {
  limit: number
  left: number
  /** Whole seconds until the window ends; 0 if no window is open. */
  resetSeconds: number
}

type WindowOptions = {
  /** The limit, or a function that returns it. A reload may change the limit; the counts of open windows stay. */
  limit: number | (() => number)
  windowMs: number
  /** A monotonic clock in ms, because a step of the wall clock must not open or close a window. */
  clockMs: () => number
  /** The most windows to remember at once. If there are more, the oldest is forgotten. */
  tableMax?: number
  /** Returns the unit that has a window, such as the network of an address (`ipKey`). Default: the key itself. */
  unitOf?: (key: string) => string
}

type Window = { endsMs: number; taken: number }

export type Windows = ReturnType<typeof createWindows>

/**
 * Counts the requests of each key in fixed windows (spec 8). A key is any text that stands for a client. Its first
 * request opens a window. When the window ends, its count is forgotten.
 */
export function createWindows({ limit, windowMs, clockMs, tableMax = 100_000, unitOf = (key) => key }: WindowOptions) {
  const usual = typeof limit === 'number' ? () => limit : limit
  // Windows in the order in which they opened, which is also the order in which they end.
  const windows = new Map<string, Window>()
  return { take, look, isFull }

  /** Takes a place in the key's window. @param most the limit for this key; by default the common limit */
  function take(key: string, most = usual()): WindowPlace {
    const nowMs = clockMs()
    const window = findOpen(key, nowMs) ?? open(key, nowMs)
    if (window.taken >= most) {
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

  function look(key: string, most = usual()): WindowFigures {
    const nowMs = clockMs()
    const window = findOpen(key, nowMs)
    if (!window) return { limit: most, left: most, resetSeconds: 0 }
    const resetSeconds = Math.ceil((window.endsMs - nowMs) / 1000)
    return { limit: most, left: Math.max(0, most - window.taken), resetSeconds }
  }

  /** Whether `take` would refuse this key now. No place in the key's window is taken. */
  function isFull(key: string, most = usual()): boolean {
    return (findOpen(key, clockMs())?.taken ?? 0) >= most
  }

  function findOpen(key: string, nowMs: number): Window | undefined {
    const window = windows.get(unitOf(key))
    return window && nowMs < window.endsMs ? window : undefined
  }

  function open(key: string, nowMs: number): Window {
    const unit = unitOf(key)
    windows.delete(unit)
    for (const [oldest, window] of windows) {
      if (nowMs < window.endsMs && windows.size < tableMax) break
      windows.delete(oldest)
    }
    const window = { endsMs: nowMs + windowMs, taken: 0 }
    windows.set(unit, window)
    return window
  }
}

/** Counts failed authentications per address (ruling R4). Requests with a valid key are never throttled. */
export interface Throttle {
  /** Whether the next failure of this address would be throttled. Does not count a failure. */
  isThrottled(ip: string): boolean
  /** Counts a failure. Failures beyond the limit of the window are throttled. */
  fail(ip: string): Promise<FailedAuth>
}

/** The result of a failed authentication: whether the client is throttled, and how long it should then wait. */
export type FailedAuth = { throttled: boolean; retryAfterSeconds: number }

/** A throttle in the memory of the only serving process. It answers synchronously. */
export type LocalThrottle = { isThrottled(ip: string): boolean; fail(ip: string): FailedAuth }

export function createThrottle(options: WindowOptions): LocalThrottle {
  const windows = createWindows({ ...options, unitOf: ipKey })
  return {
    isThrottled: (ip) => windows.isFull(ip),
    fail(ip) {
      const place = windows.take(ip)
      return place.ok ? { throttled: false, retryAfterSeconds: 0 } : { throttled: true, ...place }
    },
  }
}

/**
 * Returns the unit in which addresses are counted (ruling R4). An IPv4 address is its own unit, even if it is written
 * as an IPv6 address. The unit of an IPv6 address is its /64 network, because one client controls the whole network.
 */
export function ipKey(ip: string): string {
  if (!ip.includes(':')) return ip
  const groups = readGroups(ip)
  const isMappedIpv4 = groups.slice(0, 6).join(':') === '0:0:0:0:0:ffff'
  if (!isMappedIpv4) return `${groups.slice(0, 4).join(':')}::/64`
  const octets = groups.slice(6).map((group) => Number.parseInt(group, 16))
  return octets.flatMap((pair) => [pair >> 8, pair & 255]).join('.')
}

/**
 * Returns the eight groups of an IPv6 address in hex. `URL` accepts every spelling, but no zone index such as `%eth0`,
 * which is therefore removed first.
 */
function readGroups(ip: string): string[] {
  const { hostname } = new URL(`http://[${ip.replace(/%.*$/, '')}]`)
  const [front, back = ''] = hostname.slice(1, -1).split('::')
  const [head, tail] = [readHalf(front!), readHalf(back)]
  return [...head, ...new Array<string>(8 - head.length - tail.length).fill('0'), ...tail]
}

function readHalf(text: string): string[] {
  return text === '' ? [] : text.split(':')
}
