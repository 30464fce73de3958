import { once } from 'node:events'
import { createServer as createNodeServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { createEdge } from '../../src/http/server.ts'
import { fetchHttp } from '../../src/upstream/http-fetch.ts'

/** A request as a server has read it. */
export type SeenRequest = {
  method: string
  target: string
  body: string
  /** False if its connection ended within its body. */
  isWhole: boolean
  /** Whether the request names another protocol. Our server ignores that (RFC 9110 7.8). Node's then stops reading. */
  upgrades: boolean
  /** Each value of `x-front`. */
  front: string[]
}

/** All requests that a server has seen on one connection. */
export type SeenConnection = { requests: SeenRequest[] }

/** A server that records what it reads, by the port of the client. */
export type ReadingServer = { port: number; seen: Map<number, SeenConnection>; close(): void }

/**
 * Records each connection of a server by the port of its client. Another client can soon get the same port, so late
 * data of an old connection does not count for the new one.
 * @returns a function that finds the record of a connection
 */
function noteConnections(server: Server, seen: ReadingServer['seen']): (socket: Socket) => SeenConnection {
  const known = new WeakMap<Socket, SeenConnection>()
  server.on('connection', (socket: Socket) => {
    const connection: SeenConnection = { requests: [] }
    known.set(socket, connection)
    seen.set(socket.remotePort!, connection)
  })
  return (socket) => known.get(socket)!
}

async function listenOn(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

const limits = {
  ...{ headersMs: 5_000, keepAliveMs: 60_000, lingerMs: 0 },
  ...{ connectionsMax: 10_000, headerBytesMax: 16_384, headersMax: 100 },
}

/** Starts our server. */
export async function startOurs(): Promise<ReadingServer> {
  const seen: ReadingServer['seen'] = new Map()
  const edge = createEdge({
    limits,
    handle(exchange) {
      const { requests } = connectionOf(exchange.socket)
      const { method, target, fields } = exchange
      const upgrades = fields.get('upgrade') !== undefined
      const front = fields.all('x-front')
      const one: SeenRequest = { method, target, body: '', isWhole: false, upgrades, front }
      requests.push(one)
      if (exchange.awaitsContinue) exchange.continue()
      exchange.body.read({
        take(piece) {
          one.body += piece.toString('latin1')
        },
        whole() {
          one.isWhole = true
          exchange.answer(200, '', one.front.join())
        },
        broken: () => exchange.destroy(),
        gone() {},
      })
    },
    formError: () => ({ lines: '', body: '' }),
  })
  const connectionOf = noteConnections(edge.server, seen)
  const port = await listenOn(edge.server)
  return {
    port,
    seen,
    close() {
      edge.closeAll()
      edge.server.close()
    },
  }
}

/** Starts Node's server, whose parser is llhttp. */
export async function startNode(): Promise<ReadingServer> {
  const seen: ReadingServer['seen'] = new Map()
  const server = createNodeServer({ requireHostHeader: false }, take)
  const connectionOf = noteConnections(server, seen)
  server.on('checkContinue', (message: IncomingMessage, answer: ServerResponse) => {
    answer.writeContinue()
    take(message, answer)
  })
  server.on('checkExpectation', take)
  server.on('clientError', (_, socket) => socket.destroy())
  const port = await listenOn(server)
  return {
    port,
    seen,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }

  function take(message: IncomingMessage, answer: ServerResponse): void {
    const { method = '', url: target = '' } = message
    const one: SeenRequest = { method, target, body: '', isWhole: false, upgrades: false, front: [] }
    connectionOf(message.socket).requests.push(one)
    message.setEncoding('latin1').on('data', (piece: string) => {
      one.body += piece
    })
    message.on('error', () => {})
    message.on('end', () => {
      one.isWhole = true
      answer.end()
    })
  }
}

/** The client's port, and whether the server has closed the connection. */
export type SentBytes = { port: number; isClosed: boolean }

/** Sends bytes as one client. It leaves when the server closes the connection, or sends nothing for `quietMs`. */
export async function sendBytes(port: number, bytes: Buffer, quietMs: number): Promise<SentBytes> {
  const socket = connect(port, '127.0.0.1')
  let isClosed = true
  socket.on('error', () => {})
  await once(socket, 'connect')
  const { localPort } = socket
  const quiet = setTimeout(() => {
    isClosed = false
    socket.destroy()
  }, quietMs)
  socket.on('data', () => quiet.refresh())
  socket.write(bytes)
  await once(socket, 'close')
  clearTimeout(quiet)
  return { port: localPort!, isClosed }
}

/** Starts an upstream that answers `GET /<number>` with the bytes in `answers`, and then ends the connection. */
export async function startRaw(): Promise<{ port: number; answers: Map<string, Buffer>; close(): void }> {
  const answers = new Map<string, Buffer>()
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    let text = ''
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    socket.on('data', (piece) => {
      text += piece.toString('latin1')
      const path = /^GET (\/\d+) [\s\S]*?\r\n\r\n/.exec(text)?.[1]
      if (path === undefined) return
      text = ''
      socket.end(answers.get(path) ?? '')
    })
  })
  return {
    port: await listenOn(server),
    answers,
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

/** An answer as a client has read it: `whole` with status and body, `refused` as malformed, or `cut` within it. */
export type ReadAnswer = { is: 'whole'; status: number; body: string } | { is: 'refused' | 'cut' }

/** Reads an answer with our client. */
export async function readByOurs(port: number, path: string): Promise<ReadAnswer> {
  try {
    const response = await fetchHttp(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(5_000) })
    let body = ''
    for await (const piece of response.body as AsyncIterable<Buffer>) body += piece.toString('latin1')
    return { is: 'whole', status: response.status, body }
  } catch (error) {
    return { is: (error as NodeJS.ErrnoException).code === 'EBADMSG' ? 'refused' : 'cut' }
  }
}

/** Reads an answer with Node's client, whose parser is llhttp. */
export function readByNode(port: number, path: string): Promise<ReadAnswer> {
  return new Promise((resolve) => {
    const asking = request({ port, host: '127.0.0.1', path, agent: false, timeout: 5_000 })
    const fail = (error: NodeJS.ErrnoException) => resolve({ is: /^HPE_/.test(error.code ?? '') ? 'refused' : 'cut' })
    asking.on('error', fail)
    asking.on('timeout', () => asking.destroy())
    asking.on('upgrade', (_, socket) => {
      socket.destroy()
      resolve({ is: 'refused' })
    })
    asking.on('response', (response) => {
      let body = ''
      response.setEncoding('latin1').on('error', fail)
      response.on('data', (piece: string) => {
        body += piece
      })
      response.on('end', () => resolve({ is: 'whole', status: response.statusCode!, body }))
    })
    asking.end()
  })
}
