import { createServer } from 'node:https'
import type { Pair } from './certificates.ts'
import { listen } from './listen.ts'

/** Starts a TLS server with this certificate that answers every request. */
export async function startTlsServer({ cert, key }: Pair): Promise<{ url: string }> {
  const server = createServer({ cert, key }, (request, response) => {
    request.resume()
    response.end('{}')
  })
  return { url: `https://127.0.0.1:${await listen(server)}` }
}
