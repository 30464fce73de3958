import { formatCredits } from '../accounts/credit.ts'
import type { WindowFigures } from '../accounts/limits.ts'
import type { LiveBounds } from '../accounts/live-bounds.ts'
import type { Gateway } from './gateway.ts'

/** The figures of an account that its answer shows in headers (ruling R13). */
export type ToldStanding = {
  window: WindowFigures | undefined
  /** Credits as a decimal text: the settled balance, without deducting holds. */
  balance: string
}

/** @returns undefined if the store cannot give the figures without a wait */
export function standingOf(
  { admission }: Gateway,
  accountId: string,
  bounds: LiveBounds | undefined,
): ToldStanding | undefined {
  const standing = admission.look(accountId, bounds)
  return standing && { window: standing.window, balance: formatCredits(standing.balanceNanos) }
}
