import { admit, tell } from './admit.ts'
import type { SqlFunction } from './functions.ts'
import { beat, leave, register, sweep } from './replicas.ts'
import { cool, countFailures, enable, lift } from './shared-limits.ts'

/** All that replicas share in the database beside the ledger: admission, presence, throttle, cooldowns. */
export const sharingFunctions: readonly SqlFunction[] = [
  admit,
  tell,
  register,
  beat,
  leave,
  sweep,
  countFailures,
  cool,
  lift,
  enable,
]
