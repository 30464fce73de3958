/** Returns a copy of the bytes in memory of their own. */
export function ownBytes(bytes: Uint8Array): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  copy.set(bytes)
  return copy
}

/** Returns a copy of the bytes if they take less than half of their memory. Keeping them would keep all of that memory. */
export function ownIfLittle(bytes: Buffer): Buffer {
  return bytes.length * 2 < bytes.buffer.byteLength ? ownBytes(bytes) : bytes
}

/** Up to this size, in bytes, copying a body after its head is cheaper than two writes. */
const bytesMax = 16_384

/** @returns head and body, to be written as `latin1`; undefined if the body is too large for that */
export function inOnePiece(head: string, body: Uint8Array): string | undefined {
  if (body.length > bytesMax) return undefined
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(body.buffer, body.byteOffset, body.length)
  return head + bytes.toString('latin1', 0, bytes.length)
}
