import { channel } from 'node:diagnostics_channel'
import type { Upstream } from '../config/config.ts'
import {
  createDial,
  type Dial,
  type Dialing,
  type DialRoute,
  type Intake,
  isForwarded,
  openRoute,
  proxyCredentials,
} from './dial.ts'
import {
  type ConnectionLimits,
  type ConnectionTerms,
  type ConnectionWatch,
  type Flight,
  headersOf,
  pathFor,
  type UpstreamListener,
  type Upstreams,
} from './target.ts'
import { judgeDial, judgeTransport } from './transport-fault.ts'
import { Unpacking } from './unpacking.ts'
import { type ConnectionHost, WayConnection, WayFlight } from './way-connection.ts'

/** The time between two checks of the idle connections, in ms. */
const sweepMs = 1_000
/** Publishes each connection that is ready, for tests. */
const connected = channel('triwire:upstream:connected')

/** One origin, and how its connections are opened and used. */
type WayPlace = {
  name: string
  url: URL
  route: DialRoute
  /** Whether a connection serves more than one request (ruling Y14). */
  reuses: boolean
}

/** The parts of a request from which its bytes are written. */
type WayRequest = {
  method: string
  path: string
  /** All headers but `host`, `connection` and the proxy's credentials. Each value follows its name. */
  headers: readonly string[]
  body: Buffer
  /** Whether the request must be sent on a new connection (faults F-U6). */
  isFresh: boolean
}

/** The connections to one origin, directly or through a proxy. Each carries one request at a time. */
export class HttpWay implements ConnectionHost {
  readonly name: string
  readonly host: string
  readonly terms: ConnectionTerms
  readonly #place: WayPlace
  readonly isForwarded: boolean
  /** The text before the path in a request line: the origin if a proxy forwards requests, otherwise ''. */
  readonly #beforePath: string
  /** The lines that are the same in the head of every request, with their line ends. */
  readonly #fixedLines: string
  readonly #openSocket: Dial
  readonly #open = new Set<WayConnection>()
  /** Idle connections, sorted by the end of their pause after an answer (Y14). The first one is used first. */
  #idle: WayConnection[] = []
  readonly #dialing = new Set<Dialing>()
  #sweeps: NodeJS.Timeout | undefined
  /** The number of requests that are sent at the end of this turn of the event loop. */
  #leaving = 0
  /**
   * `#turn` and `#turnMs` are the number and time of the newest turn of the event loop that sent requests of this way.
   * `#readToMs` is the time of the previous turn that sent some. All bytes that had arrived by then have been read.
   */
  #turn = 0
  #turnMs = Number.NEGATIVE_INFINITY
  #readToMs = Number.NEGATIVE_INFINITY
  #isRetired = false
  #isClosed = false
  readonly #ended = Promise.withResolvers<void>()

  constructor(place: WayPlace, terms: ConnectionTerms) {
    const { name, url, route, reuses } = place
    const { proxy } = route
    this.#place = place
    this.name = name
    this.host = url.host
    this.terms = terms
    this.isForwarded = isForwarded(url, proxy)
    this.#beforePath = this.isForwarded ? url.origin : ''
    const credentials = this.isForwarded ? proxyCredentials(proxy!) : ''
    this.#fixedLines = `host: ${url.host}\r\nconnection: ${reuses ? 'keep-alive' : 'close'}\r\n${credentials}`
    this.#openSocket = createDial(url, route)
  }

  /** Sends a request at the end of this turn of the event loop. */
  send({ method, path, headers, body, isFresh }: WayRequest, listener: UpstreamListener): Flight {
    const lines = linesOf(headers)
    const flight = new WayFlight(listener)
    if (lines === undefined) {
      const error = new Error('a header has a character that is not allowed')
      process.nextTick(() => flight.fail(judgeTransport(error), error))
      return flight
    }
    const head = `${method} ${this.#beforePath}${path} HTTP/1.1\r\n${this.#fixedLines}${lines}\r\n`
    this.#leaving++
    leaveLater({ way: this, flight, head, body, isFresh, waits: true })
    return flight
  }

  /** Sends a request that was queued. If its connection cannot even be started, only this request fails. */
  leave(departure: Departure): void {
    const { flight, head, body, isFresh, waits } = departure
    this.#leaving--
    if (this.#turn !== turns) [this.#turn, this.#readToMs, this.#turnMs] = [turns, this.#turnMs, this.terms.clockMs()]
    try {
      if (this.#isClosed) throw cut()
      const idle = flight.isOver || isFresh ? undefined : this.#takeIdle()
      if (idle) idle.fly(flight, head, body)
      // An idle connection may still have unread bytes, so it is not used at once. The request waits one turn, but only
      // once.
      else if (!isFresh && waits && this.#hasRested(this.#turnMs)) {
        this.#leaving++
        leaveLater({ ...departure, waits: false })
      } else if (!flight.isOver) this.#dial(flight, head, body)
    } catch (error) {
      flight.fail(judgeTransport(error as Error), error as Error)
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
    // The requests that wait for these connections fail.
    for (const dialing of this.#dialing) dialing.destroy(cut())
    await retired
  }

  giveBack(connection: WayConnection): void {
    if (this.#isRetired || !this.#place.reuses) connection.destroy()
    else {
      insertByRest(this.#idle, connection)
      this.#sweeps ??= setInterval(() => this.#sweep(), sweepMs).unref()
    }
  }

  forget(connection: WayConnection): void {
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

  #takeIdle(): WayConnection | undefined {
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

  #dial(flight: WayFlight, head: string, body: Buffer): void {
    const dial = this.#connect((error, connection) => {
      clearTimeout(late)
      this.#dialing.delete(dial)
      if (connection === undefined) {
        const { url, route } = this.#place
        const isSecure = url.protocol === 'https:'
        const fault = this.#isClosed ? judgeTransport(error!) : judgeDial(error!, isSecure, route.proxy !== undefined)
        flight.fail(fault, error!)
      }
      // The request was given up, or all connections to the origin were closed, before this connection was ready.
      else if (flight.isOver || this.#isClosed) {
        const error = cut()
        flight.fail(judgeTransport(error), error)
        connection.destroy()
      } else connection.fly(flight, head, body)
      this.#settle()
    })
    const late = setTimeout(() => dial.destroy(tooLate()), this.terms.connectMs)
    this.#dialing.add(dial)
    // If the request is given up, its socket is closed and its body is freed at once.
    flight.connection = {
      isOpen: false,
      isSent: false,
      pause() {},
      resume() {},
      destroy: () => void dial.destroy(cut()),
    }
  }

  /** Opens a connection. Calls back in a later turn of the event loop. */
  #connect(callback: (error: Error | undefined, connection?: WayConnection) => void): Dialing {
    const intake = new ConnectionIntake()
    return this.#openSocket(intake, (error, socket) => {
      if (socket === undefined) {
        callback(error)
        return
      }
      if (connected.hasSubscribers) connected.publish({ socket })
      const connection = new WayConnection(socket, this)
      intake.connection = connection
      this.#open.add(connection)
      callback(undefined, connection)
    })
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

type Departure = { way: HttpWay; flight: WayFlight; head: string; body: Buffer; isFresh: boolean; waits: boolean }

let departures: Departure[] = []
/** The number of turns of the event loop in which requests were sent. */
let turns = 0

/**
 * Queues a request. All requests of one turn of the event loop are sent together, after its other work. Each write
 * wakes the receiver. If there were other work between the writes, this would be a third of the cost of sending.
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

/**
 * Inserts a connection into the list, which is sorted by `restedAtMs` (the end of a pause). Connections with an equal
 * time stay before the new one. Nearly always the new one becomes the last in the list.
 */
function insertByRest(list: WayConnection[], connection: WayConnection): void {
  let [low, high] = [0, list.length]
  while (low < high) {
    const middle = high === list.length ? high - 1 : (low + high) >>> 1
    if (list[middle]!.restedAtMs <= connection.restedAtMs) low = middle + 1
    else high = middle
  }
  if (low === list.length) list.push(connection)
  else list.splice(low, 0, connection)
}

function tooLate(): Error {
  return Object.assign(new Error('it took too long to connect'), { code: 'ETIMEDOUT' })
}

function cut(): Error {
  return new Error('its connections were closed')
}

/** Passes on the bytes of a connection. This object outlives the request for which the connection was opened. */
class ConnectionIntake implements Intake {
  /** The connection is set before anything is read. */
  connection: WayConnection | undefined

  take(bytes: Buffer, isShared: boolean): void {
    this.connection!.take(bytes, isShared)
  }
}

/**
 * Formats headers as lines.
 * @returns undefined if a value has a control character except tab, or a character that Latin-1 lacks
 */
function linesOf(headers: readonly string[]): string | undefined {
  let lines = ''
  for (let i = 0; i < headers.length; i += 2) {
    const value = headers[i + 1]!
    if (!/^[\t -~\x80-\xff]*$/.test(value)) return undefined
    lines += `${headers[i]}: ${value}\r\n`
  }
  return lines
}

/**
 * Creates the connections of one configuration; none is opened yet. They use our own HTTP/1.1 client, directly or
 * through a proxy (docs/decisions/0059-own-client.md). Redirects are not followed. Compressed answers are decompressed
 * (ruling Y1). Deadlines are enforced by the listener of each request.
 * @param watch receives reports; its `clockMs`, if given, replaces the clock of the process
 */
export function createUpstreams(
  config: ReadonlyMap<string, Upstream>,
  limits: ConnectionLimits,
  watch: Partial<ConnectionWatch> = {},
): Upstreams {
  const terms = { clockMs: () => performance.now(), reportBug() {}, onUnasked() {}, ...watch, ...limits }
  const ways = new Map<string, HttpWay>()
  for (const upstream of config.values()) {
    const { name, baseUrl, reuses } = upstream
    ways.set(name, new HttpWay({ name, url: new URL(baseUrl), route: openRoute(upstream), reuses }, terms))
  }
  return {
    send(target, request, listener) {
      const way = ways.get(target.upstream.name)
      if (way === undefined) throw new Error(`${target.upstream.name} is not an upstream of this configuration`)
      const { body, isFresh = false } = request
      const unpacking = new Unpacking(listener)
      const sent = { path: pathFor(target, request), headers: headersOf(target, request), body, isFresh }
      return unpacking.over(way.send({ method: 'POST', ...sent }, unpacking))
    },
    async retire() {
      // A connection that breaks while it retires counts as retired, so its error is ignored.
      await Promise.allSettled([...ways.values()].map((way) => way.retire()))
    },
    async close() {
      await Promise.all([...ways.values()].map((way) => way.close()))
    },
  }
}
