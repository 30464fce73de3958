import type { ClientWire } from '../catalog/wire-names.ts'
import type { BodyShare } from './fairness/places.ts'

/**
 * A client's request and its answer, in the form that the walks (the ways to handle a request) use. The walks know no
 * socket and no HTTP module. `http/` makes one such object per request. The answer is either one `reply`, or `begin`,
 * any number of `write`s, and `end`.
 */
export interface Call {
  readonly requestId: string
  readonly wire: ClientWire
  /** The peer's address, or the address that a trusted proxy reports (ruling R4). */
  readonly ip: string
  /** Whether the client has left. Bytes written after that are lost. */
  readonly isGone: boolean
  /** The value of a request header, by its lower-case name. Repeated headers are joined by commas. */
  header(name: string): string | undefined
  /**
   * Reads the whole body, which counts against `share` while it arrives. The caller owns the bytes and may free them.
   * @throws GatewayError 429 if no memory is left, 413 if too large, 400 if encoded or framed wrongly, 408 if too slow
   * @throws ClientGone if the client leaves before the body is complete
   */
  readBody(share: BodyShare): Promise<Buffer>
  reply(status: number, contentType: string, body: string | Uint8Array): void
  /** Prepares the head of an event stream, status 200. It goes out with the first write. */
  begin(): void
  /**
   * Writes a piece of the stream. In `latin1` text each character is one byte, as received.
   * @returns false if the caller must wait for `clientReady` before the next write
   */
  write(text: string, encoding: BufferEncoding): boolean
  end(text: string, encoding: BufferEncoding): void
  /**
   * Whether the client has taken bytes since the last call of `isTaking`. At the first call: since the `write` that
   * returned false.
   */
  isTaking(): boolean
  /** Closes the connection without ending the answer. */
  destroy(): void
  /**
   * Receives what the client does while its answer is sent. The listener is removed at the end. docs/decisions/0012
   * says why the listener is an object.
   */
  listener: CallListener | undefined
}

/** Receives what the client does while it is answered. */
export interface CallListener {
  /** The client left before its answer was complete. Called once. */
  clientGone(): void
  /** The client had fallen behind and has caught up. */
  clientReady(): void
}

/** Thrown if the client leaves before its request is complete. No error is returned then. */
export class ClientGone extends Error {}
