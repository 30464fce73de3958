import { subscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { until } from './waiting.ts'

/** The gateway's sockets to upstreams, which are in this process, by local port. */
const ends = new Map<number, Socket>()

subscribe('triwire:upstream:connected', (message) => {
  const { socket } = message as { socket: Socket }
  const port = socket.localPort!
  ends.set(port, socket)
  socket.once('close', () => ends.delete(port))
})

/** Waits until the gateway has read all bytes that an upstream wrote to this connection, or has closed it. */
export function untilRead(socket: Socket): Promise<void> {
  const port = socket.remotePort!
  return until(() => {
    const end = ends.get(port)
    return end === undefined || end.bytesRead === socket.bytesWritten
  }, 'the gateway reads what the upstream wrote')
}

/** Whether the gateway has connections to an upstream's port. */
export function isConnected(port: number): boolean {
  return [...ends.values()].some((end) => end.remotePort === port)
}

/** Returns the gateway's socket of a connection. @param socket the upstream's socket in the test */
export function gatewayEnd(socket: Socket): Socket {
  const end = ends.get(socket.remotePort!)
  if (!end) throw new Error('the gateway has let go of this connection')
  return end
}
