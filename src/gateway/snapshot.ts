import type { Config } from '../config/config.ts'
import type { KeyFinder } from '../upstream/keyring.ts'
import type { Pool } from '../upstream/pool.ts'
import type { Upstreams } from '../upstream/upstreams.ts'

/** One configuration and what was built from it: who is asked, over which connections. */
export type Snapshot = {
  readonly config: Config
  readonly pool: Pool
  readonly upstreams: Upstreams
  readonly keyOf: KeyFinder
}

/**
 * The configuration in force, and those before it that still serve somebody. A request takes one snapshot and keeps it to
 * its end, its retry included; a snapshot that is no longer in force closes with its last request (U14).
 */
export type Snapshots = {
  readonly current: Snapshot
  /** For one request. `release` must be called once, at its end. */
  take(): { snapshot: Snapshot; release: () => void }
  /** From here on requests take this one. */
  replace(next: Snapshot): void
  /** Cuts everything, of earlier ones too. */
  close(): Promise<void>
}

export function createSnapshots(first: Snapshot): Snapshots {
  /** Requests by the snapshot they took; the one in force is always there. */
  const users = new Map<Snapshot, number>([[first, 0]])
  /** No longer in force and without requests; an upstream that lingers may still keep a connection of theirs. */
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
