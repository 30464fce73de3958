import cluster from 'node:cluster'
import { join } from 'node:path'
import type { Address, Config } from '../config/config.ts'

/** What one of several processes tells the one that started them. */
export type FromWorker = {
  kind: 'listening'
  address: Address
  adminAddress: Address
  /** Undefined where the store does not say. */
  accounts?: number | undefined
  isDemoBarred: boolean
}

/** The place of this process among `--workers`. */
export type WorkerRole = {
  /** From 1 on; the one that takes a dead one's place has its number. */
  number: number
  /** What the process that started it shows when it asks: a digest, of whose text it alone knows. */
  parentDigest: string
  /** A person watches the log of the one that started it. */
  isPretty: boolean
}

/** Where a worker finds its role. */
export const roleVariable = 'TRIWIRE_WORKER'

/** @returns undefined in a process that serves alone, or starts others. */
export function readWorkerRole(): WorkerRole | undefined {
  const text = process.env[roleVariable]
  return cluster.isWorker && text !== undefined ? (JSON.parse(text) as WorkerRole) : undefined
}

/**
 * What is a worker's own: its folder, since each has a lock and a spool; and its admin listener, which only the process that
 * started it asks.
 */
export function ownConfig(config: Config, role: WorkerRole | undefined): Config {
  if (!role) return config
  return {
    ...config,
    stateDir: join(config.stateDir, `worker-${role.number}`),
    adminListen: { host: '127.0.0.1', port: 0 },
    adminTls: undefined,
    adminUrl: undefined,
  }
}

export function tellParent(message: FromWorker): void {
  process.send?.(message)
}
