import { connect, createServer, type Socket } from 'node:net'
import { atEnd } from './at-end.ts'
import { listen } from './listen.ts'

/**
 * Faults in one direction of a connection. A position counts bytes from the beginning of the connection. At 0 the fault
 * replaces the first byte; at N it occurs when N bytes have passed.
 */
export type Trouble = {
  /** The delay of each piece. */
  latencyMs?: number
  bytesPerSecond?: number
  /** The size of the pieces in which bytes are passed on. */
  slice?: number
  /** From this position on nothing passes, without a sign for either end. */
  stallAt?: number
  /** The position at which both ends get a reset. */
  resetAt?: number
  /** The position at which both ends get an orderly end. */
  cutAt?: number
  /** Whether the end of this side, orderly or not, is hidden from the other. */
  swallowsEnd?: boolean
}

export type Faults = {
  /** Faults towards the server. */
  up?: Trouble
  /** Faults towards the client. */
  down?: Trouble
  /** Whether the connection is accepted and then ignored. */
  isHalfOpen?: boolean
}

export type FaultProxy = {
  url: string
  /** Sets the faults of new connections: those of the list in turn, then always the last one. Empty: no faults. */
  play(...faults: Faults[]): void
  /** The number of accepted connections. */
  connections: number
  /** The number of open connections. */
  readonly open: number
  /** The number of bytes that have passed in each direction. */
  readonly passed: { up: number; down: number }
  /** Resets all open connections. */
  drop(): void
}

/** Waits for a time. A test of the proxy itself replaces it. */
export type Wait = (ms: number) => Promise<void>

const inTime: Wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** Starts a proxy that simulates a bad network: it passes bytes on, with the faults that a test sets. */
export async function startFaultProxy(target: string, wait: Wait = inTime): Promise<FaultProxy> {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  const passed = { up: 0, down: 0 }
  let planned: Faults[] = []
  let open = 0
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const faults = (planned.length > 1 ? planned.shift() : planned[0]) ?? {}
    proxy.connections++
    open++
    client.once('close', () => open--)
    keep(client)
    if (faults.isHalfOpen) return
    const upstream = connect({ port: Number(port), host: hostname, allowHalfOpen: true, noDelay: true })
    keep(upstream)
    void pump(client, upstream, 'up', faults.up ?? {})
    void pump(upstream, client, 'down', faults.down ?? {})
  })
  const proxy: FaultProxy = {
    url: `http://127.0.0.1:${await listen(server)}`,
    play(...faults) {
      planned = faults
    },
    connections: 0,
    get open() {
      return open
    },
    passed,
    drop() {
      for (const socket of sockets) reset(socket)
    },
  }
  atEnd(proxy.drop)
  return proxy

  function keep(socket: Socket): void {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
  }

  async function pump(from: Socket, to: Socket, direction: 'up' | 'down', trouble: Trouble): Promise<void> {
    const { latencyMs = 0, bytesPerSecond = Number.POSITIVE_INFINITY, swallowsEnd } = trouble
    const end = endOf(trouble)
    let at = 0
    try {
      for await (const chunk of from.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        for (let start = 0; start < chunk.length; ) {
          if (at >= end.at) return finish(end.how, from, to)
          const piece = chunk.subarray(start, start + Math.min(pieceBytes(trouble), end.at - at))
          const lateMs = latencyMs + (piece.length * 1_000) / bytesPerSecond
          if (lateMs > 0) await wait(lateMs)
          if (to.destroyed) return
          if (!to.write(piece)) await untilTaken(to)
          start += piece.length
          at += piece.length
          passed[direction] += piece.length
          if (at === end.at) return finish(end.how, from, to)
        }
      }
      if (!swallowsEnd) to.end()
    } catch {
      // The connection was reset.
      if (!swallowsEnd) reset(to)
    }
  }
}

type End = { at: number; how: 'stall' | 'reset' | 'cut' | 'none' }

/** Returns the first fault that ends a direction. */
function endOf({ stallAt, resetAt, cutAt }: Trouble): End {
  const ends: End[] = [
    { at: resetAt ?? Number.POSITIVE_INFINITY, how: 'reset' },
    { at: cutAt ?? Number.POSITIVE_INFINITY, how: 'cut' },
    { at: stallAt ?? Number.POSITIVE_INFINITY, how: 'stall' },
  ]
  return ends.reduce((first, one) => (one.at < first.at ? one : first), { at: Number.POSITIVE_INFINITY, how: 'none' })
}

/** Returns the size of pieces. A slow line passes ten pieces per second. */
function pieceBytes({ slice, bytesPerSecond }: Trouble): number {
  return slice ?? (bytesPerSecond === undefined ? 65_536 : Math.max(1, Math.floor(bytesPerSecond / 10)))
}

function finish(how: End['how'], ...sockets: Socket[]): void {
  for (const socket of sockets) {
    if (how === 'reset') reset(socket)
    if (how === 'cut') socket.end()
  }
}

/** Sockets that are being reset. A second reset during the connect would keep the Node process alive. */
const leaving = new WeakSet<Socket>()

function reset(socket: Socket): void {
  if (socket.destroyed || leaving.has(socket)) return
  leaving.add(socket)
  if (socket.connecting) socket.once('connect', () => socket.resetAndDestroy())
  else socket.resetAndDestroy()
}

function untilTaken(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      socket.off('drain', go)
      socket.off('close', go)
      resolve()
    }
    socket.on('drain', go)
    socket.on('close', go)
  })
}
