import { readFileSync, readlinkSync } from 'node:fs'
import type { AddressInfo, Server } from 'node:net'
import { hostname } from 'node:os'
import type { Address } from '../config/config.ts'

/**
 * The most connections that wait to be accepted; the system has a limit of its own (on Linux `net.core.somaxconn`, 4,096 by
 * default). Further connections are dropped silently, and their clients try again after one second, then three. One
 * connection is accepted in each turn of the event loop (libuv, pull request 3696). During a flood that leaves time for the
 * accepted ones.
 */
const backlog = 4_096

/** @param isShared whether all workers of the parent process share the port. @throws the system's error */
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
function boundUnsent(server: Server): void {
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

/**
 * Names the loopback interface of this process: two processes with one name reach each other at 127.0.0.1. Containers of one
 * machine have network namespaces of their own (Linux, network_namespaces(7)). Other systems have one interface for each host.
 */
export function nameLoopback(): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return `${boot} ${readlinkSync('/proc/self/ns/net')}`
  } catch {
    return hostname()
  }
}
