import { formatCredits } from '../accounts/credit.ts'
import type { WindowFigures } from '../accounts/limits.ts'
import type { LiveBounds } from '../accounts/live-bounds.ts'
import type { Gateway } from './gateway.ts'

/** What an answer tells of the account that asked (ruling R13). */
export type ToldStanding = {
  window: WindowFigures | undefined
  /** Credits as people write them: what is settled, what runs not deducted. */
  balance: string
}

/** Undefined where the store cannot give the figure at once. */
export function standingOf(
  { admission }: Gateway,
  accountId: string,
  bounds: LiveBounds | undefined,
): ToldStanding | undefined {
  const standing = admission.look(accountId, bounds)
  return standing && { window: standing.window, balance: formatCredits(standing.balanceNanos) }
}
