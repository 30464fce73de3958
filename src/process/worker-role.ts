import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Address, Config } from '../config/config.ts'

/** The place of this process among `--workers`. */
export type WorkerRole = {
  /** Counts from 1. A worker that replaces another one has the same number. */
  number: number
  /** The addresses that all workers share, with their ports. If the file names others by now, they need a restart. */
  listen: Address
  adminListen: Address
  /** Whether the log of the supervisor is formatted for people. */
  isPretty: boolean
}

/** The message of a worker to its supervisor when it takes requests. */
export type WorkerListening = {
  /** Undefined while the store cannot be reached. */
  accounts: number | undefined
  isDemoBarred: boolean
}

/** The environment variable that contains the role of a worker, as JSON. */
export const roleVariable = 'TRIWIRE_WORKER'

/** @returns undefined in a process that serves alone, or supervises workers */
export function readWorkerRole(): WorkerRole | undefined {
  const text = process.env[roleVariable]
  return process.send && text !== undefined ? (JSON.parse(text) as WorkerRole) : undefined
}

/** Returns the configuration of a worker. Each worker has its own folder, for its lock and its spool. */
export function ownConfig(config: Config, role: WorkerRole | undefined): Config {
  return role ? { ...config, stateDir: join(config.stateDir, `worker-${role.number}`) } : config
}

/** Returns the name of this server among those of its store. */
export function nameReplica(role: WorkerRole | undefined): string {
  return role ? `${hostname()} worker ${role.number}` : hostname()
}
