import { channel } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import type { Upstream } from '../config/config.ts'
import { createDial, type Dial } from './dial.ts'
import { type ConnectionHost, DirectConnection } from './direct-connection.ts'
import { DirectFlight } from './direct-flight.ts'
import { headersOf } from './request-headers.ts'
import type { Target } from './target.ts'
import { judgeDial, judgeTransport } from './transport-fault.ts'
import type { ConnectionTerms, Flight, TransportFault, UpstreamListener, UpstreamRequest, Way } from './upstreams.ts'

/**
 * The most that is read of a connection at once, and read ahead of an answer that is held back, in bytes. Node reads 64 KiB
 * by default, into memory that whoever waits for a stopped reader keeps (docs/decisions/0052-stopped-readers.md).
 */
const pieceBytesMax = 16_384
/** All connections without TLS read into it: what came is copied before the next one is read. */
const incoming = Buffer.allocUnsafeSlow(pieceBytesMax)
/** How often idle connections are looked through. */
const sweepMs = 1_000
/** Each connection that stands, for whoever watches in a test. */
const connected = channel('triwire:upstream:connected')

/** The way to an upstream that no proxy stands before: its connections, of which each has one request at a time. */
export class DirectWay implements Way, ConnectionHost {
  readonly upstream: Upstream
  readonly terms: ConnectionTerms
  readonly #url: URL
  readonly #isSecure: boolean
  readonly #openSocket: Dial
  readonly #open = new Set<DirectConnection>()
  /** By when their rest is over: whoever has rested longest serves first (ruling Y14). */
  #idle: DirectConnection[] = []
  /** Connections on their way. */
  readonly #dialing = new Set<Socket>()
  #sweeps: NodeJS.Timeout | undefined
  /** Requests that leave at the end of this turn. */
  #leaving = 0
  /** The last turn of the event loop in which requests left; when that was, and the one before. Between them everything was read. */
  #turn = 0
  #turnMs = Number.NEGATIVE_INFINITY
  #readToMs = Number.NEGATIVE_INFINITY
  #isRetired = false
  #isClosed = false
  readonly #ended = Promise.withResolvers<void>()

  /** Opens nothing yet. */
  constructor(upstream: Upstream, terms: ConnectionTerms) {
    this.upstream = upstream
    this.terms = terms
    this.#url = new URL(upstream.baseUrl)
    this.#isSecure = this.#url.protocol === 'https:'
    this.#openSocket = createDial(this.#url, upstream.ca)
  }

  send(target: Target, request: UpstreamRequest, listener: UpstreamListener): Flight {
    const lines = linesOf(headersOf(target, request))
    const flight = new DirectFlight(listener)
    if (lines === undefined) {
      const error = new Error('a header has a character that none may have')
      process.nextTick(() => flight.fail(judgeTransport(error)))
      return flight
    }
    const connection = this.upstream.reuses ? 'keep-alive' : 'close'
    const head = `POST ${target.path} HTTP/1.1\r\nhost: ${this.#url.host}\r\nconnection: ${connection}\r\n${lines}\r\n`
    this.#leaving++
    leaveLater({ way: this, flight, head, body: request.body, isFresh: request.isFresh === true, waits: true })
    return flight
  }

  /** Its turn has come. A connection that could not even be begun is one request's fault, and no other's. */
  leave(departure: Departure): void {
    const { flight, head, body, isFresh, waits } = departure
    this.#leaving--
    if (this.#turn !== turns) [this.#turn, this.#readToMs, this.#turnMs] = [turns, this.#turnMs, this.terms.clockMs()]
    try {
      if (this.#isClosed) throw cut()
      const idle = flight.isOver || isFresh ? undefined : this.#takeIdle()
      if (idle) idle.fly(flight, head, body)
      // One whose rest is over, but which may have something unread: it is waited for, once.
      else if (!isFresh && waits && this.#hasRested(this.#turnMs)) {
        this.#leaving++
        leaveLater({ ...departure, waits: false })
      } else if (!flight.isOver) this.#dial(flight, head, body)
    } catch (error) {
      flight.fail(judgeTransport(error as Error))
    }
    this.#settle()
  }

  async retire(): Promise<void> {
    this.#isRetired = true
    this.dropIdle()
    this.#settle()
    await this.#ended.promise
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const retired = this.retire()
    for (const connection of this.#open) connection.destroy()
    // Whoever waits for it hears of that.
    for (const socket of this.#dialing) socket.destroy(cut())
    await retired
  }

  giveBack(connection: DirectConnection): void {
    if (this.#isRetired || !this.upstream.reuses) connection.destroy()
    else {
      insertByRest(this.#idle, connection)
      this.#sweeps ??= setInterval(() => this.#sweep(), sweepMs).unref()
    }
  }

  forget(connection: DirectConnection): void {
    this.#open.delete(connection)
    const at = this.#idle.indexOf(connection)
    if (at >= 0) this.#idle.splice(at, 1)
    this.#settle()
  }

  dropIdle(): void {
    const dropped = this.#idle
    this.#idle = []
    for (const idle of dropped) idle.destroy()
  }

  #takeIdle(): DirectConnection | undefined {
    while (this.#hasRested(this.#readToMs)) {
      const idle = this.#idle.shift()!
      if (idle.isUsable) return idle
      idle.destroy()
    }
    return undefined
  }

  #hasRested(byMs: number): boolean {
    return this.#idle.length > 0 && this.#idle[0]!.restedAtMs <= byMs
  }

  #dial(flight: DirectFlight, head: string, body: Buffer): void {
    const dial = this.#connect((error, connection) => {
      clearTimeout(late)
      this.#dialing.delete(dial)
      if (connection === undefined) flight.fail(this.#judge(error!))
      // Given up, or the way with it, before it stood.
      else if (flight.isOver || this.#isClosed) {
        flight.fail(judgeTransport(cut()))
        connection.destroy()
      } else connection.fly(flight, head, body)
      this.#settle()
    })
    const late = setTimeout(() => dial.destroy(tooLate()), this.terms.connectMs)
    this.#dialing.add(dial)
    // Whoever gives up gives up the body with it, and does not wait until the connection stands or its time is over.
    flight.connection = {
      isOpen: false,
      isSent: false,
      pause() {},
      resume() {},
      destroy: () => void dial.destroy(cut()),
    }
  }

  /** Of a connection that did not come about. */
  #judge(error: Error): TransportFault {
    return this.#isClosed ? judgeTransport(error) : judgeDial(error, this.#isSecure)
  }

  /** Calls back in a later turn. @returns the socket */
  #connect(callback: (error: Error | undefined, connection?: DirectConnection) => void): Socket {
    const intake = new Intake()
    const socket = this.#openSocket(intake.options, (error) => {
      if (error) {
        callback(error)
        return
      }
      if (connected.hasSubscribers) connected.publish({ socket })
      const connection = new DirectConnection(socket, this)
      intake.connection = connection
      if (this.#isSecure) socket.on('data', (bytes: Buffer) => connection.take(bytes, false))
      this.#open.add(connection)
      callback(undefined, connection)
    })
    return socket
  }

  #sweep(): void {
    for (const idle of [...this.#idle]) if (!idle.isUsable) idle.destroy()
    if (this.#idle.length > 0) return
    clearInterval(this.#sweeps)
    this.#sweeps = undefined
  }

  #settle(): void {
    if (!this.#isRetired || this.#open.size > 0 || this.#dialing.size > 0 || this.#leaving > 0) return
    clearInterval(this.#sweeps)
    this.#ended.resolve()
  }
}

type Departure = { way: DirectWay; flight: DirectFlight; head: string; body: Buffer; isFresh: boolean; waits: boolean }

let departures: Departure[] = []
/** Turns of the event loop in which requests left. */
let turns = 0

/**
 * What is sent in one turn of the event loop leaves behind its other work, in one go: each write wakes whoever reads, and one by
 * one, with what a request takes between them, that is a third of what it costs to send them.
 */
function leaveLater(departure: Departure): void {
  if (departures.push(departure) === 1) setImmediate(leaveAll)
}

function leaveAll(): void {
  const leaving = departures
  departures = []
  turns++
  for (const departure of leaving) departure.way.leave(departure)
}

/** Keeps the list sorted by the end of rest, equal ones as they came. Nearly always it is the last. */
function insertByRest(list: DirectConnection[], connection: DirectConnection): void {
  let [low, high] = [0, list.length]
  while (low < high) {
    const middle = high === list.length ? high - 1 : (low + high) >>> 1
    if (list[middle]!.restedAtMs <= connection.restedAtMs) low = middle + 1
    else high = middle
  }
  list.splice(low, 0, connection)
}

function tooLate(): Error {
  return Object.assign(new Error('it took too long to connect'), { code: 'ETIMEDOUT' })
}

function cut(): Error {
  return new Error('its connections were closed')
}

/** How a connection without TLS is read. It outlives the request that the connection is opened for, and knows nothing of it. */
class Intake {
  /** Before it stands nothing is read. */
  connection: DirectConnection | undefined

  get options() {
    const callback = (bytes: number) => {
      this.connection!.take(incoming.subarray(0, bytes), true)
      return true
    }
    return { highWaterMark: pieceBytesMax, onread: { buffer: incoming, callback } }
  }
}

/** No value may have a line end, and none that becomes one when it is written in Latin-1. @returns undefined where one has */
function linesOf(headers: readonly string[]): string | undefined {
  let lines = ''
  for (let i = 0; i < headers.length; i += 2) {
    const value = headers[i + 1]!
    if (!/^[\t -~\x80-\xff]*$/.test(value)) return undefined
    lines += `${headers[i]}: ${value}\r\n`
  }
  return lines
}
