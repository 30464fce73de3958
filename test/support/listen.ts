import { randomInt } from 'node:crypto'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import type { Edge } from '../../src/http/server.ts'
import { atEnd } from './at-end.ts'

/** Starts a server on loopback, at most until the end of the test. @returns its port */
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
 * Returns a free port on loopback, for a server in another process. It is outside the ephemeral range, from which the
 * system could give it to another test before the server listens.
 */
export async function freePort(): Promise<number> {
  const end = firstGiven()
  for (;;) {
    const port = await tryPort(end > leastPort ? randomInt(leastPort, end) : 0)
    if (port !== undefined) return port
  }
}

const leastPort = 10_000

/** Returns the first ephemeral port of the system, or 0 if it is unknown. */
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

/** Returns the ports of a process, from /proc, for programs that do not print them. Empty if it has ended. */
export function portsOf(pid: number): number[] {
  try {
    const open = new Set(readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`)))
    // Each line is a socket: number, local and remote address in hexadecimal, state (0A: listening), …, inode.
    const lines = readFileSync(`/proc/${pid}/net/tcp`, 'utf8').split('\n').slice(1, -1)
    return lines
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[3] === '0A' && open.has(`socket:[${fields[9]}]`))
      .map((fields) => Number.parseInt(fields[1]!.split(':')[1]!, 16))
  } catch {
    // A descriptor was closed in the meantime, so its link is gone. The next call sees the others.
    return []
  }
}
