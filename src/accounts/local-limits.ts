import { type Admission, type AdmissionOptions, createAdmission } from './admission.ts'
import { createThrottle, createWindows, type Throttle, underLimit } from './limits.ts'
import type { AdmissionLimits, ThrottleLimits } from './server-store.ts'

const windowMs = 60_000

/** Balances, holds and windows in the memory of the only serving process. */
export function openLocalAdmission(
  store: Pick<AdmissionOptions, 'balances' | 'bounds' | 'whyBlocked'>,
  { requestsPerMinute, isShedding, clockMs, nowMs }: AdmissionLimits,
): Admission {
  const windows = underLimit(requestsPerMinute, (limit) => createWindows({ limit, windowMs, clockMs }))
  const keyWindows = createWindows({ limit: Number.POSITIVE_INFINITY, windowMs, clockMs })
  return createAdmission({ ...store, windows, keyWindows, isShedding, nowMs })
}

export function openLocalThrottle({ failedAuthPerMinute, clockMs }: ThrottleLimits): Throttle {
  const throttle = underLimit(failedAuthPerMinute, (limit) => createThrottle({ limit, windowMs, clockMs }))
  return { isThrottled: (ip) => throttle().isThrottled(ip), fail: async (ip) => throttle().fail(ip) }
}
