import type { AddressInfo, Server } from 'node:net'
import type { Address } from '../config/config.ts'

/**
 * Connections that wait to be accepted; the system has a limit of its own (on Linux `net.core.somaxconn`, 4,096 by default).
 * Beyond it a connection is dropped silently, and its client tries again after one second, then three. In each turn of the
 * event loop one connection is accepted (libuv, pull request 3696). Under a flood that leaves time for the accepted ones.
 */
const backlog = 4_096

/** @param isShared by all workers of the process that started this one, where one did. @throws what the system says */
export function listen(server: Server, { host, port }: Address, { isShared = false } = {}): Promise<Address> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, host, backlog, exclusive: !isShared }, () => {
      server.off('error', reject)
      resolve({ host, port: (server.address() as AddressInfo).port })
    })
  })
}
