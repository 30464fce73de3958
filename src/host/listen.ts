import type { AddressInfo, Server } from 'node:net'
import type { Address } from '../config/config.ts'

/**
 * Connections that wait to be accepted; the system has a limit of its own (on Linux `net.core.somaxconn`, 4,096 by default).
 * Beyond it one is dropped without a word, and its client tries again after one second, then three. One is accepted in each
 * turn of the event loop (libuv, pull request 3696), which under a flood is what leaves turns for those who are in.
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
