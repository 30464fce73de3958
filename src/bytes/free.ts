/** Smaller buffers are not worth the call, in bytes; most of them share a pool anyway. */
const freedMin = 16_384

/**
 * Frees the memory of a buffer that is not used any more; the buffer is empty afterwards. V8 counts the memory of buffers
 * and goes through the whole heap for every few dozen megabytes of it. A request of 1 MB made three buffers, and two thirds
 * of its cost was collecting. A buffer that shares its memory with others is left alone.
 */
export function free({ buffer, byteLength }: Buffer): void {
  if (byteLength >= freedMin && buffer.byteLength === byteLength && buffer instanceof ArrayBuffer) buffer.transfer(0)
}
