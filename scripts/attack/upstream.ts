import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { platform, setPriority } from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { type ClientWire, clientWireNames } from '../../src/catalog/wire-names.ts'
import { behaviours } from './behaviours.ts'
import { paths } from './wires.ts'

/*
 * An upstream in a thread of its own, so that its behaviour to one client costs the others nothing. The name of the
 * model chooses the behaviour. Posts its port.
 */

// On Linux this sets the priority of this thread only.
if (platform() === 'linux') setPriority(workerData.nice)
const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  response.on('error', () => {})
  void answer(request).catch(() => response.destroy())

  async function answer(request: IncomingMessage): Promise<void> {
    const wire = clientWireNames.find((name) => request.url === paths[name])
    const text = await read(request)
    if (!wire) throw new Error('the upstream does not serve this path')
    const { model, stream } = JSON.parse(text) as { model: string; stream?: boolean }
    await behaviours[model]!({ wire: wire as ClientWire, isStream: stream === true, asked: text, response })
  }
})
server.listen(0, '127.0.0.1', 4096, () => parentPort!.postMessage((server.address() as AddressInfo).port))

async function read(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  return Buffer.concat(parts).toString()
}
