import type { Server } from 'node:net'

/** The option TCP_NOTSENT_LOWAT and its level in Linux (tcp(7), include/uapi/linux/tcp.h). */
const [tcpLevel, notSentLowWater] = [6, 25]

/**
 * Bytes that the system keeps of an answer for a client whose window is full. Otherwise it takes up to 4 MB, on loopback within a
 * second, before anybody notices that the client does not read (docs/decisions/0052-stopped-readers.md). Bytes that are on
 * their way are not bounded, so a long way is as fast as before.
 */
const unsentBytesMax = 16_384

/**
 * Bounds what the system takes for a client that does not read, on each connection that a listening server accepts. Needs Linux and
 * `node:ffi`, which Node 26 has. Elsewhere nothing happens: the sysctl `net.ipv4.tcp_notsent_lowat` does the same.
 */
export function boundUnsent(server: Server): void {
  const { _handle: handle } = server as unknown as { _handle?: { fd?: number } | null }
  if (process.platform !== 'linux' || handle?.fd === undefined || handle.fd < 0) return
  const { emitWarning } = process
  // Node says that `node:ffi` is an experiment. Nothing depends on it here.
  process.emitWarning = () => {}
  try {
    const ffi = process.getBuiltinModule('node:ffi')
    const definition = { arguments: ['i32', 'i32', 'i32', 'buffer', 'u32'], return: 'i32' } as const
    using library = ffi.dlopen(null, { setsockopt: definition })
    const value = new Uint8Array(Int32Array.of(unsentBytesMax).buffer)
    library.functions.setsockopt(handle.fd, tcpLevel, notSentLowWater, value, value.length)
  } catch {
    // This Node has no `node:ffi`, or may not use it.
  } finally {
    process.emitWarning = emitWarning
  }
}
