import cluster from 'node:cluster'
import { join } from 'node:path'
import { type Address, type Config, type ConfigSource, Secret } from '../config/config.ts'
import { type ConfigOptions, loadSource } from '../config/load.ts'
import { asStartedWith } from '../config/restart-keys.ts'

/** A worker of several takes requests. */
export type Listening = {
  kind: 'listening'
  address: Address
  adminAddress: Address
  /** Undefined where the store does not say. */
  accounts?: number | undefined
  isDemoBarred: boolean
}

/** Messages from a worker to the process that started it. */
export type FromWorker = Listening | { kind: 'config_wanted' }

/** The configurations that a worker begins with, whatever the file has by now: that of the server's start, and that in force. */
export type ToWorker = { kind: 'config'; first: SourceText | undefined; inForce: SourceText | undefined }

/** A `ConfigSource` as it travels. */
export type SourceText = { text: string; name: string; file?: string }

export function writeSource({ source }: Config): SourceText | undefined {
  return source && { ...source, text: source.text.reveal() }
}

function readSource(told: SourceText | undefined): ConfigSource | undefined {
  return told && { ...told, text: new Secret(told.text) }
}

/** The configuration that is in force at the other workers, as the process says that started them. @throws ConfigError */
export async function askConfig(options: ConfigOptions): Promise<Config> {
  const { promise, resolve } = Promise.withResolvers<ToWorker>()
  process.on('message', take)
  tellParent({ kind: 'config_wanted' })
  const { first, inForce } = await promise
  process.off('message', take)
  const next = loadSource(readSource(inForce), options)
  if (first?.text === inForce?.text) return next
  // Files and keys that it named may be gone. Neither is needed, except a certificate of which there is no newer one.
  const base = loadSource(readSource(first), { ...options, isWithoutFiles: true, isWithoutKeys: true })
  return asStartedWith(base.tls && !next.tls ? loadSource(readSource(first), options) : base, next)

  function take(message: ToWorker): void {
    if (message?.kind === 'config') resolve(message)
  }
}

/** The place of this process among `--workers`. */
export type WorkerRole = {
  /** From 1 on; the one that takes a dead one's place has its number. */
  number: number
  /** The digest of the token that the parent process shows when it asks. Only the parent knows the token. */
  parentDigest: string
  /** A person watches the log of the one that started it. */
  isPretty: boolean
}

/** The variable in which a worker finds its role. */
export const roleVariable = 'TRIWIRE_WORKER'

/** @returns undefined in a process that serves alone, or starts others. */
export function readWorkerRole(): WorkerRole | undefined {
  const text = process.env[roleVariable]
  return cluster.isWorker && text !== undefined ? (JSON.parse(text) as WorkerRole) : undefined
}

/**
 * The configuration with the settings of a worker's own. It has its own folder, since each has a lock and a spool. It has its own
 * admin listener, which only the process that started it asks.
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
