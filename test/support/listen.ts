import { randomInt } from 'node:crypto'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import type { Edge } from '../../src/http/server.ts'
import { atEnd } from './at-end.ts'

/** Lets a server of the test listen on loopback until the test is over. @returns its port */
export async function listen(listener: ClosingServer | Edge): Promise<number> {
  const server: ClosingServer = 'server' in listener ? listener.server : listener
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve))
  atEnd(() => {
    server.closeAllConnections?.()
    if ('server' in listener) listener.closeAll()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

type ClosingServer = Server & { closeAllConnections?(): void }

/**
 * A free port on loopback, for a server outside of this process. The port is outside the range that the system gives
 * out by itself. A port in that range could be given to another test before the server listens.
 */
export async function freePort(): Promise<number> {
  const end = firstGiven()
  for (;;) {
    const port = await tryPort(end > leastPort ? randomInt(leastPort, end) : 0)
    if (port !== undefined) return port
  }
}

const leastPort = 10_000

/** The first port that the system gives out by itself; 0 if it is unknown. */
function firstGiven(): number {
  try {
    return Number.parseInt(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8'), 10)
  } catch {
    return 0
  }
}

/** @returns undefined if the port is taken */
function tryPort(wanted: number): Promise<number | undefined> {
  const server = createServer()
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(undefined)
      else reject(error)
    })
    server.listen(wanted, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}

/** Whether a server listens on a port of loopback. */
export function isTaken(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

/** The ports that a process listens on, from /proc; empty if it has ended. For programs that do not print their port. */
export function portsOf(pid: number): number[] {
  try {
    const open = new Set(readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`)))
    // Each line is a socket: number, local and remote address in hexadecimal, state (0A: it listens), …, inode.
    const lines = readFileSync(`/proc/${pid}/net/tcp`, 'utf8').split('\n').slice(1, -1)
    return lines
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[3] === '0A' && open.has(`socket:[${fields[9]}]`))
      .map((fields) => Number.parseInt(fields[1]!.split(':')[1]!, 16))
  } catch {
    // A descriptor was closed meanwhile, so that its link is gone. The next call sees the rest.
    return []
  }
}
