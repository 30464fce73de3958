import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { listen } from '../../test/support/listen.ts'

/** The treatment of bytes on the line, also on connections that are open already. */
export type LineState =
  | 'passes'
  /** Nothing arrives, and neither side notices. */
  | 'swallows'
  /** Each piece arrives 200 ms late, in both directions. */
  | 'late'
  /** New connections are accepted and closed, and open ones are reset. */
  | 'hangs up'
  /** Questions arrive, but instead of the answer the connection ends. */
  | 'loses answers'

/** The line between a replica and its database. */
export type Line = {
  port: number
  become(state: LineState): void
  close(): void
}

const lateMs = 200

export async function drawLine(targetPort: number): Promise<Line> {
  const sockets = new Set<Socket>()
  let state: LineState = 'passes'
  const server = createServer((client) => {
    if (state === 'hangs up') {
      client.destroy()
      return
    }
    const database = connect(targetPort, '127.0.0.1')
    pass(client, database, 'up')
    pass(database, client, 'down')
  })
  const port = await listen(server)
  return {
    port,
    become(next) {
      state = next
      if (next === 'hangs up') reset()
    },
    close() {
      reset()
      server.close()
    },
  }

  function pass(from: Socket, to: Socket, direction: 'up' | 'down'): void {
    sockets.add(from)
    from.setNoDelay(true)
    from.on('error', () => {})
    from.once('close', () => {
      sockets.delete(from)
      if (state !== 'swallows') to.destroy()
    })
    let last = Promise.resolve()
    from.on('data', (chunk) => {
      if (state === 'swallows') return
      if (state === 'loses answers' && direction === 'down') {
        from.destroy()
        to.destroy()
        return
      }
      const isLate = state === 'late'
      last = last.then(() => (isLate ? pause(lateMs) : undefined)).then(() => void to.write(chunk))
    })
  }

  function reset(): void {
    for (const socket of sockets) socket.destroy()
  }
}
