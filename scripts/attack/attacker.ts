import { Agent, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { Gateway } from './gateway.ts'
import type { Setting } from './setting.ts'

/** The means of an attack. */
export type Attacker = {
  url: string
  gateway: Gateway
  setting: Setting
  /** Ends the attack. */
  signal: AbortSignal
  /** Returns a key of an account with credit that only this attack uses. Calls return the keys in turns. */
  key(): string
  /** Returns a key of an account with a balance of zero. */
  pauper(): string
  /** Counts one request, or what an attack does instead of a request. */
  count(): void
  /** Runs `act` in `parallel` concurrent loops until the attack ends. A failed `act` is tried again. */
  loops(parallel: number, act: (loop: number) => Promise<unknown>): Promise<void>
  post(path: string, body: string | Buffer, options?: PostOptions): Promise<{ status: number; text: string }>
  /** Opens a new connection, which is closed when the attack ends. Resolves when it is open. */
  open(options?: { allowHalfOpen?: boolean }): Promise<Socket>
  /** Sends bytes on a new connection. Resolves when the connection is closed, or after `withinMs`. */
  send(bytes: string | Buffer, withinMs?: number): Promise<void>
  /** Waits for `ms`, or until the attack ends. */
  wait(ms: number): Promise<void>
}

export type PostOptions = {
  key?: string
  headers?: Record<string, string>
  /** How long after the request the attacker closes the connection, in ms. */
  leaveMs?: number
  /** Whether the attacker closes the connection at the first bytes of the answer. */
  leavesAtFirst?: boolean
  localAddress?: string
}

/** One entry of the table of attacks. */
export type Attack = {
  name: string
  /** The number of a finding in docs/findings.md, or of a fault in docs/faults.md. */
  finding: string
  /** The reason why there is no defence yet. The attack is run and reported, and does not fail the trial. */
  expectedOpen?: string
  /**
   * Set if the load is more than a processor can handle, from more accounts than there are payers. No payer may be
   * refused or lost. The payers' times are only reported.
   */
  isOverload?: true
  /** Set if the attack changes the configuration. It then never runs together with other attacks. */
  isAlone?: boolean
  /** Runs until the signal, and ends everything that it started. */
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
        // After a refused connection the loop waits, so that it does not connect more often.
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
        // If the attacker itself left, the broken connection is no failure.
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
