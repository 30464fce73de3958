import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { freePort, isTaken } from '../../test/support/listen.ts'
import type { AnswerName } from '../answers.ts'
import type { Bench, TestedServer } from '../servers.ts'
import { readTree } from '../usage.ts'
import type { Workload } from '../workloads.ts'
import { homeOf } from './home.ts'
import type { Peer, Setting } from './peer.ts'

export type RunningPeer = {
  server: TestedServer
  /** The time from its start until it listens, and its memory a moment later. */
  startedMs: number
  idleMb: number
  stop(): Promise<void>
}

const startLimitMs = 120_000
const calmMs = 1_000
const stopMs = 2_000

/** Starts a peer whose model gives this answer. @throws Error with the end of its output if it does not listen */
export async function startPeer(peer: Peer, bench: Bench, answer: AnswerName): Promise<RunningPeer> {
  const place = join(bench.tools.folder, `${peer.name}-${answer}`)
  mkdirSync(place)
  const setting: Setting = {
    home: homeOf(peer),
    place,
    port: await freePort(),
    origin: `${bench.origin}/${answer}`,
    streamed: `${bench.origin}/stream-short`,
    secret: `sk-${randomBytes(16).toString('hex')}`,
    write: (file, text) => {
      writeFileSync(join(place, file), text, { mode: 0o600 })
      return join(place, file)
    },
  }
  const log = join(place, 'log')
  const begunMs = performance.now()
  const child = spawnPeer(peer, bench.pin, setting, log)
  const pid = child.pid!
  const stop = () => stopTree(pid)
  try {
    await listening(child, setting.port)
    const startedMs = performance.now() - begunMs
    const key = (await peer.prepare?.(setting)) ?? setting.secret
    await wait(calmMs)
    const asked = {
      modelOf: (row: Workload) => peer.modelOf?.(row) ?? peer.model,
      headers: peer.headers?.(setting) ?? { authorization: `Bearer ${key}` },
      streamsMax: peer.streamsMax ?? Number.POSITIVE_INFINITY,
    }
    const server: TestedServer = { name: peer.name, port: setting.port, pid, key, peer: asked }
    return { server, startedMs, idleMb: readTree(pid).rssMb, stop }
  } catch (error) {
    await stop()
    throw new Error(`${(error as Error).message}: ${tellLog(readFileSync(log, 'utf8'))}`)
  }
}

const toldMax = 200

/** The line of a log that reports the error, or the last line; paths of this machine are removed. */
export function tellLog(log: string): string {
  const lines = log.split('\n').filter((line) => line.trim() !== '')
  const line =
    lines.find((one) => /\b(error|fail(ed|ure)?|panic|assert\w*)\b/i.test(one)) ?? lines.at(-1) ?? 'it said nothing'
  return line
    .replaceAll(/(?:\/[\w.@+-]+){2,}/g, (path) => path.slice(path.lastIndexOf('/') + 1))
    .trim()
    .slice(0, toldMax)
}

/** Starts a peer with only the path of our environment, without keys and settings of the person who runs the benchmark. */
function spawnPeer(peer: Peer, pin: readonly string[], setting: Setting, log: string): ChildProcess {
  const { command, env = {} } = peer.start(setting)
  const [program, ...rest] = [...pin, ...command]
  const output = openSync(log, 'a')
  return spawn(program!, rest, {
    cwd: setting.place,
    stdio: ['ignore', output, output],
    env: { PATH: process.env['PATH'], HOME: setting.place, LANG: 'C.UTF-8', NODE_ENV: 'production', ...env },
  })
}

async function listening(child: ChildProcess, port: number): Promise<void> {
  const endMs = performance.now() + startLimitMs
  while (performance.now() < endMs) {
    const ended = child.exitCode ?? child.signalCode
    if (ended !== null) throw new Error(`it ended with ${ended}`)
    if (await isTaken(port)) return
    await wait(20)
  }
  throw new Error(`it did not listen within ${startLimitMs / 1_000} s`)
}

/** Ends a process and all its descendants; those that still run after a while are killed. */
async function stopTree(root: number): Promise<void> {
  const { pids } = readTree(root)
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    for (const pid of pids)
      try {
        process.kill(pid, signal)
      } catch {
        // The process has ended.
      }
    const endMs = performance.now() + stopMs
    while (readTree(root).pids.length > 0 && performance.now() < endMs) await wait(50)
  }
}
