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
