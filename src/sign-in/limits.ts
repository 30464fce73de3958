import { createWindows, ipKey, type WindowPlace } from '../accounts/limits.ts'

/** How long invalid codes and unfinished sign-ins count, in ms. */
const windowMs = 600_000

type LimitParts = {
  /** Returns the limits. It is called at each use, because a reload may change them. */
  limits(): { codes: number; grants: number }
  /** A monotonic clock. */
  clockMs(): number
}

/** Limits invalid codes and unfinished sign-ins by address. IPv6 addresses count by their first 64 bits (/64). */
export type SignInLimits = ReturnType<typeof createSignInLimits>

/** Creates the limits on invalid codes and on sign-ins. A sign-in that is approved or denied counts no longer. */
export function createSignInLimits({ limits, clockMs }: LimitParts) {
  const perAddress = { windowMs, clockMs, unitOf: ipKey }
  const codes = createWindows({ limit: () => limits().codes, ...perAddress })
  const grants = createWindows({ limit: () => limits().grants, ...perAddress })
  const unfinished = new Map<string, { endsMs: number; giveBack(): void }>()
  return { begin, begun, finish, guess, fail }

  /** Counts a new sign-in of this address, if the limit allows it. */
  function begin(ip: string): WindowPlace {
    return grants.take(ip)
  }

  /** Keeps the count of a sign-in under the sign-in's code, so that `finish` can take the count back. */
  function begun(code: string, { giveBack }: Extract<WindowPlace, { ok: true }>): void {
    for (const [old, { endsMs }] of unfinished) {
      if (clockMs() < endsMs) break
      unfinished.delete(old)
    }
    unfinished.set(code, { endsMs: clockMs() + windowMs, giveBack })
  }

  /** Stops counting a sign-in that was approved or denied. */
  function finish(code: string): void {
    unfinished.get(code)?.giveBack()
    unfinished.delete(code)
  }

  /**
   * Counts a typed code before the code is checked, so that concurrent guesses count too. The caller takes the count
   * back if the code exists.
   */
  function guess(ip: string): WindowPlace {
    return codes.take(ip)
  }

  /** Counts an invalid code. @returns the seconds to wait if the address has sent too many invalid codes */
  function fail(ip: string): number | undefined {
    const place = guess(ip)
    return place.ok ? undefined : place.retryAfterSeconds
  }
}
