import { isRecorded } from '../../accounts/usage/question.ts'
import type { Reporting } from '../../accounts/usage/reporting.ts'
import { StoreError } from '../files/store-error.ts'
import { adoptReporting, findOtherZone, pruneSome, readUsageState } from '../sql/usage-keep.ts'
import type { Database } from './database.ts'
import { dialect, run } from './run.ts'

/** Figures for reports as time goes on, and the zone whose days they are kept by. */
export function createUsageKeeping(database: Database) {
  return {
    adoptReporting: (reporting: Reporting) => run(database, adoptReporting(dialect, reporting)),
    pruneSome: () => run(database, pruneSome(dialect)),
  }
}

/**
 * Records the zone that a server says, if none is recorded.
 * @param shown the store, as it may be shown. @throws StoreError if another zone is recorded (ruling X12).
 */
export async function settleZone(database: Database, reporting: Reporting, shown: string): Promise<void> {
  if (!isRecorded(await run(database, readUsageState(dialect))))
    await createUsageKeeping(database).adoptReporting(reporting)
  await refuseOtherZone(database, reporting.timeZone, shown)
}

/** @param shown the store, as it may be shown. @throws StoreError if another zone is recorded (ruling X12). */
export async function refuseOtherZone(database: Database, said: string, shown: string): Promise<void> {
  const refusal = await run(database, findOtherZone(dialect, said, shown))
  if (refusal !== undefined) throw new StoreError(refusal)
}
