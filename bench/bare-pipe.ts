/*
 * The baseline: `node:http` as the server, undici's `dispatch` as the client, and nothing between them. Its argument is
 * the upstream's origin. It prints its port.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Pool } from 'undici'

const pool = new Pool(process.argv[2]!, { connections: null, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 })
const requestHeaders = ['content-type', 'application/json', 'authorization', 'Bearer upstream-key']

const server = createServer({ noDelay: true }, (request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
    let missingBytes = -1
    pool.dispatch(
      { path: request.url!, method: 'POST', headers: requestHeaders, body },
      {
        onRequestStart() {},
        onResponseStart(_, status, headers) {
          const length = headers['content-length']
          const shown: Record<string, string> = { 'content-type': headers['content-type'] as string }
          if (length !== undefined) {
            missingBytes = Number(length)
            shown['content-length'] = length as string
          }
          response.writeHead(status, shown)
        },
        onResponseData(_, chunk) {
          missingBytes -= chunk.length
          if (missingBytes === 0) response.end(chunk)
          else response.write(chunk)
        },
        onResponseEnd() {
          if (!response.writableEnded) response.end()
        },
        onResponseError() {
          response.destroy()
        },
      },
    )
  })
})
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port))
