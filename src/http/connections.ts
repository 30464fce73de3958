import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** The connections of a listener: which of them are idle, and which take no further request. */
export type Connections = {
  /** Requests that have no whole answer yet. */
  readonly running: number
  /** A request has come; its answer is under way until its connection has taken it. */
  admit(request: IncomingMessage, response: ServerResponse): void
  /** The newest request of a connection: the one that is still being read, where one is. */
  newestOf(socket: Socket): ServerResponse | undefined
  /** No further request is taken on it: bytes that come after a fault are faults again. */
  refuseMore(socket: Socket): void
  takesMore(socket: Socket): boolean
}

/** Watches a server's connections and keeps them to so many: beyond that the oldest idle one is closed (faults F-C49). */
export function watchConnections(server: Server, connectionsMax: number): Connections {
  let running = 0
  const newest = new WeakMap<Socket, ServerResponse>()
  const open = new Set<Socket>()
  const closing = new WeakSet<Socket>()
  server.on('connection', (socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
    if (open.size > connectionsMax) closeOldestIdle()
  })
  // Node takes an answer for over when its last byte was handed to the socket; here its client has taken it.
  server.closeIdleConnections = () => {
    for (const socket of open) if (isIdle(socket)) socket.destroy()
  }
  return {
    get running() {
      return running
    },
    admit(request, response) {
      running++
      response.once('close', () => running--)
      newest.set(request.socket, response)
    },
    newestOf: (socket) => newest.get(socket),
    refuseMore: (socket) => void closing.add(socket),
    takesMore: (socket) => !closing.has(socket),
  }

  /** Nothing of an answer is under way; a request may be on its way in. */
  function isIdle(socket: Socket): boolean {
    const response = newest.get(socket)
    return socket.writableLength === 0 && (response === undefined || response.destroyed)
  }

  /** Makes room for a new connection; where all are in use the new one is the only idle one. */
  function closeOldestIdle(): void {
    for (const socket of open) {
      if (!isIdle(socket)) continue
      open.delete(socket)
      socket.destroy()
      return
    }
  }
}
