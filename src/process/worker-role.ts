import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Address, Config } from '../config/config.ts'

/** The place of this process among `--workers`. */
export type WorkerRole = {
  /** From 1 on. A worker that takes the place of a dead one has its number. */
  number: number
  /** The addresses that all workers share, with their ports. The file may name others by now, which take a restart. */
  listen: Address
  adminListen: Address
  /** A person reads the log of the supervisor. */
  isPretty: boolean
}

/** The message of a worker to its supervisor when it takes requests. */
export type WorkerListening = {
  /** Undefined while the store cannot be reached. */
  accounts: number | undefined
  isDemoBarred: boolean
}

/** The environment variable that has the role of a worker, as JSON. */
export const roleVariable = 'TRIWIRE_WORKER'

/** @returns undefined in a process that serves alone, or supervises workers */
export function readWorkerRole(): WorkerRole | undefined {
  const text = process.env[roleVariable]
  return process.send && text !== undefined ? (JSON.parse(text) as WorkerRole) : undefined
}

/** The configuration of a worker: each has a folder of its own, for its lock and its spool. */
export function ownConfig(config: Config, role: WorkerRole | undefined): Config {
  return role ? { ...config, stateDir: join(config.stateDir, `worker-${role.number}`) } : config
}

/** The name of this server among those of its store. */
export function nameReplica(role: WorkerRole | undefined): string {
  return role ? `${hostname()} worker ${role.number}` : hostname()
}
