import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'

/** A server of models under our hands. */
export type ModelServer = Program & {
  name: string
  version: string
  /** What it is and how it is run, as a sentence of docs/servers.md. */
  about: string
  url: string
  /** The key it asks for. */
  key: string
  /** What its models are declared with. */
  profile: { extends: string; [key: string]: unknown }
  /** The server that it hands requests to, where it has no model itself. */
  behind?: ModelServer
}

/** A process that can be ended, frozen and started again. */
export type Program = {
  /** Waits until it answers. */
  start(): Promise<void>
  signal(signal: NodeJS.Signals): void
  /** Ends it, and waits for that. */
  stop(signal?: NodeJS.Signals): Promise<void>
}

/** @param healthUrl answers with 200 when it is ready, within `startMs`. */
export function programOf(on: {
  command: readonly string[]
  env: Record<string, string>
  logPath: string
  healthUrl: string
  startMs: number
}): Program {
  const [file, ...args] = on.command
  let child: ChildProcess | undefined
  // Whatever ends the suite takes it along.
  process.on('exit', () => child?.kill('SIGKILL'))
  return {
    async start() {
      const log = openSync(on.logPath, 'a')
      child = spawn(file!, args, { env: { ...process.env, ...on.env }, stdio: ['ignore', log, log] })
      closeSync(log)
      await untilUp(child)
    },
    signal: (signal) => void child?.kill(signal),
    async stop(signal = 'SIGKILL') {
      if (!child || child.exitCode !== null || child.signalCode !== null) return
      child.kill(signal)
      await once(child, 'exit')
    },
  }

  async function untilUp(child: ChildProcess): Promise<void> {
    for (const startedMs = performance.now(); performance.now() - startedMs < on.startMs; await pause(50)) {
      if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}; see ${on.logPath}`)
      const answer = await fetch(on.healthUrl).catch(() => undefined)
      await answer?.body?.cancel()
      if (answer?.ok) return
    }
    throw new Error(`the server does not answer; see ${on.logPath}`)
  }
}
