import { connect, type Socket } from 'node:net'
import { Worker } from 'node:worker_threads'
import { atEnd } from '../support/at-end.ts'

/**
 * A port at which connecting hangs, as it does behind a firewall that drops: who listens there accepts nobody, and its
 * queue is full. Linux answers what comes then with nothing at all.
 * @returns `hangUp`: nobody listens any more, so that who asks again, as Linux does within a second, is refused
 */
export async function deafPort(): Promise<{ port: number; hangUp(): Promise<unknown> }> {
  const worker = new Worker(
    `const { parentPort } = require('node:worker_threads')
     const server = require('node:net').createServer()
     server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
       parentPort.postMessage(server.address().port)
       Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
     })`,
    { eval: true },
  )
  atEnd(() => worker.terminate())
  const port = await new Promise<number>((resolve) => worker.once('message', resolve))
  const fillers: Socket[] = []
  atEnd(() => {
    for (const socket of fillers) socket.destroy()
  })
  // The queue has room for two. Those who come behind them at once could be before them in it.
  for (let i = 0; i < 4; i++) {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    fillers.push(socket)
    if (i < 2) await new Promise((done) => socket.once('connect', done))
  }
  return { port, hangUp: () => worker.terminate() }
}
