import { createHash } from 'node:crypto'
import { dirname } from 'node:path'
import type { ServerStore } from '../accounts/server-store.ts'
import type { Config } from '../config/config.ts'
import { readSealKey } from '../host/seal-key.ts'
import { version } from '../host/version.ts'
import { makeFolder } from '../store/files/place.ts'
import { type OpenStoreOptions, prepareServerStore } from '../store/open.ts'
import { createDemo, type Demo } from './demo.ts'
import { nameReplica, type WorkerRole } from './worker-role.ts'

type StoreParts = Pick<OpenStoreOptions, 'clockMs' | 'onFatal' | 'log'>
type OpenedStore = { store: ServerStore; demo: Demo | undefined }

/**
 * Opens the store of a configuration for one server. With the built-in catalog it also makes the demo account.
 * @throws StoreError, and the errors of making its folder
 */
export async function openStoreOf(config: Config, parts: StoreParts): Promise<OpenedStore> {
  const open = await prepareStoreOf(config, parts)
  return open()
}

/**
 * Begins to open a store, and returns a function that completes it. A store with its own thread starts the thread in
 * the meantime, while the caller does other work.
 */
export async function prepareStoreOf(
  config: Config,
  parts: StoreParts,
  role?: WorkerRole,
): Promise<() => Promise<OpenedStore>> {
  const { store: place, stateDir, isBuiltIn, reporting } = config
  const { settleDeadlineMs } = config.timeouts
  const isFile = place.engine === 'sqlite'
  makeFolder(stateDir, isFile ? '--store' : 'state_dir')
  // If the store is a file, the demo account is made before the server opens it, and so is known from the start.
  const demo = isBuiltIn && isFile ? await createDemo(place) : undefined
  const openStore = await prepareServerStore(place)
  return async () => {
    const store = await openStore({
      stateDir,
      // The folder with the spools of all workers. A worker settles the debits that an ended worker has left in it.
      spoolsDir: role && dirname(stateDir),
      settleDeadlineMs,
      reporting,
      introduce: () => introduce(config, role),
      ...parts,
    })
    // If the database cannot be reached, the server starts without the demo account, and the next start makes it.
    if (!isBuiltIn || isFile || store.ledger.whyBlocked()) return { store, demo }
    return { store, demo: await createDemo(place).catch(() => undefined) }
  }
}

function introduce({ digest, sealKey, store }: Config, role: WorkerRole | undefined) {
  const key = readSealKey(sealKey, store)
  return {
    name: nameReplica(role),
    version,
    configDigest: digest,
    sealFingerprint: createHash('sha256').update('triwire seal key\n').update(key).digest('base64url').slice(0, 16),
  }
}
