import { connect } from 'node:net'
import { createMessageReader } from './message.ts'

export type Load = {
  port: number
  request: Buffer
  connections: number
  /** Sent one after the other on each connection. */
  requestsEach: number
}

/** Puts load on a server over kept-alive connections. @throws at the first answer that is not 200. @returns its ms. */
export async function putLoad(load: Load): Promise<number> {
  const startedMs = performance.now()
  await Promise.all(Array.from({ length: load.connections }, () => runConnection(load)))
  return performance.now() - startedMs
}

function runConnection({ port, request, requestsEach }: Load): Promise<void> {
  return new Promise((resolve, reject) => {
    let left = requestsEach
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    const read = createMessageReader((head) => {
      if (!head.startsWith('HTTP/1.1 200')) {
        reject(new Error(`the server under test answered: ${head}`))
        socket.destroy()
      } else if (--left > 0) socket.write(request)
      else {
        socket.destroy()
        resolve()
      }
    })
    socket.on('connect', () => socket.write(request))
    socket.on('data', read)
    socket.on('error', reject)
    socket.on('close', () => reject(new Error(`the server under test closed a connection to port ${port}`)))
  })
}
