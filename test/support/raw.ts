import { connect, type Socket } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import { atEnd } from './at-end.ts'
import { within } from './waiting.ts'

/** A response as it was received. */
export type RawAnswer = {
  version: string
  status: number
  /** The headers by lower-case name. A repeated one has its last value. */
  headers: Map<string, string>
  body: string
  /** False if the connection ended before the response was complete. */
  isWhole: boolean
}

/** The responses to the bytes that were sent on a connection. */
export type RawResult = { answers: RawAnswer[]; isClosed: boolean; text: string }

export type RawOptions = {
  /** Stops after so many complete responses, without informational ones. Default: when the connection closes. */
  answers?: number
  /** Stops when the text so far matches. */
  until?: RegExp
  /** Closes our side after all bytes are written. */
  fin?: boolean
}

/** Sends bytes on a new connection, and reads all responses. */
export async function raw(url: string, bytes: string | Buffer, options: RawOptions = {}): Promise<RawResult> {
  const connection = await openRaw(url)
  connection.write(bytes)
  if (options.fin) connection.socket.end()
  const result = await connection.read(options)
  connection.socket.destroy()
  return result
}

export type RawConnection = {
  socket: Socket
  /** Writes bytes, or a text in Latin-1. */
  write(bytes: string | Buffer): void
  /** Reads all responses since the connection was opened. */
  read(options?: RawOptions): Promise<RawResult>
}

export async function openRaw(url: string): Promise<RawConnection> {
  const { protocol, hostname, port } = new URL(url)
  const isSecured = protocol === 'https:'
  // Certificates are not verified here. Other tests do that.
  const socket = isSecured
    ? connectSecurely({ port: Number(port), host: hostname, rejectUnauthorized: false })
    : connect(Number(port), hostname)
  atEnd(() => socket.destroy())
  let text = ''
  let isClosed = false
  let wake = () => {}
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1')
    wake()
  })
  socket.on('error', () => {})
  socket.on('end', end)
  socket.on('close', end)
  const isOpen = isSecured ? 'secureConnect' : 'connect'
  await new Promise((resolve, reject) => socket.once(isOpen, resolve).once('error', reject))
  // A complete response is parsed once. Bytes after the last one are parsed again when more arrive.
  const whole: RawAnswer[] = []
  let wholeEnd = 0
  return {
    socket,
    write: (bytes) => void socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes),
    async read({ answers = Number.POSITIVE_INFINITY, until } = {}) {
      for (;;) {
        const read = readAnswers()
        const count = whole.filter(({ status }) => status >= 200).length
        if (isClosed || count >= answers || until?.test(text)) return { answers: read, isClosed, text }
        const woken = new Promise<void>((resolve) => {
          wake = resolve
        })
        await within(woken, `more comes than ${JSON.stringify(text.slice(-200))}`)
      }
    },
  }

  function readAnswers(): RawAnswer[] {
    for (;;) {
      const next = parseAnswer(text, wholeEnd, isClosed)
      if (!next) return [...whole]
      if (!next.answer.isWhole) return [...whole, next.answer]
      whole.push(next.answer)
      wholeEnd = next.end
    }
  }

  function end(): void {
    isClosed = true
    wake()
  }
}

/** Parses the response at `start` strictly. @returns undefined until the head is complete @throws if it is invalid */
function parseAnswer(text: string, start: number, isClosed: boolean): { answer: RawAnswer; end: number } | undefined {
  const headEnd = text.indexOf('\r\n\r\n', start)
  if (headEnd < 0) return undefined
  const [line = '', ...fields] = text.slice(start, headEnd).split('\r\n')
  const match = /^HTTP\/(1\.[01]) (\d{3})(?: |$)/.exec(line)
  if (!match) throw new Error(`not an answer: ${JSON.stringify(line.slice(0, 80))}`)
  const headers = new Map(fields.map((field) => splitField(field)))
  const status = Number(match[2])
  const { text: body, end, isWhole } = readBody(text, headEnd + 4, status, headers, isClosed)
  return { answer: { version: match[1]!, status, headers, body, isWhole }, end }
}

function splitField(field: string): [string, string] {
  const colon = field.indexOf(':')
  return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()]
}

function readBody(text: string, start: number, status: number, headers: Map<string, string>, isClosed: boolean) {
  if (status < 200 || status === 204) return { text: '', end: start, isWhole: true }
  const length = headers.get('content-length')
  if (length !== undefined) {
    const end = start + Number(length)
    return { text: text.slice(start, end), end: Math.min(end, text.length), isWhole: text.length >= end }
  }
  if (headers.get('transfer-encoding') !== 'chunked') {
    return { text: text.slice(start), end: text.length, isWhole: isClosed }
  }
  let body = ''
  for (let at = start; ; ) {
    const lineEnd = text.indexOf('\r\n', at)
    if (lineEnd < 0) return { text: body, end: text.length, isWhole: false }
    const size = Number.parseInt(text.slice(at, lineEnd), 16)
    if (size === 0) return { text: body, end: lineEnd + 4, isWhole: text.length >= lineEnd + 4 }
    body += text.slice(lineEnd + 2, lineEnd + 2 + size)
    at = lineEnd + 2 + size + 2
    if (at > text.length) return { text: body, end: text.length, isWhole: false }
  }
}
