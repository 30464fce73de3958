import { createServer, type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import { listen } from './listen.ts'

export type EgressProxy = {
  /** The URL without credentials. */
  url: string
  /** The requests in the order of arrival: `CONNECT host:port` or `POST http://…`. */
  asked: string[]
  /** The `proxy-authorization` of each request. */
  credentials: (string | undefined)[]
  /**
   * Sets how the proxy responds: with an error of this status, normally (undefined), or not at all (`silent`).
   * @param headers headers of its response to a request in absolute form
   */
  refuse(status: number | 'silent' | undefined, headers?: Record<string, string>): void
}

/**
 * Starts a company's proxy, which accepts tunnels, and requests in absolute form.
 * @param hosts addresses on this machine, by the `host:port` that only the proxy can resolve
 */
export async function startEgressProxy(hosts: Readonly<Record<string, string>> = {}): Promise<EgressProxy> {
  const placeOf = (place: string) => hosts[place] ?? place
  let refusal: number | 'silent' | undefined
  let refusalHeaders: Record<string, string> = {}
  const note = ({ method, url, headers }: IncomingMessage) => {
    proxy.asked.push(`${method} ${url}`)
    proxy.credentials.push(headers['proxy-authorization'])
  }
  const server = createServer((asked, answer) => {
    note(asked)
    if (refusal === 'silent') return
    if (refusal !== undefined) {
      answer.writeHead(refusal, refusalHeaders).end('<html>no</html>')
      return
    }
    const { 'proxy-authorization': _, ...headers } = asked.headers
    const { host, pathname } = new URL(asked.url!)
    const url = `http://${placeOf(host)}${pathname}`
    const onward = request(url, { method: asked.method, headers }, (got) => {
      answer.writeHead(got.statusCode!, { ...got.headers, via: '1.1 corp (proxyd/3.2)' })
      got.pipe(answer)
    })
    onward.on('error', () => answer.destroy())
    answer.on('close', () => onward.destroy())
    asked.pipe(onward)
  })
  server.on('connect', (asked: IncomingMessage, socket: Duplex) => {
    note(asked)
    socket.on('error', () => {})
    if (refusal === 'silent') return
    if (refusal !== undefined) {
      socket.end(`HTTP/1.1 ${refusal} Said\r\n\r\n`)
      return
    }
    const [, host, port] = /^(.*):(\d+)$/.exec(placeOf(asked.url!))!
    const onward = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      socket.pipe(onward).pipe(socket)
    })
    onward.on('error', () => socket.destroy())
    socket.on('close', () => onward.destroy())
  })
  const proxy: EgressProxy = {
    url: `http://127.0.0.1:${await listen(server)}`,
    asked: [],
    credentials: [],
    refuse(status, headers = {}) {
      refusal = status
      refusalHeaders = headers
    },
  }
  return proxy
}
