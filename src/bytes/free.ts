/** The smallest buffer that is freed, in bytes. A smaller one is not worth the call, and usually shares a pool. */
const freedMin = 16_384

/**
 * Frees the memory of a buffer that is no longer used. The buffer is empty afterwards. A buffer that shares its memory
 * with others is left alone. V8 counts the memory of buffers, and collects the whole heap for every few dozen
 * megabytes. A request of 1 MB made three buffers, and garbage collection took two thirds of its cost.
 */
export function free({ buffer, byteLength }: Buffer): void {
  if (byteLength >= freedMin && buffer.byteLength === byteLength && buffer instanceof ArrayBuffer) buffer.transfer(0)
}
