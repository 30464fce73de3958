import { connect, createServer, type Socket } from 'node:net'
import { atEnd } from './at-end.ts'
import { listen } from './listen.ts'

/**
 * What becomes of the bytes of one direction. A byte's number counts from the beginning of its connection; at 0 the fault
 * comes instead of the first byte, at N as soon as N have passed.
 */
export type Trouble = {
  /** Each piece is so late. */
  latencyMs?: number
  bytesPerSecond?: number
  /** Passed on in pieces of so many bytes. */
  slice?: number
  /** Nothing passes any more, and nothing is told. */
  stallAt?: number
  /** Both ends get a reset. */
  resetAt?: number
  /** Both ends get an orderly end. */
  cutAt?: number
  /** The end of this side, orderly or not, is not told to the other. */
  swallowsEnd?: boolean
}

export type Faults = {
  /** Towards the server. */
  up?: Trouble
  /** Towards the client. */
  down?: Trouble
  /** It is accepted, and nobody is there. */
  isHalfOpen?: boolean
}

export type FaultProxy = {
  url: string
  /** Connections from now on have these faults: those of the list in turn, the last one for ever; none: as without it. */
  play(...faults: Faults[]): void
  /** Connections that were accepted so far. */
  connections: number
  /** Those that are open. */
  readonly open: number
  /** Bytes that have passed in a direction. */
  readonly passed: { up: number; down: number }
  /** Resets what is open. */
  drop(): void
}

/** Lets time pass; a test of the proxy itself has its own. */
export type Wait = (ms: number) => Promise<void>

const inTime: Wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** A bad network: passes the bytes of each connection to a server and back, with the faults that it is told to have. */
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
      // It was reset.
      if (!swallowsEnd) reset(to)
    }
  }
}

type End = { at: number; how: 'stall' | 'reset' | 'cut' | 'none' }

/** The first of the ends of a direction. */
function endOf({ stallAt, resetAt, cutAt }: Trouble): End {
  const ends: End[] = [
    { at: resetAt ?? Number.POSITIVE_INFINITY, how: 'reset' },
    { at: cutAt ?? Number.POSITIVE_INFINITY, how: 'cut' },
    { at: stallAt ?? Number.POSITIVE_INFINITY, how: 'stall' },
  ]
  return ends.reduce((first, one) => (one.at < first.at ? one : first), { at: Number.POSITIVE_INFINITY, how: 'none' })
}

/** A slow line is slow for every tenth of a second, and not a second at a time. */
function pieceBytes({ slice, bytesPerSecond }: Trouble): number {
  return slice ?? (bytesPerSecond === undefined ? 65_536 : Math.max(1, Math.floor(bytesPerSecond / 10)))
}

function finish(how: End['how'], ...sockets: Socket[]): void {
  for (const socket of sockets) {
    if (how === 'reset') reset(socket)
    if (how === 'cut') socket.end()
  }
}

/** Those that are told a second time while they connect would keep Node from its end. */
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
