import { readFileSync, readlinkSync } from 'node:fs'
import type { AddressInfo, Server } from 'node:net'
import { hostname } from 'node:os'
import type { Address } from '../config/config.ts'

/**
 * The most connections that wait to be accepted. The system also has a limit (on Linux `net.core.somaxconn`, 4,096 by
 * default). It drops further connections silently, and their clients try again after one second, then three.
 *
 * One connection is accepted in each turn of the event loop (libuv, pull request 3696). So a flood leaves time for the
 * accepted connections.
 */
const backlog = 4_096

/**
 * Starts listening.
 * @param isShared whether all workers of the parent process share the port
 * @returns the address with the actual port
 * @throws the system's error
 */
export function listen(server: Server, { host, port }: Address, { isShared = false } = {}): Promise<Address> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, host, backlog, exclusive: true, reusePort: isShared }, () => {
      server.off('error', reject)
      boundUnsent(server)
      resolve({ host, port: (server.address() as AddressInfo).port })
    })
  })
}

/** The option TCP_NOTSENT_LOWAT and its level on Linux (tcp(7), include/uapi/linux/tcp.h). */
const [tcpLevel, notSentLowWater] = [6, 25]

/**
 * The most bytes of an answer that wait in the operating system for a slow client. By default the system accepts up to
 * 4 MB before the gateway notices that a client does not read (docs/decisions/0052-stopped-readers.md). Bytes that are
 * already sent do not count, so distant clients are as fast as without the limit.
 */
const unsentBytesMax = 16_384

/**
 * Sets the limit `unsentBytesMax` for all connections of a listening server. This needs Linux and `node:ffi`, which
 * Node 26 has. Elsewhere this function does nothing. The sysctl `net.ipv4.tcp_notsent_lowat` has the same effect.
 */
function boundUnsent(server: Server): void {
  const { _handle: handle } = server as unknown as { _handle?: { fd?: number } | null }
  if (process.platform !== 'linux' || handle?.fd === undefined || handle.fd < 0) return
  const { emitWarning } = process
  // Hides Node's warning that `node:ffi` is experimental. If Node drops `node:ffi`, only the limit for clients is lost.
  process.emitWarning = () => {}
  try {
    const ffi = process.getBuiltinModule('node:ffi')
    const definition = { arguments: ['i32', 'i32', 'i32', 'buffer', 'u32'], return: 'i32' } as const
    using library = ffi.dlopen(null, { setsockopt: definition })
    const value = new Uint8Array(Int32Array.of(unsentBytesMax).buffer)
    library.functions.setsockopt(handle.fd, tcpLevel, notSentLowWater, value, value.length)
  } catch {
    // This Node has no `node:ffi`, or the process may not use it. Then there is no limit.
  } finally {
    process.emitWarning = emitWarning
  }
}

/**
 * Returns a name of this process's loopback interface. Processes that get the same name reach each other at 127.0.0.1.
 * On Linux, each container has its own interface (network_namespaces(7)). Other systems have one interface per host.
 */
export function nameLoopback(): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return `${boot} ${readlinkSync('/proc/self/ns/net')}`
  } catch {
    return hostname()
  }
}
