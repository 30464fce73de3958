import { createHash } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import type { ServerStore } from '../accounts/server-store.ts'
import type { Config } from '../config/config.ts'
import { readSealKey } from '../host/seal-key.ts'
import { version } from '../host/version.ts'
import { type OpenStoreOptions, prepareServerStore } from '../store/open.ts'
import { createDemo, type Demo } from './demo.ts'
import { nameReplica, type WorkerRole } from './worker-role.ts'

type StoreParts = Pick<OpenStoreOptions, 'clockMs' | 'onFatal' | 'log'>
type OpenedStore = { store: ServerStore; demo: Demo | undefined }

/**
 * The store that a configuration names, for one server, and with the built-in catalog its demo account.
 * @throws StoreError, and what making its folder throws.
 */
export async function openStoreOf(config: Config, parts: StoreParts): Promise<OpenedStore> {
  const open = await prepareStoreOf(config, parts)
  return open()
}

/**
 * The same in two steps. A store with a thread of its own has begun to start it when this returns, so that the caller can
 * do something else meanwhile.
 */
export async function prepareStoreOf(
  config: Config,
  parts: StoreParts,
  role?: WorkerRole,
): Promise<() => Promise<OpenedStore>> {
  const { store: place, stateDir, isBuiltIn, reporting } = config
  const { settleDeadlineMs } = config.timeouts
  mkdirSync(stateDir, { recursive: true, mode: 0o700 })
  const isFile = place.engine === 'sqlite'
  // Before a file is opened, so that the account is among those that are known from the start on.
  const demo = isBuiltIn && isFile ? await createDemo(place) : undefined
  const openStore = await prepareServerStore(place)
  return async () => {
    const store = await openStore({
      stateDir,
      // The others find the spool of a worker that is gone.
      spoolsDir: role && dirname(stateDir),
      settleDeadlineMs,
      reporting,
      introduce: () => introduce(config, role),
      ...parts,
    })
    // One that cannot be reached is waited for, and the demo account left to the next start.
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
