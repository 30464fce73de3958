import { connect, isIP, type OnReadOpts, type Socket } from 'node:net'
import { lookupOnce } from './lookup.ts'

/** How a connection is read; with TLS there is no `onread`, and pieces come as `data`. */
export type ReadOptions = { highWaterMark: number; onread: OnReadOpts }

/**
 * Opens a connection, and tells of it once, in a later turn: when it is ready for a request, or why it never will be. Who is tired
 * of waiting destroys it with the error that he wants to hear of.
 */
export type Dial = (reading: ReadOptions, tell: (error: Error | undefined) => void) => Socket

/** Where nothing was heard for so long, Node asks whether the other end is still there, in ms. */
const keepAliveMs = 60_000

/** @param ca certificates to trust instead of the usual ones */
export function createDial({ protocol, hostname, port }: URL, ca: string | undefined): Dial {
  // An address of IPv6 stands in brackets in a URL, and nowhere else.
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  const dial =
    protocol === 'https:' ? dialSecurely(host, Number(port || 443), ca) : dialPlainly(host, Number(port || 80))
  return (reading, tell) => {
    const { socket, ready } = dial(reading)
    // Who was told is not kept for as long as the socket is: he holds a request's body.
    let waiting: typeof tell | undefined = tell
    const tellOnce = (error?: Error) => {
      const told = waiting
      waiting = undefined
      told?.(error)
    }
    return socket
      .setKeepAlive(true, keepAliveMs)
      .setNoDelay(true)
      .once(ready, () => tellOnce())
      .on('error', tellOnce)
  }
}

type DialedSocket = { socket: Socket; ready: 'connect' | 'secureConnect' }

function dialPlainly(host: string, port: number): (reading: ReadOptions) => DialedSocket {
  return (reading) => ({ socket: connect({ host, port, lookup: lookupOnce, ...reading }), ready: 'connect' })
}

/** Only HTTP/1.1 is offered. The last session that it was given is taken up again, which saves a handshake its half. */
function dialSecurely(host: string, port: number, ca: string | undefined): (reading: ReadOptions) => DialedSocket {
  const tls = process.getBuiltinModule('node:tls')
  let session: Buffer | undefined
  return ({ highWaterMark }) => {
    const socket = tls.connect({
      ...{ host, port, session, highWaterMark, lookup: lookupOnce, ALPNProtocols: ['http/1.1'] },
      // An address has no name that could be asked for.
      servername: isIP(host) ? '' : host,
      // Whatever the environment says: a key goes to nobody else (faults F-U4).
      rejectUnauthorized: true,
      ...(ca !== undefined && { ca }),
    })
    socket.on('session', (fresh) => {
      session = fresh
    })
    return { socket, ready: 'secureConnect' }
  }
}
