import { readFileSync, readlinkSync } from 'node:fs'
import type { AddressInfo, Server } from 'node:net'
import { hostname } from 'node:os'
import type { Address } from '../config/config.ts'
import { boundUnsent } from './unsent.ts'

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
