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
 * A port on loopback that was free a moment ago, for a server that is no part of this process. One of those that the system
 * gives nobody by itself: any of the others a test beside this one may be given before that server listens.
 */
export async function freePort(): Promise<number> {
  const end = firstGiven()
  for (;;) {
    const port = await tryPort(end > leastPort ? randomInt(leastPort, end) : 0)
    if (port !== undefined) return port
  }
}

const leastPort = 10_000

/** The first port that the system gives to those who name none; 0 where it does not say. */
function firstGiven(): number {
  try {
    return Number.parseInt(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8'), 10)
  } catch {
    return 0
  }
}

/** @returns undefined where somebody has it */
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

/** Whether somebody listens on a port of loopback. */
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

/** The ports that a process listens on, as Linux tells; none where it has ended. For one that cannot say so itself. */
export function portsOf(pid: number): number[] {
  try {
    const open = new Set(readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`)))
    // Of each socket a line: its number there, local and remote address in hexadecimal, its state (0A: it listens), …, its inode.
    const lines = readFileSync(`/proc/${pid}/net/tcp`, 'utf8').split('\n').slice(1, -1)
    return lines
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[3] === '0A' && open.has(`socket:[${fields[9]}]`))
      .map((fields) => Number.parseInt(fields[1]!.split(':')[1]!, 16))
  } catch {
    // Of a descriptor that was closed meanwhile there is no link to read: the next look tells.
    return []
  }
}
