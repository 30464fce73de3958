import type { Worker } from 'node:cluster'

/** Node's own words between the process that listens and those that answer. */
type ClusterMessage = { cmd?: string; act?: string; seq?: number; ack?: number }

const ofNode = 'NODE_CLUSTER'

/**
 * Node gives a connection to a worker and waits for its word that it has it. Of one that dies meanwhile nothing comes: its client
 * would wait for ever, and the descriptor be kept. So the word is said in its place, that it was not accepted, and another
 * worker gets the connection. Where Node has other words than these nothing is done.
 */
export function returnHandovers(worker: Worker): void {
  const child = worker.process
  const open = new Set<number>()
  const send = child.send as (word: ClusterMessage, ...rest: unknown[]) => boolean
  child.send = (word: unknown, ...rest: unknown[]) => {
    const { cmd, act, seq } = word as ClusterMessage
    if (cmd === ofNode && act === 'newconn' && seq !== undefined) open.add(seq)
    return send.call(child, word as ClusterMessage, ...rest)
  }
  child.on('internalMessage', ({ cmd, ack }: ClusterMessage) => {
    if (cmd === ofNode && ack !== undefined) open.delete(ack)
  })
  // After Node's own answer to the end, which takes the worker off the list of those that get any.
  worker.once('exit', () =>
    setImmediate(() => {
      for (const ack of open) child.emit('internalMessage', { cmd: ofNode, ack, accepted: false })
    }),
  )
}
