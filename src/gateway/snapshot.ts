import type { Config } from '../config/config.ts'
import type { KeyFinder } from '../upstream/keyring.ts'
import type { Pool } from '../upstream/pool.ts'
import type { Upstreams } from '../upstream/upstreams.ts'

/** One configuration and what was built from it: targets, connections and keys. */
export type Snapshot = {
  readonly config: Config
  readonly pool: Pool
  readonly upstreams: Upstreams
  readonly keyOf: KeyFinder
}

/**
 * The configuration in force, and earlier ones that requests still use. A request keeps the snapshot that it took to its
 * end, retries included. A snapshot that is no longer in force closes with its last request (U14).
 */
export type Snapshots = {
  readonly current: Snapshot
  /** Takes the current snapshot for one request. `release` must be called once, at its end. */
  take(): { snapshot: Snapshot; release: () => void }
  /** Puts a new snapshot in force for later requests. */
  replace(next: Snapshot): void
  /** Closes all connections, also those of earlier snapshots. */
  close(): Promise<void>
}

export function createSnapshots(first: Snapshot): Snapshots {
  /** The number of requests by snapshot; the one in force is always in the map. */
  const users = new Map<Snapshot, number>([[first, 0]])
  /** Snapshots without requests that are no longer in force. A lingering upstream may still use their connections. */
  const retired = new Set<Snapshot>()
  let current = first
  let isClosed = false
  return {
    get current() {
      return current
    },
    take() {
      const snapshot = current
      users.set(snapshot, users.get(snapshot)! + 1)
      return { snapshot, release: () => leave(snapshot) }
    },
    replace(next) {
      const before = current
      current = next
      users.set(next, 0)
      if (users.get(before) === 0) retire(before)
    },
    async close() {
      isClosed = true
      await Promise.all([...users.keys(), ...retired].map(({ upstreams }) => upstreams.close()))
    },
  }

  function leave(snapshot: Snapshot): void {
    const left = users.get(snapshot)! - 1
    users.set(snapshot, left)
    if (left === 0 && snapshot !== current) retire(snapshot)
  }

  function retire(snapshot: Snapshot): void {
    if (isClosed) return
    users.delete(snapshot)
    retired.add(snapshot)
    snapshot.upstreams.retire().then(() => retired.delete(snapshot))
  }
}
