import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Address, Config } from '../config/config.ts'

/** The role of this process as one of the workers of `--workers`. */
export type WorkerRole = {
  /** The number of the worker, from 1. A worker that replaces another one gets the same number. */
  number: number
  /** The addresses that all workers share, with ports. A new address in the configuration needs a restart. */
  listen: Address
  adminListen: Address
  /** Whether the supervisor (the process that starts the workers) formats its log for people. */
  isPretty: boolean
}

/** The message that a worker sends to its supervisor when it accepts requests. */
export type WorkerListening = {
  /** The number of accounts; undefined if the store cannot be reached. */
  accounts: number | undefined
  isDemoBarred: boolean
}

/** The environment variable that contains the role of a worker, as JSON. */
export const roleVariable = 'TRIWIRE_WORKER'

/** Reads the role of this process as a worker. @returns undefined in a process that is not a worker */
export function readWorkerRole(): WorkerRole | undefined {
  const text = process.env[roleVariable]
  return process.send && text !== undefined ? (JSON.parse(text) as WorkerRole) : undefined
}

/** Returns the configuration of a worker. Each worker has its own folder for its lock and its spooled debits. */
export function ownConfig(config: Config, role: WorkerRole | undefined): Config {
  return role ? { ...config, stateDir: join(config.stateDir, `worker-${role.number}`) } : config
}

/** Returns the name of this server among those of its store. */
export function nameReplica(role: WorkerRole | undefined): string {
  return role ? `${hostname()} worker ${role.number}` : hostname()
}
