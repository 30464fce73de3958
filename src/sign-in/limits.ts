import { createWindows, ipKey, underLimit, type WindowPlace } from '../accounts/limits.ts'

/** How long wrong codes and sign-ins that were begun count, in ms. */
const windowMs = 600_000

type LimitParts = {
  /** Read at each use: a reload may change them. */
  limits(): { codes: number; grants: number }
  /** Monotonic. */
  clockMs(): number
}

/** Counts what people of one address do wrong or leave unfinished, an IPv6 address by its /64. Nothing else is limited. */
export type SignInLimits = ReturnType<typeof createSignInLimits>

/** A person who mistypes a code, and a program that is left alone, count. A sign-in that comes to its end does not. */
export function createSignInLimits({ limits, clockMs }: LimitParts) {
  const open = (limit: number) => createWindows({ limit, windowMs, clockMs })
  const codes = underLimit(() => limits().codes, open)
  const grants = underLimit(() => limits().grants, open)
  const unfinished = new Map<string, { endsMs: number; giveBack(): void }>()
  return { begin, begun, finish, guess, fail }

  /** Takes the place of a sign-in. */
  function begin(ip: string): WindowPlace {
    return grants().take(ipKey(ip))
  }

  /** Keeps the place of a sign-in by its code. */
  function begun(code: string, { giveBack }: Extract<WindowPlace, { ok: true }>): void {
    for (const [old, { endsMs }] of unfinished) {
      if (clockMs() < endsMs) break
      unfinished.delete(old)
    }
    unfinished.set(code, { endsMs: clockMs() + windowMs, giveBack })
  }

  /** Gives the place back: the sign-in was approved or denied. */
  function finish(code: string): void {
    unfinished.get(code)?.giveBack()
    unfinished.delete(code)
  }

  /**
   * Takes the place of a code that somebody typed, before it is looked at, so that guesses at the same time count too. A code that
   * there is gives it back.
   */
  function guess(ip: string): WindowPlace {
    return codes().take(ipKey(ip))
  }

  /** Counts a wrong code. @returns the seconds to wait, if it is one too many */
  function fail(ip: string): number | undefined {
    const place = guess(ip)
    return place.ok ? undefined : place.retryAfterSeconds
  }
}
