import type { WireName } from '../catalog/model.ts'
import type { BodyShare } from './fairness/bodies.ts'

/**
 * A client's request and its answer as the walks see them: no socket, no HTTP module. `http/` makes one per request.
 * The answer is either one `reply`, or `begin`, any number of `write`s, and `end`.
 */
export interface Call {
  readonly requestId: string
  readonly wire: WireName
  /** The peer's address, or what a trusted proxy says it is (ruling R4). */
  readonly ip: string
  /** True once the client has gone; nothing that is written reaches it any more. */
  readonly isGone: boolean
  /** Value of a request header by its lower-case name; repeated ones joined by a comma. */
  header(name: string): string | undefined
  /**
   * The whole body, counted while it is read, and taken from the share that the request has of all. The bytes are the caller's,
   * who may free them.
   * @throws GatewayError 429 where there is no room for it, 413, 400 for a content encoding or framing fault, 408 for a body that does not come.
   * @throws ClientGone when the client leaves before the body is whole.
   */
  readBody(share: BodyShare): Promise<Buffer>
  /** One whole answer. */
  reply(status: number, contentType: string, body: string | Uint8Array): void
  /** The head of an event stream, status 200. It goes out with the first write. */
  begin(): void
  /** A piece of the stream; `latin1` text is bytes as they came. False: wait for `clientReady` before more is asked for. */
  write(text: string, encoding: BufferEncoding): boolean
  end(text: string, encoding: BufferEncoding): void
  /** Where a `write` was false: whether the client has taken anything since then, or since this was last asked. */
  isTaking(): boolean
  /** Closes the connection without ending the answer. */
  destroy(): void
  /** Who hears of the client while its answer is under way. One object, and let go at the end: see docs/decisions/0012. */
  listener: CallListener | undefined
}

/** What a client does while it is answered. */
export interface CallListener {
  /** It has gone before its answer was whole. Told once. */
  clientGone(): void
  /** It had fallen behind and has caught up. */
  clientReady(): void
}

/** The client left before it had sent its request. Nobody is there to be told. */
export class ClientGone extends Error {}
