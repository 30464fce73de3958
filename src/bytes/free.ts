/** Smaller ones are not worth the call, in bytes; most of those share a pool anyway. */
const freedMin = 16_384

/**
 * Gives back the memory of a buffer that is not used any more; it is empty afterwards. The collector counts the memory of buffers
 * and goes through the whole heap for every few dozen megabytes of it. A request of 1 MB made three of them, and two thirds of
 * its cost was collecting. A buffer that shares its memory with others is left alone.
 */
export function free({ buffer, byteLength }: Buffer): void {
  if (byteLength >= freedMin && buffer.byteLength === byteLength && buffer instanceof ArrayBuffer) buffer.transfer(0)
}
