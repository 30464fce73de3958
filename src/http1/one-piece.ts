/** Up to this size, in bytes, copying a body after its head is cheaper than two writes. */
const bytesMax = 16_384

/** @returns head and body, to be written as `latin1`; undefined if the body is too large for that */
export function inOnePiece(head: string, body: Uint8Array): string | undefined {
  if (body.length > bytesMax) return undefined
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(body.buffer, body.byteOffset, body.length)
  return head + bytes.toString('latin1', 0, bytes.length)
}
