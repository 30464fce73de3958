import type { Socket } from 'node:net'

const statusAt = 'HTTP/1.1 '.length
const one = 0x31
const two = 0x32
const zero = 0x30
const lineFeed = 0x0a
const carriageReturn = 0x0d

/**
 * undici ends a connection that says `100 Continue` to a request which did not ask for it, though any server may
 * (RFC 9110 15.2). A reader of its bytes makes it a `102`, which undici passes on as it does every other interim
 * response, so that all of them count alike (faults F-U28). @returns what is to be called when a request goes out
 */
export function takeContinue(socket: Socket): () => void {
  const read = socket.read.bind(socket)
  /** Within the first line of a head: how many bytes of it have come; -1 behind that line; undefined: no head is awaited. */
  let at: number | undefined
  /** Of a head's end: line feeds in a row. */
  let feeds = 0
  let isHundred = false
  socket.read = (size?: number) => {
    const chunk = read(size)
    if (at !== undefined && Buffer.isBuffer(chunk)) scan(chunk)
    return chunk
  }
  return () => {
    at = 0
    feeds = 0
  }

  function scan(chunk: Buffer): void {
    for (let i = 0; i < chunk.length && at !== undefined; i++) {
      const byte = chunk[i]!
      if (at < 0) findEnd(byte)
      else if (at < statusAt) at++
      else if (at === statusAt && byte !== one) at = undefined
      else if (at < statusAt + 2) {
        isHundred = at === statusAt || byte === zero
        at++
      } else {
        if (isHundred && byte === zero) chunk[i] = two
        at = -1
      }
    }
  }

  function findEnd(byte: number): void {
    if (byte === lineFeed) feeds++
    else if (byte !== carriageReturn) feeds = 0
    if (feeds < 2) return
    at = 0
    feeds = 0
  }
}
