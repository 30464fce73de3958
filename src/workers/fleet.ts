import cluster, { type Worker } from 'node:cluster'
import { fileURLToPath } from 'node:url'
import type { Log } from '../log/log.ts'
import { returnHandovers } from './handovers.ts'
import { type FromWorker, type Listening, roleVariable, type ToWorker, type WorkerRole } from './role.ts'

const launcher = fileURLToPath(new URL('../../bin/triwire.mjs', import.meta.url))

/** How long a dead worker's place stays empty: twice as long each time, until one has lived for a while. */
const [pauseMs, pauseMaxMs, livedMs] = [500, 30_000, 60_000]

type WorkerSlot = {
  number: number
  worker: Worker
  sinceMs: number
  pauseMs: number
  listening: Listening | undefined
  /** A reload was asked for while this worker could not hear it yet. */
  mustReload: boolean
}

type FleetOptions = {
  role: Omit<WorkerRole, 'number'>
  /** The configuration for a worker that starts. The file may have another by now, or an invalid one. */
  config: () => ToWorker
  log: Log
  /** Hears of each that is begun. */
  onWorker: (worker: Worker) => void
  /** No worker is left, and no other will be begun. @param code of the last of them */
  onEnd: (code: number) => void
}

/** The processes of a server that has several. One that ends has another in its place, until the fleet is stopped. */
export class WorkerFleet {
  /** Resolves when all listen, for the first time; one that ended is not waited for, since the next may end as well. */
  readonly allListen: Promise<void>
  readonly #options: FleetOptions
  readonly #places = new Map<number, WorkerSlot>()
  #onAllListen = () => {}
  #hasListened = false
  #isStopping = false

  /** @throws what the system throws that has no room for one. */
  constructor(count: number, options: FleetOptions) {
    this.#options = options
    this.allListen = new Promise((resolve) => {
      this.#onAllListen = resolve
    })
    cluster.schedulingPolicy = cluster.SCHED_RR
    cluster.setupPrimary({ exec: launcher, args: process.argv.slice(2), silent: true })
    for (let number = 1; number <= count; number++) this.#fill(number, pauseMs)
  }

  /** Those that listen now. */
  list(): (Listening & { number: number })[] {
    return [...this.#places.values()].flatMap(({ number, listening }) => (listening ? [{ ...listening, number }] : []))
  }

  reload(): void {
    for (const place of this.#places.values()) {
      // Before it listens it may not know the signal, which would end it.
      if (place.listening) place.worker.process.kill('SIGHUP')
      else place.mustReload = true
    }
  }

  /** A second one hurries them, as it does a single server. Where all are dead just now nobody's end will end this one. */
  stop(signal: NodeJS.Signals): void {
    this.#isStopping = true
    for (const { worker } of this.#places.values()) worker.process.kill(signal)
    if (this.#places.size === 0) this.#options.onEnd(0)
  }

  #fill(number: number, nextPauseMs: number): void {
    const role: WorkerRole = { ...this.#options.role, number }
    const worker = cluster.fork({ [roleVariable]: JSON.stringify(role) })
    const own = { listening: undefined, mustReload: false }
    const place: WorkerSlot = { number, worker, sinceMs: performance.now(), pauseMs: nextPauseMs, ...own }
    this.#places.set(number, place)
    returnHandovers(worker)
    this.#options.onWorker(worker)
    worker.on('message', (message: FromWorker) => this.#takeMessage(place, message))
    worker.on('exit', (code, signal) => this.#takeEnd(place, code, signal ? { signal } : { code }))
    worker.on('error', (error) => {
      // The system had no room for it. It has other errors, of which it does not end.
      if (worker.process.pid === undefined) this.#takeEnd(place, 1, { error: error.message })
    })
  }

  #takeMessage(place: WorkerSlot, message: FromWorker): void {
    if (message.kind === 'config_wanted') place.worker.send(this.#options.config())
    if (message.kind !== 'listening') return
    place.listening = message
    this.#hasListened = true
    if (place.mustReload) place.worker.process.kill('SIGHUP')
    this.#tellIfAllListen()
  }

  #tellIfAllListen(): void {
    const places = [...this.#places.values()]
    if (places.length > 0 && places.every(({ listening }) => listening)) this.#onAllListen()
  }

  #takeEnd(place: WorkerSlot, code: number, why: Record<string, unknown>): void {
    const { number, sinceMs } = place
    if (this.#places.get(number) !== place) return
    this.#places.delete(number)
    if (this.#isStopping) {
      if (this.#places.size === 0) this.#options.onEnd(code)
      return
    }
    this.#tellEnd(number, why)
    // A fault that keeps one worker from its first start keeps them all, and has been logged. A later end may be a kill: try again.
    if (!this.#hasListened) {
      process.exitCode = code || 1
      this.stop('SIGTERM')
      return
    }
    this.#tellIfAllListen()
    const hasLived = performance.now() - sinceMs >= livedMs
    this.#fillLater(number, hasLived ? pauseMs : place.pauseMs)
  }

  #fillLater(number: number, waitMs: number): void {
    const nextPauseMs = Math.min(pauseMaxMs, waitMs * 2)
    setTimeout(() => {
      try {
        if (!this.#isStopping) this.#fill(number, nextPauseMs)
      } catch (error) {
        this.#tellEnd(number, { error: (error as Error).message })
        this.#fillLater(number, nextPauseMs)
      }
    }, waitMs)
  }

  #tellEnd(number: number, why: Record<string, unknown>): void {
    this.#options.log.event('error', 'worker_exited', { worker: number, ...why })
  }
}
