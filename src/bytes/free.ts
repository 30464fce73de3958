/** Smaller ones are not worth the call, in bytes; most of those share a pool anyway. */
const freedMin = 16_384

/**
 * Gives back the memory of a buffer that nobody will look at again; it is empty afterwards. The collector counts what buffers hold
 * and goes through the whole heap for every few dozen megabytes of them: a request of 1 MB made three of that, and two thirds of
 * what it cost was collecting. A buffer that shares its memory with others is left alone.
 */
export function free({ buffer, byteLength }: Buffer): void {
  if (byteLength >= freedMin && buffer.byteLength === byteLength && buffer instanceof ArrayBuffer) buffer.transfer(0)
}
