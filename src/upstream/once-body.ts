/** From this size on, in bytes, what is kept for the time of a stream weighs more than the turns that letting go costs. */
export const onceBytesMin = 65_536

/**
 * The body of a request that is let go as soon as it has been handed to the socket. undici, behind a proxy, keeps what it is given
 * until the answer is over: given the bytes themselves, a hundred streams of 1 MB requests would keep 100 MB.
 */
export class OnceBody implements Iterable<Buffer> {
  #bytes: Buffer | undefined

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  *[Symbol.iterator](): Generator<Buffer, void, undefined> {
    const bytes = this.#bytes
    this.#bytes = undefined
    if (bytes) yield bytes
  }
}
