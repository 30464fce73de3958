import type { Account } from '../../accounts/account.ts'
import { type Admission, type AdmissionOptions, createAdmission } from '../../accounts/admission.ts'
import { createThrottle, createWindows, type Throttle, windowMs } from '../../accounts/limits.ts'
import { type Balances, createBalances, createBoundsBook } from '../../accounts/live-accounts.ts'
import type { AdmissionLimits, ServerStore, ServingOptions, ThrottleLimits } from '../../accounts/server-store.ts'
import { usualReporting } from '../../accounts/usage/reporting.ts'
import { lockAsHolder } from '../files/holder.ts'
import { bringSpool, realPath, refuseNoFile } from '../files/place.ts'
import { StoreError } from '../files/store-error.ts'
import { StoreClient } from '../serving/client.ts'
import type { WorkerOptions } from './worker.ts'

export type LedgerOptions = ServingOptions & {
  /** The path of the SQLite file. Its `.lock` and `.spool` are beside it. */
  path: string
  /** How long one try waits for another process' lock, in ms. */
  busyMs?: number
  /** How often to look for changes of other processes, in ms. */
  pollMs?: number
  /** How often to sum new entries into figures for reports, in ms. */
  foldMs?: number
  /** For tests, see `WorkerOptions`. */
  turned?: Float64Array
}

export type OpenLedger = ServerStore & {
  /** The balances and holds (reserved credit) of the accounts. They are complete, as no other server uses the store. */
  balances: Balances
  /** Accounts by id. The objects live as long as the process; their names and states follow the store. */
  accounts: ReadonlyMap<string, Account>
}

/** The longest time in which the thread posts its debits and closes, in ms. A file may be locked forever (B14). */
const closeMs = 2_000

/**
 * Opens the server's side of the store. Requests read only memory, unless their key is not in memory yet. The ledger's
 * thread posts debits; all debits of one turn of the event loop are sent to it in one message.
 *
 * The promise resolves after a first commit, or after `settleDeadlineMs` without one. In that case the ledger is not
 * writable until a commit succeeds.
 * @throws StoreError if the file cannot be used or another server uses it
 */
export async function openLedger(options: LedgerOptions): Promise<OpenLedger> {
  // The lock is taken before the store is opened, so a newer server cannot migrate a store that an older server uses.
  const path = realPath(options.path)
  refuseNoFile(path)
  const unlock = lockAsHolder(path)
  const { busyMs = 2_000, pollMs = 200, foldMs, reporting = usualReporting, turned } = options
  const [balances, bounds] = [createBalances(), createBoundsBook()]
  const owe = (accountId: string, amountNanos: bigint, keyId?: string, personId?: string) => {
    balances.owe(accountId, amountNanos)
    if (keyId !== undefined) bounds.owe(keyId, amountNanos)
    if (personId !== undefined) bounds.owe(personId, amountNanos)
  }
  let drainsSpool = true
  const client = new StoreClient(options, {
    place: path,
    balances: { set: balances.set, owe, spend: bounds.set },
    bounds,
    thread() {
      const state = { drainsSpool, offsetMs: client.clock.news?.offsetMs, turned }
      const workerData: WorkerOptions = { path, busyMs, pollMs, foldMs, reporting, ...state }
      return { file: new URL('./worker.ts', import.meta.url), name: 'ledger', workerData, closeMs }
    },
  })
  const { line, settlement, directory } = client
  line.hear('drained', () => {
    drainsSpool = false
  })
  line.hear('lost', ({ message }) => settlement.lose(new StoreError(message)))
  const served = await client.serve(unlock, async () => {
    bringSpool(options.path, path)
    await settlement.open()
  })
  return {
    ...served,
    ledger: settlement,
    balances,
    accounts: directory.accounts,
    openAdmission: (limits) =>
      openLocalAdmission({ balances, bounds, whyBlocked: (id) => settlement.whyBlocked(id) }, limits),
    openThrottle: openLocalThrottle,
    countAccounts: () => directory.accounts.size,
    cooldowns: undefined,
    sharedTraffic: undefined,
    replicas: undefined,
    reconfigure() {},
  }
}

/** Creates admission with balances, holds and windows in the memory of the only serving process. */
function openLocalAdmission(
  store: Pick<AdmissionOptions, 'balances' | 'bounds' | 'whyBlocked'>,
  { requestsPerMinute, isShedding, clockMs, nowMs }: AdmissionLimits,
): Admission {
  const windows = createWindows({ limit: requestsPerMinute, windowMs, clockMs })
  return createAdmission({ ...store, windows, isShedding, clockMs, nowMs })
}

function openLocalThrottle({ failedAuthPerMinute, clockMs }: ThrottleLimits): Throttle {
  const throttle = createThrottle({ limit: failedAuthPerMinute, windowMs, clockMs })
  return { isThrottled: (ip) => throttle.isThrottled(ip), fail: async (ip) => throttle.fail(ip) }
}
