import { type LookupAddress, lookup } from 'node:dns'
import { connect, isIP, type LookupFunction, type Socket } from 'node:net'
import type { EgressRoute } from '../config/egress.ts'
import { type ResponseHead, readResponseHead } from '../http1/heads.ts'
import { informationalMax } from './target.ts'

/** Receives what a connection reads, from the moment it is ready for a request. */
export interface Intake {
  /**
   * Takes bytes.
   * @param isShared whether the buffer is overwritten after this call. If so, bytes to keep must be copied
   */
  take(bytes: Buffer, isShared: boolean): void
}

/** A connection that is being opened. `destroy` gives it up; `settle` then gets the error. */
export type Dialing = { destroy(error: Error): void }

/** Called once, in a later turn of the event loop, with a socket that is ready for a request, or with an error. */
type SettleDial = (error: Error | undefined, socket?: Socket) => void

/** Opens a connection. There is no deadline, so the caller must destroy a `Dialing` that takes too long. */
export type Dial = (intake: Intake, settle: SettleDial) => Dialing

type Trust = {
  /** Certificates in PEM that are trusted instead of the usual ones, for the origin and for its proxy. */
  ca?: string | undefined
  /** Whether only the certificate `ca` itself is accepted, whatever its name and its issuer. */
  isPinned?: boolean
}

/** The proxy and the trusted certificates for connections to an origin. */
export type DialRoute = Trust & {
  /** `http:` or `https:`, with user and password if the proxy wants them. */
  proxy?: URL | undefined
}

/** Returns a configured route as connections take it. */
export function openRoute({ proxy, ca }: EgressRoute): DialRoute {
  return { proxy: proxy && new URL(proxy.url.reveal()), ca }
}

/** The error if the proxy did not open a tunnel, or itself answered a request that it should have passed on. */
export class ProxyRefusal extends Error {
  /** The status of the proxy's answer; undefined if the answer was not HTTP/1.1. */
  readonly status: number | undefined

  constructor(status: number | undefined) {
    super(status === undefined ? 'the proxy does not answer in HTTP/1.1' : `the proxy answers ${status}`)
    this.status = status
  }
}

/** After this many ms without traffic, TCP keep-alive checks whether the peer is still there. */
const keepAliveMs = 60_000
/**
 * The most that is read from a connection in one piece, in bytes. A paused flight keeps one such piece in memory, read
 * in advance (docs/decisions/0052-stopped-readers.md). Node's default is 64 KiB.
 */
const pieceBytesMax = 16_384
/** All connections without TLS are read into this buffer. Each piece is copied before the next piece is read. */
const incoming = Buffer.allocUnsafeSlow(pieceBytesMax)
/** A proxy's answer to CONNECT is a few lines. */
const connectHeadBytesMax = 16_384

/**
 * Creates the function that connects to an origin: directly, through a tunnel of a proxy, or to a proxy that forwards.
 * A proxy makes tunnels for `https` (CONNECT, RFC 9110 9.3.6) and forwards `http` (`isForwarded`), because many proxies
 * allow tunnels to port 443 only.
 */
export function createDial(origin: URL, { proxy, ...trust }: DialRoute): Dial {
  if (proxy === undefined) return createHop(origin, trust)
  return isForwarded(origin, proxy)
    ? createHop(proxy, trust)
    : createTunnel(createHop(proxy, trust), createHop(origin, trust), connectHead(origin, proxy))
}

/** Whether requests go to the proxy itself, not through a tunnel. They have absolute targets and proxy credentials. */
export function isForwarded(origin: URL, proxy: URL | undefined): boolean {
  return proxy !== undefined && origin.protocol === 'http:'
}

/** Returns the header line with the proxy's credentials, with its line end (RFC 7617); `''` if the proxy needs none. */
export function proxyCredentials({ username, password }: URL): string {
  if (username === '' && password === '') return ''
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return `proxy-authorization: Basic ${Buffer.from(pair).toString('base64')}\r\n`
}

function connectHead({ hostname, port }: URL, proxy: URL): string {
  const place = `${hostname}:${port || 443}`
  return `CONNECT ${place} HTTP/1.1\r\nhost: ${place}\r\n${proxyCredentials(proxy)}\r\n`
}

/** Opens a connection to a host, inside the socket `through` if given. Received bytes go to `intake` if given. */
type Hop = (intake: Intake | undefined, settle: SettleDial, through?: Socket) => Socket

function createHop({ protocol, hostname, port }: URL, trust: Trust): Hop {
  // An IPv6 address has brackets in a URL only.
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  return protocol === 'https:' ? secureHop(host, Number(port || 443), trust) : plainHop(host, Number(port || 80))
}

function plainHop(host: string, port: number): Hop {
  return (intake, settle) => {
    const callback = (bytes: number) => {
      intake!.take(incoming.subarray(0, bytes), true)
      return true
    }
    const reading = intake && { highWaterMark: pieceBytesMax, onread: { buffer: incoming, callback } }
    return watchDial(connect({ host, port, lookup: lookupOnce, ...reading }), 'connect', settle)
  }
}

/** Creates a TLS hop that offers only HTTP/1.1. It resumes the last session, which makes the handshake shorter. */
function secureHop(host: string, port: number, { ca, isPinned }: Trust): Hop {
  const tls = process.getBuiltinModule('node:tls')
  const options = {
    highWaterMark: pieceBytesMax,
    ALPNProtocols: ['http/1.1'],
    // An IP address is not a server name (RFC 6066 3).
    servername: isIP(host) ? '' : host,
    // Certificates are checked even if an environment variable turns this off. So a key goes to no other server (faults
    // F-U4).
    rejectUnauthorized: true,
    ...(ca !== undefined && { ca }),
    ...(isPinned && { allowPartialTrustChain: true, checkServerIdentity: () => undefined }),
  }
  let session: Buffer | undefined
  return (intake, settle, through) => {
    const place = through ? { socket: through } : { host, port, lookup: lookupOnce }
    const socket = tls.connect({ ...options, ...place, ...(session && { session }) })
    socket.on('session', (fresh) => {
      session = fresh
    })
    return watchDial(socket, 'secureConnect', settle, intake)
  }
}

/**
 * Calls `settle` only once. Afterwards the socket does not refer to the caller, which holds a request's body.
 * @param intake receives what the socket reads; undefined if the socket has its intake already
 */
function watchDial(socket: Socket, ready: 'connect' | 'secureConnect', settle: SettleDial, intake?: Intake): Socket {
  let waiting: SettleDial | undefined = settle
  const settleOnce: SettleDial = (...result) => {
    const settled = waiting
    waiting = undefined
    settled?.(...result)
  }
  return socket
    .setKeepAlive(true, keepAliveMs)
    .setNoDelay(true)
    .once(ready, () => {
      settleOnce(undefined, socket)
      if (intake) readInto(socket, intake)
    })
    .on('error', settleOnce)
    .once('close', () => settleOnce(closedEarly()))
}

function readInto(socket: Socket, intake: Intake): void {
  socket.on('data', (bytes: Buffer) => intake.take(bytes, false))
}

function createTunnel(toProxy: Hop, toOrigin: Hop, head: string): Dial {
  return (intake, settle) => {
    let socket = toProxy(undefined, (error) => {
      if (error) settle(error)
      else
        askTunnel(socket, head, (refused) => {
          if (refused) settle(refused)
          else socket = toOrigin(intake, settle, socket)
        })
    })
    return { destroy: (error) => void socket.destroy(error) }
  }
}

/** Asks for a tunnel on a connection to a proxy. If the proxy makes no tunnel, the connection is destroyed. */
function askTunnel(socket: Socket, head: string, settle: (error: Error | undefined) => void): void {
  let text = ''
  let informational = 0
  let failure: Error | undefined
  const note = (error: Error) => {
    failure = error
  }
  const close = () => settle(failure ?? closedEarly())
  const end = () => void socket.destroy()
  socket.on('data', take).on('error', note).on('end', end).once('close', close).write(head, 'latin1')

  function take(bytes: Buffer): void {
    text += bytes.toString('latin1')
    while (!socket.destroyed) {
      const length = text.indexOf('\r\n\r\n')
      if (text.length > connectHeadBytesMax || !startsAsHttp(text)) refuse(undefined)
      if (length < 0 || socket.destroyed) return
      const answer = readResponseHead(text.slice(0, length + 2))
      text = text.slice(length + 4)
      if (judge(answer)) return
    }
  }

  /**
   * @returns whether the tunnel is open. It is not open if bytes follow the head, because in TLS the client speaks
   *   first.
   */
  function judge(answer: ResponseHead | undefined): boolean {
    const { status = 0 } = answer ?? {}
    if (status >= 200 && status < 300 && text === '') {
      // All these listeners are removed, because they refer to the caller, which holds a request's body.
      socket.off('data', take).off('error', note).off('end', end).off('close', close).pause()
      settle(undefined)
      return true
    }
    const isInterim = status >= 100 && status < 200 && status !== 101
    if (!isInterim || ++informational > informationalMax) refuse(status >= 300 ? status : undefined)
    return false
  }

  function refuse(status: number | undefined): void {
    socket.destroy(new ProxyRefusal(status))
  }
}

function startsAsHttp(text: string): boolean {
  return text.startsWith('HTTP/1.') || 'HTTP/1.'.startsWith(text)
}

function closedEarly(): Error {
  return Object.assign(new Error('the connection was closed before it was ready'), { code: 'ECONNRESET' })
}

type LookupCallback = Parameters<LookupFunction>[2]

const underWay = new Map<string, LookupCallback[]>()

/**
 * Looks a name up as the system does, with one lookup at a time for each name. Lookups occupy threads and cannot be
 * cancelled. By default Node has two threads for lookups; our program has eight. Without the limit, one upstream with
 * silent name servers would hold up all other upstreams (faults F-U3).
 */
export const lookupOnce: LookupFunction = (hostname, options, tell) => {
  const { family, hints, all } = options
  const key = `${hostname} ${family} ${hints} ${all}`
  const waiting = underWay.get(key)
  if (waiting) {
    waiting.push(tell)
    return
  }
  const told = [tell]
  underWay.set(key, told)
  lookup(hostname, options, (error, address: string | LookupAddress[], family?: number) => {
    underWay.delete(key)
    for (const one of told) one(error, address, family)
  })
}
