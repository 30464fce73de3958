import { createServer, type Socket } from 'node:net'
import { atEnd } from './at-end.ts'
import { listen } from './listen.ts'
import { untilRead } from './peer.ts'
import { until } from './waiting.ts'

/** A request as it was received. */
export type RawRequest = {
  method: string
  path: string
  /** The headers in their order, with names in lower case. */
  headers: [string, string][]
  header(name: string): string | undefined
  body: Buffer
  json(): Record<string, unknown>
  /** The number of the connection, from 1 on. */
  connection: number
}

/** Writes the response to a request, valid or not. */
export type Answer = (socket: Socket, request: RawRequest) => void | Promise<void>

export type RawUpstream = {
  url: string
  requests: RawRequest[]
  /** Sets the responses to requests: those of the list in turn, then always the last one. */
  play(...answers: Answer[]): void
  connections: number
  /** The number of bytes written to sockets so far. */
  readonly bytesWritten: number
  /** The number of connections that the gateway has closed. */
  closed: number
  /** Waits until this many requests were answered by `play`, and the gateway has read the responses. */
  untilHeard(requests?: number): Promise<void>
  close(): Promise<void>
}

/** Starts an upstream on raw sockets: the test controls every byte, and how each connection ends. */
export async function startRawUpstream(): Promise<RawUpstream> {
  const sockets = new Set<Socket>()
  let bytesOfClosed = 0
  let answers: Answer[] = []
  /** The number of responses that are still being written. */
  let playing = 0
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket)
    const connection = ++upstream.connections
    let buffer: Buffer = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      buffer = Buffer.concat([buffer, chunk])
      for (let request = takeRequest(); request; request = takeRequest()) {
        upstream.requests.push(request)
        const answer = answers.length > 1 ? answers.shift()! : answers[0]!
        playing++
        void Promise.resolve(answer(socket, request)).finally(() => playing--)
      }
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      sockets.delete(socket)
      bytesOfClosed += socket.bytesWritten
      upstream.closed++
    })

    function takeRequest(): RawRequest | undefined {
      const end = buffer.indexOf('\r\n\r\n')
      if (end < 0) return undefined
      const [first, ...lines] = buffer.toString('latin1', 0, end).split('\r\n')
      const headers = lines.map((line): [string, string] => {
        const colon = line.indexOf(':')
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
      })
      const header = (name: string) => headers.find(([known]) => known === name)?.[1]
      const bodyEnd = end + 4 + Number(header('content-length') ?? 0)
      if (buffer.length < bodyEnd) return undefined
      const body = buffer.subarray(end + 4, bodyEnd)
      buffer = buffer.subarray(bodyEnd)
      const [method = '', path = ''] = first!.split(' ')
      return { method, path, headers, header, body, json: () => JSON.parse(body.toString()), connection }
    }
  })
  const port = await listen(server)
  const upstream: RawUpstream = {
    url: `http://127.0.0.1:${port}`,
    requests: [],
    play(...next) {
      answers = next
      upstream.requests.length = 0
    },
    connections: 0,
    closed: 0,
    get bytesWritten() {
      return [...sockets].reduce((sum, socket) => sum + socket.bytesWritten, bytesOfClosed)
    },
    async untilHeard(requests = 1) {
      await until(
        () => upstream.requests.length >= requests && playing === 0,
        'the upstream is asked, and has answered',
      )
      for (const socket of sockets) await untilRead(socket)
    },
    close() {
      for (const socket of sockets) socket.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
  atEnd(upstream.close)
  return upstream
}

/** Makes a response with a declared length. */
export function whole(body: string | object, status = 200, headers: Record<string, string> = {}): Answer {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return (socket) => {
    socket.write(
      head(status, { 'content-type': 'application/json', 'content-length': `${Buffer.byteLength(text)}`, ...headers }),
    )
    socket.write(text)
  }
}

/** Makes a chunked event stream, which writes each piece separately. `end: false` leaves it open. */
export function stream(
  pieces: readonly (string | Uint8Array)[],
  options: { end?: boolean; headers?: Record<string, string> } = {},
): Answer {
  return async (socket) => {
    socket.write(head(200, { 'content-type': 'text/event-stream', 'transfer-encoding': 'chunked', ...options.headers }))
    for (const piece of pieces) {
      writeChunk(socket, piece)
      // Node combines the writes of one turn, but pieces must arrive separately.
      if (pieces.length > 1) await new Promise((resolve) => setImmediate(resolve))
    }
    if (options.end !== false) socket.write('0\r\n\r\n')
  }
}

export function head(status: number, headers: Record<string, string>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} Said\r\n${lines.join('')}\r\n`
}

export function writeChunk(socket: Socket, piece: string | Uint8Array): boolean {
  const bytes = Buffer.from(piece as string)
  socket.write(`${bytes.length.toString(16)}\r\n`)
  socket.write(bytes)
  return socket.write('\r\n')
}
