/** The same bytes in memory of their own. */
export function ownBytes(bytes: Uint8Array): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  copy.set(bytes)
  return copy
}

/** The same, but only if they are less than half of the memory that they are in. To keep them is to keep all of that memory. */
export function ownIfLittle(bytes: Buffer): Buffer {
  return bytes.length * 2 < bytes.buffer.byteLength ? ownBytes(bytes) : bytes
}
