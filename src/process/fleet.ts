import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Log } from '../log/log.ts'
import { roleVariable, type WorkerListening, type WorkerRole } from './worker-role.ts'

const launcher = fileURLToPath(new URL('../../bin/triwire.mjs', import.meta.url))

/**
 * The first and the longest pause before a dead worker is replaced, in ms. The pause doubles with each replacement,
 * until a worker has lived for `livedMs`.
 */
const [pauseMs, pauseMaxMs, livedMs] = [500, 30_000, 60_000]

type WorkerSlot = {
  number: number
  worker: ChildProcess
  sinceMs: number
  pauseMs: number
  listening: WorkerListening | undefined
  /** Whether a reload was requested before this worker could receive the signal. */
  mustReload: boolean
}

type FleetOptions = {
  role: Omit<WorkerRole, 'number'>
  log: Log
  /** Whether a dead worker may be replaced now. @param isAlone whether no worker lives */
  mayFill(isAlone: boolean): boolean
  /** Called with each worker that is started. */
  onWorker: (worker: ChildProcess) => void
  /** Called when no worker is left and none will be started. @param code the exit code of the worker that ended last */
  onEnd: (code: number) => void
}

/** The workers of `--workers`. A worker that ends is replaced, until the fleet is stopped. */
export class WorkerFleet {
  /** Resolves with the first worker's message when all workers listen. Workers that ended are not awaited. */
  readonly allListen: Promise<WorkerListening>
  readonly #options: FleetOptions
  readonly #slots = new Map<number, WorkerSlot>()
  #onAllListen: (first: WorkerListening) => void = () => {}
  #hasListened = false
  /** The signal that has stopped the fleet. Undefined while the fleet runs. */
  #stoppedBy: NodeJS.Signals | undefined

  /** @throws the error of the system if it cannot start a process */
  constructor(count: number, options: FleetOptions) {
    this.#options = options
    this.allListen = new Promise((resolve) => {
      this.#onAllListen = resolve
    })
    for (let number = 1; number <= count; number++) this.#fill(number, pauseMs)
  }

  reload(): void {
    for (const slot of this.#slots.values()) {
      // The signal would end a process that does not handle signals yet.
      if (slot.listening) slot.worker.kill('SIGHUP')
      else slot.mustReload = true
    }
  }

  /** Passes a signal on to all workers. As in a single server, a second signal makes them end at once. */
  stop(signal: NodeJS.Signals): void {
    this.#stoppedBy = signal
    for (const { worker } of this.#slots.values()) worker.kill(signal)
    if (this.#slots.size === 0) this.#options.onEnd(0)
  }

  #fill(number: number, nextPauseMs: number): void {
    const role: WorkerRole = { ...this.#options.role, number }
    const env = { ...process.env, [roleVariable]: JSON.stringify(role) }
    const worker = fork(launcher, process.argv.slice(2), { env, silent: true })
    const own = { listening: undefined, mustReload: false }
    const slot: WorkerSlot = { number, worker, sinceMs: performance.now(), pauseMs: nextPauseMs, ...own }
    this.#slots.set(number, slot)
    this.#options.onWorker(worker)
    worker.on('message', (message: WorkerListening) => this.#takeListening(slot, message))
    // A worker that ends by the signal itself did not handle signals yet. It had begun nothing, so it has not failed.
    const isFailure = (signal: NodeJS.Signals | null) => Number(signal !== this.#stoppedBy)
    worker.on('exit', (code, signal) => this.#takeEnd(slot, code ?? isFailure(signal), signal ? { signal } : { code }))
    worker.on('error', (error) => {
      // Without a pid, the system could not start the process. Other errors do not end a worker.
      if (worker.pid === undefined) this.#takeEnd(slot, 1, { error: error.message })
    })
  }

  #takeListening(slot: WorkerSlot, message: WorkerListening): void {
    slot.listening = message
    this.#hasListened = true
    if (slot.mustReload) slot.worker.kill('SIGHUP')
    this.#checkListening()
  }

  #checkListening(): void {
    const all = [...this.#slots.values()].map(({ listening }) => listening)
    if (all[0] && all.every((one) => one !== undefined)) this.#onAllListen(all[0])
  }

  #takeEnd(slot: WorkerSlot, code: number, why: Record<string, unknown>): void {
    const { number, sinceMs } = slot
    if (this.#slots.get(number) !== slot) return
    this.#slots.delete(number)
    if (this.#stoppedBy) {
      if (this.#slots.size === 0) this.#options.onEnd(code)
      return
    }
    this.#logEnd(number, why)
    // If a worker ends before any worker has listened, the others would probably fail in the same way. So no worker is
    // replaced.
    if (!this.#hasListened) {
      process.exitCode = code || 1
      this.stop('SIGTERM')
      return
    }
    this.#checkListening()
    const hasLived = performance.now() - sinceMs >= livedMs
    this.#fillLater(number, hasLived ? pauseMs : slot.pauseMs)
  }

  /** Replaces a worker after a pause. If no worker lives, nobody answers at the port, so the pause stays short. */
  #fillLater(number: number, waitMs: number): void {
    const isAlone = () => this.#slots.size === 0
    const nextPauseMs = Math.min(pauseMaxMs, waitMs * 2)
    setTimeout(
      () => {
        if (this.#stoppedBy) return
        try {
          if (this.#options.mayFill(isAlone())) this.#fill(number, nextPauseMs)
          else this.#fillLater(number, nextPauseMs)
        } catch (error) {
          this.#logEnd(number, { error: (error as Error).message })
          this.#fillLater(number, nextPauseMs)
        }
      },
      isAlone() ? pauseMs : waitMs,
    )
  }

  #logEnd(number: number, why: Record<string, unknown>): void {
    this.#options.log.event('error', 'worker_exited', { worker: number, ...why })
  }
}
