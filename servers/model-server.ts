import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'

/** A model server that the suite starts, stops and freezes. */
export type ModelServer = Program & {
  name: string
  version: string
  /** Sentences for docs/servers.md about the server, and about how it is run. */
  about: string
  url: string
  /** The key that it requires. */
  key: string
  /** The profile of its models in the gateway's configuration. */
  profile: { extends: string; [key: string]: unknown }
  /** The server that it passes requests on to, if it has no model itself. */
  behind?: ModelServer
}

/** A process that can be ended, frozen and started again. */
export type Program = {
  /** Waits until it answers. */
  start(): Promise<void>
  signal(signal: NodeJS.Signals): void
  /** Sends the signal, and waits until the process has ended. */
  stop(signal?: NodeJS.Signals): Promise<void>
}

/** Describes a program that is not started yet. @param on.healthUrl must answer 200 within `startMs` */
export function programOf(on: {
  command: readonly string[]
  env: Record<string, string>
  logPath: string
  healthUrl: string
  startMs: number
}): Program {
  const [file, ...args] = on.command
  let child: ChildProcess | undefined
  // The server must not outlive the suite.
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
