import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { isLingering } from './answer.ts'

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
  /** Requests can come on it: with TLS its handshake is over. */
  isOpen(socket: Socket): boolean
}

/**
 * Watches a server's connections and keeps them to so many (faults F-C49): beyond that one is closed that nobody waits for. First
 * goes one whose request was refused before it had come in whole: a client that has no place in its window and sends
 * megabytes anyway would take all connections else. Then the oldest of those that never asked, then the one whose last
 * answer is the longest ago: a flood of connections takes those of the flood, and not what clients keep for their next
 * request. An idle one is read once more before: while the loop was busy its request may have come, and closing would
 * throw that away with a reset. With TLS a connection counts from its first byte on.
 */
export function watchConnections(server: Server, connectionsMax: number, isSecured: boolean): Connections {
  let running = 0
  const newest = new WeakMap<Socket, ServerResponse>()
  const silent = new Set<Socket>()
  /** In the order of their last answers. */
  const known = new Set<Socket>()
  /** Idle ones that make room, unless a request of theirs is still read; there are as many as are accepted in two turns. */
  const leaving = new Set<Socket>()
  const closing = new WeakSet<Socket>()
  /** Of a listener with TLS: those that are in their handshake, by their other ends; and those that are through it. */
  const greeting = new Map<string, Socket>()
  const secured = new WeakSet<Socket>()
  server.on('connection', (socket: Socket) => {
    if (silent.size + known.size >= connectionsMax && !makeRoom()) {
      socket.destroy()
      return
    }
    silent.add(socket)
    if (!isSecured) {
      socket.once('close', () => forget(socket))
      return
    }
    const end = endOf(socket)
    greeting.set(end, socket)
    socket.once('close', () => {
      forget(socket)
      if (greeting.get(end) === socket) greeting.delete(end)
    })
  })
  // Requests know the secured socket, and not the one that it is in: from here on that one stands for both.
  server.on('secureConnection', (socket: Socket) => {
    const end = endOf(socket)
    const raw = greeting.get(end)
    greeting.delete(end)
    if (raw) forget(raw)
    if (socket.destroyed) return
    secured.add(socket)
    silent.add(socket)
    socket.once('close', () => forget(socket))
  })
  // Node takes an answer for over when its last byte was handed to the socket; here its client has taken it.
  server.closeIdleConnections = () => {
    for (const sockets of [silent, known, leaving]) for (const socket of sockets) if (isIdle(socket)) socket.destroy()
  }
  return {
    get running() {
      return running
    },
    admit(request, response) {
      const { socket } = request
      running++
      response.once('close', () => {
        running--
        // Among the others it is the newest again.
        if (known.delete(socket)) known.add(socket)
      })
      newest.set(socket, response)
      if (silent.delete(socket) || leaving.delete(socket)) known.add(socket)
    },
    newestOf: (socket) => newest.get(socket),
    refuseMore: (socket) => void closing.add(socket),
    takesMore: (socket) => !closing.has(socket),
    isOpen: (socket) => !isSecured || secured.has(socket),
  }

  /** Nothing of an answer is under way; a request may be on its way in. */
  function isIdle(socket: Socket): boolean {
    const response = newest.get(socket)
    return socket.writableLength === 0 && (response === undefined || response.destroyed)
  }

  /** All that is left to do on it is to throw away what still comes. */
  function isAnswered(socket: Socket): boolean {
    const response = newest.get(socket)
    return socket.writableLength === 0 && response !== undefined && isLingering(response)
  }

  /** @returns false where all connections are in use. */
  function makeRoom(): boolean {
    const answered = find(known, isAnswered)
    const spare = answered ?? find(silent, isIdle) ?? find(known, isIdle)
    if (!spare) return false
    forget(spare)
    if (answered) answered.destroy()
    else {
      leaving.add(spare)
      // The first turn is this one, in which it may have been accepted; by the end of the second it was read.
      setImmediate(() => setImmediate(() => closeUnread(spare)))
    }
    return true
  }

  /** Where it has asked meanwhile somebody else is to go. */
  function closeUnread(idle: Socket): void {
    if (leaving.delete(idle)) idle.destroy()
    else if (silent.size + known.size > connectionsMax) makeRoom()
  }

  function forget(socket: Socket): void {
    silent.delete(socket)
    known.delete(socket)
    leaving.delete(socket)
  }
}

function find(sockets: Set<Socket>, isSpare: (socket: Socket) => boolean): Socket | undefined {
  for (const socket of sockets) if (isSpare(socket)) return socket
  return undefined
}

function endOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}
