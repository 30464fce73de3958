import { Agent, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { Gateway } from './gateway.ts'
import type { Setting } from './setting.ts'

/** What an attack has in its hands. */
export type Attacker = {
  url: string
  gateway: Gateway
  setting: Setting
  /** Ends the attack. */
  signal: AbortSignal
  /** Of paying accounts that only this attack uses, in turns. */
  key(): string
  /** Of an account with a balance of zero. */
  pauper(): string
  /** Counts one request, or what comes nearest. */
  count(): void
  /** Does it in so many loops at once until the attack ends; what fails is tried again. */
  loops(parallel: number, act: (loop: number) => Promise<unknown>): Promise<void>
  post(path: string, body: string | Buffer, options?: PostOptions): Promise<{ status: number; text: string }>
  /** A connection of its own. Resolves when it is open; ends with the attack. */
  open(options?: { allowHalfOpen?: boolean }): Promise<Socket>
  /** The same with these bytes. Resolves when it was closed, or after so long. */
  send(bytes: string | Buffer, withinMs?: number): Promise<void>
  /** Waits, but not longer than the attack. */
  wait(ms: number): Promise<void>
}

export type PostOptions = {
  key?: string
  headers?: Record<string, string>
  /** Leaves so long after the request was sent. */
  leaveMs?: number
  /** Leaves with the first bytes of the answer. */
  leavesAtFirst?: boolean
  localAddress?: string
}

/** One entry of the table of attacks. */
export type Attack = {
  name: string
  /** Of docs/findings.md, or of docs/faults.md. */
  finding: string
  /** Not built yet: it is run and told, and does not fail the trial. The reason. */
  expectedOpen?: string
  /**
   * More than a processor can do, from more accounts than pay: nobody is refused or lost, and how long it takes is told and
   * not judged.
   */
  isOverload?: true
  /** Not beside others: one hand on the configuration at a time. */
  isAlone?: boolean
  /** Until the signal; leaves nothing behind. */
  run(attacker: Attacker): Promise<void>
}

export function createAttacker(
  gateway: Gateway,
  setting: Setting,
  attackers: readonly string[],
  signal: AbortSignal,
): Attacker & { readonly counted: number; close(): void } {
  const agent = new Agent({ keepAlive: true })
  const sockets = new Set<Socket>()
  const { port, hostname } = new URL(gateway.url)
  let counted = 0
  let turn = 0
  const attacker = {
    url: gateway.url,
    gateway,
    setting,
    signal,
    get counted() {
      return counted
    },
    key: () => attackers[turn++ % attackers.length]!,
    pauper: () => setting.keys.paupers[turn++ % setting.keys.paupers.length]!,
    count: () => void counted++,
    loops,
    post,
    open,
    async send(bytes: string | Buffer, withinMs = 3_000) {
      const socket = await open()
      socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
      await Promise.race([new Promise((resolve) => socket.once('close', resolve)), attacker.wait(withinMs)])
      socket.destroy()
    },
    wait: (ms: number) => pause(ms, undefined, { signal }).catch(() => {}),
    close() {
      agent.destroy()
      for (const socket of sockets) socket.destroy()
    },
  }
  return attacker

  async function loops(parallel: number, act: (loop: number) => Promise<unknown>): Promise<void> {
    const run = async (_: unknown, loop: number) => {
      while (!signal.aborted) {
        // A gateway that refuses connections is not asked more often for it.
        await act(loop).catch(() => attacker.wait(50))
        await new Promise((resolve) => setImmediate(resolve))
      }
    }
    await Promise.all(Array.from({ length: parallel }, run))
  }

  function post(path: string, body: string | Buffer, options: PostOptions = {}) {
    counted++
    const { key = attacker.key(), headers = {}, leaveMs, leavesAtFirst, localAddress } = options
    return new Promise<{ status: number; text: string }>((resolve, reject) => {
      const sent = request(gateway.url + path, {
        method: 'POST',
        agent,
        signal,
        headers: { authorization: `Bearer ${key}`, 'content-length': Buffer.byteLength(body), ...headers },
        ...(localAddress ? { localAddress } : {}),
      })
      const timer = leaveMs === undefined ? undefined : setTimeout(() => sent.destroy(), leaveMs)
      sent.on('response', (response) => {
        let text = ''
        response.on('data', (part: Buffer) => {
          if (text.length < 2_000) text += part.toString('latin1')
          if (leavesAtFirst) sent.destroy()
        })
        response.on('error', reject)
        response.on('close', () => {
          clearTimeout(timer)
          resolve({ status: response.statusCode ?? 0, text })
        })
      })
      sent.on('error', (error) => {
        clearTimeout(timer)
        // Who leaves is not refused.
        if (leaveMs === undefined && !leavesAtFirst) reject(error)
        else resolve({ status: 0, text: '' })
      })
      sent.end(body)
    })
  }

  function open({ allowHalfOpen = false } = {}): Promise<Socket> {
    counted++
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen })
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', () => {})
    return new Promise((resolve, reject) => {
      socket.once('connect', () => resolve(socket))
      socket.on('error', reject)
    })
  }
}
